//! The system call bpf(2), one function for each command in use.
//!
//! Structures are those of `<linux/bpf.h>` up to the last field that is used; the kernel takes the rest as
//! zero.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Kinds of maps.
pub(super) const ARRAY: u32 = 2;
pub(super) const SOCKET_STORAGE: u32 = 24;
pub(super) const STRUCT_OPS: u32 = 26;
/// Flags of maps.
pub(super) const NOT_PREALLOCATED: u32 = 1;
pub(super) const BY_LINK: u32 = 1 << 13;
/// Kinds of programs.
pub(super) const SOCK_OPS_PROGRAM: u32 = 13;
pub(super) const STRUCT_OPS_PROGRAM: u32 = 27;
/// `BPF_PROG_TYPE_SCHED_CLS`.
pub(super) const CLASSIFIER_PROGRAM: u32 = 3;
/// What a link attaches to.
pub(super) const TO_SOCK_OPS: u32 = 3;
pub(super) const TO_STRUCT_OPS: u32 = 44;
pub(super) const TO_TCX_INGRESS: u32 = 46;
pub(super) const TO_TCX_EGRESS: u32 = 47;
/// [`LinkInfo::kind`] of registered structures.
pub const STRUCT_OPS_LINK: u32 = 9;

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP: u32 = 1;
const MAP_UPDATE: u32 = 2;
const PROGRAM_LOAD: u32 = 5;
const PIN: u32 = 6;
const GET: u32 = 7;
const MAP_NEXT: u32 = 12;
const MAP_BY_ID: u32 = 14;
const INFO: u32 = 15;
const BTF_LOAD: u32 = 18;
const LINK_CREATE: u32 = 28;
const LINK_BY_ID: u32 = 30;
const LINK_NEXT: u32 = 31;

/// How to make a map.
#[repr(C)]
#[derive(Default)]
pub(super) struct MapCreate {
    pub(super) kind: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) flags: u32,
    pub(super) inner: u32,
    pub(super) numa_node: u32,
    pub(super) name: [u8; 16],
    pub(super) interface: u32,
    pub(super) btf: u32,
    pub(super) key_type: u32,
    pub(super) value_type: u32,
    /// Type in the kernel, for structures that are registered.
    pub(super) kernel_value_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// What the kernel gets of a program.
#[derive(Default)]
pub(super) struct ProgramLoad<'a> {
    pub(super) kind: u32,
    pub(super) name: &'a str,
    pub(super) instructions: &'a [u8],
    pub(super) attach_type: u32,
    pub(super) attach_to: u32,
    pub(super) types: Option<BorrowedFd<'a>>,
    pub(super) functions: Records<'a>,
    pub(super) lines: Records<'a>,
    pub(super) relocations: Records<'a>,
}

/// A table of records of equal size.
#[derive(Default, Clone, Copy)]
pub(super) struct Records<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) size: u32,
}

impl Records<'_> {
    fn count(&self) -> u32 {
        (self.bytes.len() as u32).checked_div(self.size).unwrap_or(0)
    }

    fn address(&self) -> u64 {
        self.bytes.as_ptr() as u64
    }
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoadAttributes {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
    btf: u32,
    function_size: u32,
    functions: u64,
    function_count: u32,
    line_size: u32,
    lines: u64,
    line_count: u32,
    attach_to: u32,
    attach_program: u32,
    relocation_count: u32,
    file_array: u64,
    relocations: u64,
    relocation_size: u32,
    padding: u32,
}

#[repr(C)]
#[derive(Default)]
struct Types {
    bytes: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
    padding: u32,
}

#[repr(C)]
#[derive(Default)]
struct Words([u32; 4]);

