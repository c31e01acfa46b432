//! Sockets that this process has when it starts.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use rustix::fs::fcntl_get_seals;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::{socket_acceptconn, socket_protocol};

/// Numbers that were taken: a file has one owner.
static TAKEN: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());

/// Takes the listening sockets with these numbers, which a service manager (sd_listen_fds(3)) or an
/// earlier version of the program has left open. Child processes do not inherit them.
///
/// # Errors
/// A number is not that of a listening socket, or was taken before.
pub fn take_inherited_listeners(numbers: &[RawFd]) -> io::Result<Vec<OwnedFd>> {
    let is_listener = |file: BorrowedFd<'_>| socket_acceptconn(file).unwrap_or(false);
    numbers.iter().map(|&number| take(number, is_listener, "not a listening socket")).collect()
}

/// Takes a TCP connection that an earlier version of the program has left open. Child processes do
/// not inherit it.
///
/// # Errors
/// The number is not that of a TCP connection, or was taken before.
pub fn take_inherited_connection(number: RawFd) -> io::Result<OwnedFd> {
    let is_connection = |file: BorrowedFd<'_>| {
        socket_acceptconn(file).is_ok_and(|listens| !listens)
            && socket_protocol(file)
                .is_ok_and(|protocol| protocol == Some(rustix::net::ipproto::TCP))
    };
    take(number, is_connection, "not a TCP connection")
}

/// Takes a file in memory that an earlier version of the program has left open.
///
/// # Errors
/// The number is that of something else, or was taken before.
pub fn take_inherited_memory(number: RawFd) -> io::Result<OwnedFd> {
    let is_memory = |file: BorrowedFd<'_>| fcntl_get_seals(file).is_ok();
    take(number, is_memory, "not a file in memory")
}

/// Takes the attachment of a BPF program that an earlier version of the program has left open.
///
/// # Errors
/// The number is that of something else, or was taken before.
pub(crate) fn take_inherited_link(number: RawFd) -> io::Result<OwnedFd> {
    let is_link = |_: BorrowedFd<'_>| {
        let target = std::fs::read_link(format!("/proc/self/fd/{number}"));
        target.is_ok_and(|target| target.to_string_lossy().contains("bpf_link"))
    };
    take(number, is_link, "not an attachment of a program")
}

/// Takes the file with a number, if it is what the caller expects.
#[expect(unsafe_code, reason = "the numbers of inherited files come from the environment")]
fn take(
    number: RawFd,
    is_expected: impl Fn(BorrowedFd<'_>) -> bool,
    refusal: &str,
) -> io::Result<OwnedFd> {
    let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let failed = |text: &str| io::Error::other(format!("file {number}: {text}"));
    if number < 3 || taken.contains(&number) {
        return Err(failed("standard input or output, or taken before"));
    }
    // SAFETY: the file is used in this call only, and the kernel refuses numbers of files that are
    // not open.
    let file = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(file, FdFlags::CLOEXEC).map_err(|error| failed(&error.to_string()))?;
    if !is_expected(file) {
        return Err(failed(refusal));
    }
    taken.insert(number);
    // SAFETY: the file is open, and was passed to this process for the purpose that the caller
    // states. `taken` excludes a second owner from this function; the caller has opened no file of
    // its own with this number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::IntoRawFd;

    use super::*;

    #[test]
    fn listeners_are_taken_once_and_other_files_refused() {
        // Before the first listener is taken: its number may be used again when it is closed.
        let number = std::fs::File::open("/dev/null").unwrap().into_raw_fd();
        let error = take_inherited_listeners(&[number]).unwrap_err().to_string();
        assert!(error.contains("not a listening socket"), "{error}");
        assert!(take_inherited_listeners(&[1]).is_err());
        let number = TcpListener::bind("127.0.0.1:0").unwrap().into_raw_fd();
        let taken = take_inherited_listeners(&[number]).unwrap();
        assert!(take_inherited_listeners(&[number]).is_err());
        drop(taken);
    }
}
