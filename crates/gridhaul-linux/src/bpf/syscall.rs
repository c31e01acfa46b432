//! The system call bpf(2), and the commands that load programs; [`attachment`](super::attachment),
//! [`hash_map`](super::hash_map), [`introspection`](super::introspection) and
//! [`pinning`](super::pinning) have the others.
//!
//! Structures are those of `<linux/bpf.h>` up to the last field that is used; the kernel takes the
//! rest as zero.
#![expect(unsafe_code, reason = "system calls")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::introspection::map_info;

/// Kinds of maps.
pub(super) const HASH: u32 = 1;
pub(super) const ARRAY: u32 = 2;
pub(super) const SOCKET_STORAGE: u32 = 24;
pub(super) const STRUCT_OPS: u32 = 26;
/// Flags of maps.
pub(super) const NOT_PREALLOCATED: u32 = 1;
/// `BPF_F_CLONE`: a socket that is accepted copies the entry of the listening socket.
pub(super) const CLONED_ON_ACCEPT: u32 = 1 << 9;
pub(super) const BY_LINK: u32 = 1 << 13;
/// Kinds of programs.
pub(super) const SOCKET_FILTER_PROGRAM: u32 = 1;
pub(super) const SOCK_OPS_PROGRAM: u32 = 13;
pub(super) const STRUCT_OPS_PROGRAM: u32 = 27;
/// `BPF_PROG_TYPE_SCHED_CLS`.
pub(super) const CLASSIFIER_PROGRAM: u32 = 3;
/// Target to which a link attaches.
pub(super) const TO_SOCK_OPS: u32 = 3;
pub(super) const TO_STRUCT_OPS: u32 = 44;
pub(super) const TO_TCX_INGRESS: u32 = 46;
pub(super) const TO_TCX_EGRESS: u32 = 47;

const MAP_CREATE: u32 = 0;
pub(super) const MAP_LOOKUP: u32 = 1;
pub(super) const MAP_UPDATE: u32 = 2;
pub(super) const MAP_DELETE: u32 = 3;
pub(super) const MAP_NEXT_KEY: u32 = 4;
const PROGRAM_LOAD: u32 = 5;
const BTF_LOAD: u32 = 18;
const LINK_CREATE: u32 = 28;

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

/// Attributes of BPF_PROG_LOAD.
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

/// Attributes of a command that are a few numbers.
#[repr(C)]
#[derive(Default)]
pub(super) struct Words(pub(super) [u32; 4]);

/// A name for the kernel: at most 15 bytes.
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

/// Writes an entry; the key of socket storage is the socket's descriptor.
///
/// # Errors
/// The size of entries is another one, or the kernel rejects the entry.
pub fn map_update(map: BorrowedFd<'_>, key: u32, value: &[u8]) -> io::Result<()> {
    let info = map_info(map)?;
    if info.value_size as usize != value.len() || info.key_size != 4 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the map is another one"));
    }
    map_element(MAP_UPDATE, map, &raw const key as u64, value.as_ptr() as u64)
}

/// Reads an entry of `len` bytes; the key of socket storage is the socket's descriptor.
///
/// # Errors
/// There is no such entry, or entries are larger.
pub fn map_lookup(map: BorrowedFd<'_>, key: u32, len: usize) -> io::Result<Vec<u8>> {
    let info = map_info(map)?;
    if info.value_size as usize > len || info.key_size != 4 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the map is another one"));
    }
    let mut value = vec![0_u8; len];
    map_element(MAP_LOOKUP, map, &raw const key as u64, value.as_mut_ptr() as u64)?;
    Ok(value)
}

/// Looks up, updates or deletes an entry, or finds the key after another one. `key` and `value` are
/// addresses of this process; with [`MAP_NEXT_KEY`], `value` is the place of the next key.
pub(super) fn map_element(
    command: u32,
    map: BorrowedFd<'_>,
    key: u64,
    value: u64,
) -> io::Result<()> {
    let mut attributes = Element { map: number(map), key, value, ..Element::default() };
    call(command, &mut attributes).map(drop)
}

/// Loads a program; with `log`, the kernel explains its checks.
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

/// Attaches a program to `target` (a file descriptor or the number of a device), or registers the
/// structure in a map; closing the link undoes that, unless it is pinned.
pub(super) fn link(
    what: BorrowedFd<'_>,
    target: Option<u32>,
    attach_type: u32,
) -> io::Result<OwnedFd> {
    object(LINK_CREATE, &mut Words([number(what), target.unwrap_or(0), attach_type, 0]))
}

/// A file descriptor as an attribute.
pub(super) fn number(file: BorrowedFd<'_>) -> u32 {
    file.as_raw_fd().cast_unsigned()
}

/// Calls a command that returns a new file descriptor.
pub(super) fn object<T>(command: u32, attributes: &mut T) -> io::Result<OwnedFd> {
    let file = call(command, attributes)?;
    // SAFETY: these commands return a new file descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Calls a command. Attributes are numbers without padding; addresses among them point to memory
/// that lives until the call returns, and of which the attributes give the length.
pub(super) fn call<T>(command: u32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes `size_of::<T>()` bytes, which are plain numbers without
    // gaps; the addresses in them point to memory that lives until the call returns.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<T>() as libc::c_uint)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}