#[repr(C)]
#[derive(Default)]
struct AtPath {
    path: u64,
    object: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct AskInfo {
    object: u32,
    len: u32,
    info: u64,
}

/// The kernel's description of a link.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct LinkInfo {
    /// Kind of the link, such as [`STRUCT_OPS_LINK`].
    pub kind: u32,
    /// Number of the link.
    pub id: u32,
    /// Number of the attached program.
    pub program: u32,
    padding: u32,
    /// Number of the map of a registered structure; other kinds of links have other data here.
    pub map: u32,
    rest: [u32; 15],
}

/// The kernel's description of a map.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct MapInfo {
    /// Kind of the map (`enum bpf_map_type`).
    pub kind: u32,
    /// Number of the map.
    pub id: u32,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Size of a value in bytes.
    pub value_size: u32,
    max_entries: u32,
    flags: u32,
    name: [u8; 16],
    rest: [u32; 10],
}

impl MapInfo {
    /// Name of the map, at most 15 bytes.
    #[must_use]
    pub fn name(&self) -> String {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        String::from_utf8_lossy(&self.name[..end]).into_owned()
    }
}

/// A name as the kernel takes it: 15 bytes at most.
pub(super) fn object_name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(text.bytes().take(15)) {
        *to = from;
    }
    name
}

pub(super) fn map_create(attributes: &mut MapCreate) -> io::Result<OwnedFd> {
    object(MAP_CREATE, attributes)
}

/// Writes an entry. The caller knows the sizes of the map.
pub(super) fn map_update(map: BorrowedFd<'_>, key: u32, value: &[u8]) -> io::Result<()> {
    let mut attributes = Element {
        map: number(map),
        key: &raw const key as u64,
        value: value.as_ptr() as u64,
        ..Element::default()
    };
    call(MAP_UPDATE, &mut attributes).map(drop)
}

/// Reads an entry of `len` bytes; the key of socket storage is the socket's descriptor.
///
/// # Errors
/// There is no such entry, or entries are larger.
pub fn map_lookup(map: BorrowedFd<'_>, key: u32, len: usize) -> io::Result<Vec<u8>> {
    let info: MapInfo = info(map)?;
    if info.value_size as usize > len || info.key_size != 4 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the map is another one"));
    }
    let mut value = vec![0_u8; len];
    let mut attributes = Element {
        map: number(map),
        key: &raw const key as u64,
        value: value.as_mut_ptr() as u64,
        ..Element::default()
    };
    call(MAP_LOOKUP, &mut attributes)?;
    Ok(value)
}

/// Loads a program; with `log`, the kernel explains what it finds.
pub(super) fn program_load(
    program: &ProgramLoad<'_>,
    log: Option<&mut [u8]>,
) -> io::Result<OwnedFd> {
    let mut attributes = ProgramLoadAttributes {
        kind: program.kind,
        instruction_count: (program.instructions.len() / 8) as u32,
        instructions: program.instructions.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        name: object_name(program.name),
        attach_type: program.attach_type,
        attach_to: program.attach_to,
        btf: program.types.map_or(0, number),
        function_size: program.functions.size,
        functions: program.functions.address(),
        function_count: program.functions.count(),
        line_size: program.lines.size,
        lines: program.lines.address(),
        line_count: program.lines.count(),
        relocation_count: program.relocations.count(),
        relocations: program.relocations.address(),
        relocation_size: program.relocations.size,
        ..ProgramLoadAttributes::default()
    };
    if program.relocations.count() == 0 {
        (attributes.relocations, attributes.relocation_size) = (0, 0);
    }
    if let Some(log) = log {
        attributes.log_level = 1;
        attributes.log_size = log.len() as u32;
        attributes.log = log.as_mut_ptr() as u64;
    }
    object(PROGRAM_LOAD, &mut attributes)
}

pub(super) fn types_load(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (size, bytes) = (bytes.len() as u32, bytes.as_ptr() as u64);
    object(BTF_LOAD, &mut Types { bytes, size, ..Types::default() })
}

