//! Objects in a BPF file system, where they exist beyond the process that loaded them.

use std::ffi::CString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::syscall::{call, number, object};

const PIN: u32 = 6;
const GET: u32 = 7;

/// Pins an object in a BPF file system, where it exists beyond this process.
///
/// # Errors
/// There is no BPF file system at the path, or the name is taken.
pub fn pin(object: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes =
        AtPath { path: path.as_ptr() as u64, object: number(object), ..AtPath::default() };
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

/// Mounts the BPF file system.
///
/// # Errors
/// The caller may not mount, or the folder does not exist.
#[expect(unsafe_code, reason = "no crate in use wraps mount(2) for this file system")]
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

#[repr(C)]
#[derive(Default)]
struct AtPath {
    path: u64,
    object: u32,
    flags: u32,
}
