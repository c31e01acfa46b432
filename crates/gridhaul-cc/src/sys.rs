//! The system call `bpf`, one function for each of its commands that is used here.
//!
//! Structures are those of `linux/bpf.h` up to the last field that is used; the kernel takes what is not
//! given for zero.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Kinds of maps.
pub(crate) const ARRAY: u32 = 2;
pub(crate) const SOCKET_STORAGE: u32 = 24;
pub(crate) const STRUCT_OPS: u32 = 26;
/// Flags of maps.
pub(crate) const NOT_PREALLOCATED: u32 = 1;
pub(crate) const BY_LINK: u32 = 1 << 13;
/// Kinds of programs.
pub(crate) const SOCK_OPS_PROGRAM: u32 = 13;
pub(crate) const STRUCT_OPS_PROGRAM: u32 = 27;
/// What a link attaches to.
pub(crate) const TO_SOCK_OPS: u32 = 3;
pub(crate) const TO_STRUCT_OPS: u32 = 44;
/// `LinkInfo::kind` of registered structures.
pub(crate) const STRUCT_OPS_LINK: u32 = 9;

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
pub(crate) struct MapCreate {
    pub(crate) kind: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    pub(crate) max_entries: u32,
    pub(crate) flags: u32,
    pub(crate) inner: u32,
    pub(crate) numa_node: u32,
    pub(crate) name: [u8; 16],
    pub(crate) interface: u32,
    pub(crate) btf: u32,
    pub(crate) key_type: u32,
    pub(crate) value_type: u32,
    /// Type in the kernel, for structures that are registered.
    pub(crate) kernel_value_type: u32,
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
pub(crate) struct Program<'a> {
    pub(crate) kind: u32,
    pub(crate) name: &'a str,
    pub(crate) instructions: &'a [u8],
    pub(crate) attach_type: u32,
    pub(crate) attach_to: u32,
    pub(crate) types: Option<BorrowedFd<'a>>,
    pub(crate) functions: Records<'a>,
    pub(crate) lines: Records<'a>,
    pub(crate) relocations: Records<'a>,
}

/// A table of records of equal size.
#[derive(Default, Clone, Copy)]
pub(crate) struct Records<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) size: u32,
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
struct ProgramLoad {
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

/// What is known of a link.
#[repr(C)]
#[derive(Default, Clone, Copy)]
pub(crate) struct LinkInfo {
    pub(crate) kind: u32,
    pub(crate) id: u32,
    pub(crate) program: u32,
    padding: u32,
    /// Map of a registered structure; means something else for other kinds.
    pub(crate) map: u32,
    rest: [u32; 15],
}

/// What is known of a map.
#[repr(C)]
#[derive(Default, Clone, Copy)]
pub(crate) struct MapInfo {
    pub(crate) kind: u32,
    pub(crate) id: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    max_entries: u32,
    flags: u32,
    name: [u8; 16],
    rest: [u32; 10],
}

impl MapInfo {
    pub(crate) fn name(&self) -> String {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        String::from_utf8_lossy(&self.name[..end]).into_owned()
    }
}

/// A name as the kernel takes it: 15 bytes at most.
pub(crate) fn object_name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().zip(text.bytes().take(15)) {
        *to = from;
    }
    name
}

pub(crate) fn map_create(attributes: &mut MapCreate) -> io::Result<OwnedFd> {
    object(MAP_CREATE, attributes)
}

/// Writes an entry. The caller knows the sizes of the map.
pub(crate) fn map_update(map: BorrowedFd<'_>, key: u32, value: &[u8]) -> io::Result<()> {
    let mut attributes = Element {
        map: number(map),
        key: &raw const key as u64,
        value: value.as_ptr() as u64,
        ..Element::default()
    };
    call(MAP_UPDATE, &mut attributes).map(drop)
}

/// Reads an entry of `len` bytes; the key of a socket's memory is the socket.
pub(crate) fn map_lookup(map: BorrowedFd<'_>, key: u32, len: usize) -> io::Result<Vec<u8>> {
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
pub(crate) fn program_load(program: &Program<'_>, log: Option<&mut [u8]>) -> io::Result<OwnedFd> {
    let mut attributes = ProgramLoad {
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
        ..ProgramLoad::default()
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

pub(crate) fn types_load(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (size, bytes) = (bytes.len() as u32, bytes.as_ptr() as u64);
    object(BTF_LOAD, &mut Types { bytes, size, ..Types::default() })
}

/// Attaches a program to `target`, or registers the structure in a map; closing what is returned undoes
/// that, unless it is pinned.
pub(crate) fn link(
    what: BorrowedFd<'_>,
    target: Option<BorrowedFd<'_>>,
    attach_type: u32,
) -> io::Result<OwnedFd> {
    object(LINK_CREATE, &mut Words([number(what), target.map_or(0, number), attach_type, 0]))
}

/// Gives an object a name in a BPF file system, which keeps it.
pub(crate) fn pin(what: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes =
        AtPath { path: path.as_ptr() as u64, object: number(what), ..AtPath::default() };
    call(PIN, &mut attributes).map(drop)
}

/// The object with a name in a BPF file system.
pub(crate) fn pinned(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    object(GET, &mut AtPath { path: path.as_ptr() as u64, ..AtPath::default() })
}

/// All links of the system.
pub(crate) fn links() -> io::Result<Vec<OwnedFd>> {
    all(LINK_NEXT, LINK_BY_ID)
}

/// All maps of the system.
pub(crate) fn maps() -> io::Result<Vec<OwnedFd>> {
    all(MAP_NEXT, MAP_BY_ID)
}

pub(crate) fn map_by_id(id: u32) -> io::Result<OwnedFd> {
    object(MAP_BY_ID, &mut Words([id, 0, 0, 0]))
}

pub(crate) fn link_info(link: BorrowedFd<'_>) -> io::Result<LinkInfo> {
    info(link)
}

pub(crate) fn map_info(map: BorrowedFd<'_>) -> io::Result<MapInfo> {
    info(map)
}

/// Mounts the BPF file system.
pub(crate) fn mount_bpf(at: &Path) -> io::Result<()> {
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