/// Attaches a program to `target` (a file descriptor or the number of a device), or registers the structure in
/// a map; closing the link undoes that, unless it is pinned.
pub(super) fn link(
    what: BorrowedFd<'_>,
    target: Option<u32>,
    attach_type: u32,
) -> io::Result<OwnedFd> {
    object(LINK_CREATE, &mut Words([number(what), target.unwrap_or(0), attach_type, 0]))
}

/// Pins an object in a BPF file system, where it exists beyond this process.
///
/// # Errors
/// There is no BPF file system at the path, or the name is taken.
pub fn pin(what: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes =
        AtPath { path: path.as_ptr() as u64, object: number(what), ..AtPath::default() };
    call(PIN, &mut attributes).map(drop)
}

/// Opens a pinned object.
///
/// # Errors
/// Nothing is pinned at the path.
pub fn pinned(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    object(GET, &mut AtPath { path: path.as_ptr() as u64, ..AtPath::default() })
}

/// Opens all links of the system.
///
/// # Errors
/// The caller lacks a capability (CAP_BPF, CAP_SYS_ADMIN), or the object is gone.
pub fn links() -> io::Result<Vec<OwnedFd>> {
    all(LINK_NEXT, LINK_BY_ID)
}

/// Opens all maps of the system.
///
/// # Errors
/// The caller lacks a capability (CAP_BPF, CAP_SYS_ADMIN), or the object is gone.
pub fn maps() -> io::Result<Vec<OwnedFd>> {
    all(MAP_NEXT, MAP_BY_ID)
}

/// Opens the map with this number.
///
/// # Errors
/// The caller lacks a capability (CAP_BPF, CAP_SYS_ADMIN), or the object is gone.
pub fn map_by_id(id: u32) -> io::Result<OwnedFd> {
    object(MAP_BY_ID, &mut Words([id, 0, 0, 0]))
}

/// Describes a link.
///
/// # Errors
/// The descriptor is no link.
pub fn link_info(link: BorrowedFd<'_>) -> io::Result<LinkInfo> {
    info(link)
}

/// Describes a map.
///
/// # Errors
/// The descriptor is no map.
pub fn map_info(map: BorrowedFd<'_>) -> io::Result<MapInfo> {
    info(map)
}

/// Mounts the BPF file system.
///
/// # Errors
/// The caller may not mount, or the folder does not exist.
pub fn mount_bpf(at: &Path) -> io::Result<()> {
    let at = CString::new(at.as_os_str().as_bytes())?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: three strings that end with zero and live until the call returns.
    let result = unsafe {
        libc::mount(
            c"bpf".as_ptr(),
            at.as_ptr(),
            c"bpf".as_ptr(),
            flags,
            c"mode=0700".as_ptr().cast(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn all(next: u32, by_id: u32) -> io::Result<Vec<OwnedFd>> {
    let mut found = Vec::new();
    let mut ids = Words::default();
    loop {
        match call(next, &mut ids) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(found),
            result => result?,
        };
        let id = ids.0[1];
        // It may have gone in between.
        found.extend(object(by_id, &mut Words([id, 0, 0, 0])).ok());
        ids = Words([id, 0, 0, 0]);
    }
}

fn info<T: Default + Copy>(of: BorrowedFd<'_>) -> io::Result<T> {
    let mut info = T::default();
    let mut attributes =
        AskInfo { object: number(of), len: size_of::<T>() as u32, info: &raw mut info as u64 };
    call(INFO, &mut attributes)?;
    Ok(info)
}

fn number(file: BorrowedFd<'_>) -> u32 {
    file.as_raw_fd().cast_unsigned()
}

fn object<T>(command: u32, attributes: &mut T) -> io::Result<OwnedFd> {
    let file = call(command, attributes)?;
    // SAFETY: these commands return a new file descriptor, which nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

fn call<T>(command: u32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes `size_of::<T>()` bytes, which are plain numbers without gaps;
    // the addresses in them point to memory that lives until the call returns.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<T>() as libc::c_uint)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}
