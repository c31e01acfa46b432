//! Objects loaded in the kernel: the links and maps of the system, and their descriptions.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::syscall::{Words, call, number, object};

/// [`LinkInfo::kind`] of registered structures.
pub const STRUCT_OPS_LINK: u32 = 9;

const MAP_NEXT: u32 = 12;
const PROGRAM_BY_ID: u32 = 13;
const MAP_BY_ID: u32 = 14;
const INFO: u32 = 15;
const LINK_BY_ID: u32 = 30;
const LINK_NEXT: u32 = 31;

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
        text(&self.name)
    }
}

/// Opens all links of the system.
///
/// # Errors
/// The caller lacks a capability (CAP_BPF, CAP_SYS_ADMIN), or the object was deleted.
pub fn links() -> io::Result<Vec<OwnedFd>> {
    all(LINK_NEXT, LINK_BY_ID)
}

/// Opens all maps of the system.
///
/// # Errors
/// The caller lacks a capability (CAP_BPF, CAP_SYS_ADMIN), or the object was deleted.
pub fn maps() -> io::Result<Vec<OwnedFd>> {
    all(MAP_NEXT, MAP_BY_ID)
}

/// Opens the map with this number.
///
/// # Errors
/// The caller lacks a capability (CAP_BPF, CAP_SYS_ADMIN), or the object was deleted.
pub fn map_by_id(id: u32) -> io::Result<OwnedFd> {
    object(MAP_BY_ID, &mut Words([id, 0, 0, 0]))
}

/// The kernel's description of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramInfo {
    /// Name of the program, at most 15 bytes.
    pub name: String,
    /// Numbers of its maps.
    pub maps: Vec<u32>,
}

/// The first fields of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct RawProgramInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    compiled_len: u32,
    instructions_len: u32,
    compiled: u64,
    instructions: u64,
    load_time: u64,
    user: u32,
    map_count: u32,
    maps: u64,
    name: [u8; 16],
}

/// Opens the program with this number.
///
/// # Errors
/// The caller lacks a capability (CAP_BPF, CAP_SYS_ADMIN), or the object was deleted.
pub fn program_by_id(id: u32) -> io::Result<OwnedFd> {
    object(PROGRAM_BY_ID, &mut Words([id, 0, 0, 0]))
}

/// Describes a program.
///
/// # Errors
/// The descriptor is no program.
pub fn program_info(program: BorrowedFd<'_>) -> io::Result<ProgramInfo> {
    let mut maps = [0_u32; MAPS_MAX];
    let request = RawProgramInfo {
        map_count: MAPS_MAX as u32,
        maps: maps.as_mut_ptr() as u64,
        ..RawProgramInfo::default()
    };
    let info = info_with(program, request)?;
    let count = maps.len().min(info.map_count as usize);
    Ok(ProgramInfo { name: text(&info.name), maps: maps[..count].to_vec() })
}

/// Maps of a program whose numbers are reported.
const MAPS_MAX: usize = 16;

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

#[repr(C)]
#[derive(Default)]
struct InfoRequest {
    object: u32,
    len: u32,
    info: u64,
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
        // The object may have been deleted in between.
        found.extend(object(by_id, &mut Words([id, 0, 0, 0])).ok());
        ids = Words([id, 0, 0, 0]);
    }
}

fn info<T: Default + Copy>(of: BorrowedFd<'_>) -> io::Result<T> {
    info_with(of, T::default())
}

/// `info` may have places for lists that the kernel is to fill in.
fn info_with<T: Copy>(of: BorrowedFd<'_>, mut info: T) -> io::Result<T> {
    let mut attributes =
        InfoRequest { object: number(of), len: size_of::<T>() as u32, info: &raw mut info as u64 };
    call(INFO, &mut attributes)?;
    Ok(info)
}

/// A name with a final zero, if it is shorter than its field.
fn text(name: &[u8; 16]) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}
