//! Attachments of programs to network devices that last until they are removed or the device is
//! deleted (`BPF_PROG_ATTACH` to tcx, Linux 6.6).

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::introspection::{ProgramInfo, program_by_id, program_info};
use super::syscall::{TO_TCX_INGRESS, call, number};

const ATTACH: u32 = 8;
const DETACH: u32 = 9;
const QUERY: u32 = 16;

/// `BPF_F_BEFORE`: the first of the programs.
const BEFORE: u32 = 1 << 3;

#[repr(C)]
#[derive(Default)]
struct Attachment {
    interface: u32,
    program: u32,
    attach_type: u32,
    flags: u32,
    replaced: u32,
    relative: u32,
    revision: u64,
}

#[repr(C)]
#[derive(Default)]
struct Query {
    interface: u32,
    attach_type: u32,
    query_flags: u32,
    flags: u32,
    ids: u64,
    count: u32,
    padding: u32,
    program_flags: u64,
    links: u64,
    link_flags: u64,
    revision: u64,
}

/// Attaches a classifier to the packets that a device receives, before all other programs. The
/// attachment does not end with this process.
///
/// # Errors
/// The kernel has no tcx, or there is no such device.
pub fn attach_first(program: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let program = number(program);
    let attach_type = TO_TCX_INGRESS;
    let flags = BEFORE;
    let attachment = Attachment { interface, program, attach_type, flags, ..Attachment::default() };
    call(ATTACH, &mut { attachment }).map(drop)
}

/// Removes an attachment that [`attach_first`] has made.
///
/// # Errors
/// The program is not attached, or it is attached by a link.
pub fn detach(program: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let program = number(program);
    let attach_type = TO_TCX_INGRESS;
    let attachment = Attachment { interface, program, attach_type, ..Attachment::default() };
    call(DETACH, &mut { attachment }).map(drop)
}

/// The programs of tcx that process the packets that a device receives, with their descriptions.
///
/// # Errors
/// There is no such device, the kernel has no tcx, or the caller lacks a capability.
pub fn attached(interface: u32) -> io::Result<Vec<(OwnedFd, ProgramInfo)>> {
    attached_as(TO_TCX_INGRESS, interface)
}

fn attached_as(attach_type: u32, interface: u32) -> io::Result<Vec<(OwnedFd, ProgramInfo)>> {
    let mut ids = [0_u32; PROGRAMS_MAX];
    let mut query = Query {
        interface,
        attach_type,
        ids: ids.as_mut_ptr() as u64,
        count: PROGRAMS_MAX as u32,
        ..Query::default()
    };
    match call(QUERY, &mut query) {
        // No program has ever been attached to the device.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(Vec::new()),
        result => result?,
    };
    let mut programs = Vec::new();
    for id in ids.into_iter().take(query.count as usize) {
        // The program may have been removed in between.
        let Ok(program) = program_by_id(id) else { continue };
        let info = program_info(std::os::fd::AsFd::as_fd(&program))?;
        programs.push((program, info));
    }
    Ok(programs)
}

/// `BPF_MPROG_MAX` of the kernel.
const PROGRAMS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use gridhaul_testing::has_tool;

    use super::*;

    /// A kernel before 6.6 answers in this way to the attach type of tcx.
    #[test]
    fn an_unknown_attach_type_is_an_invalid_argument() {
        let error = attached_as(60_000, 1).unwrap_err();
        if has_tool(error.raw_os_error() != Some(libc::EPERM), "the right to use eBPF") {
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
