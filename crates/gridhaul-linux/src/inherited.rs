//! Sockets that this process has when it starts.

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::socket_acceptconn;

/// Numbers that were taken: a file has one owner.
static TAKEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// Takes the listening sockets with these numbers, which a service manager (sd_listen_fds(3)) or an earlier version of
/// the program has left open. Child processes do not inherit them.
///
/// # Errors
/// A number is not that of a listening socket, or was taken before.
#[expect(unsafe_code, reason = "the numbers of inherited files come from the environment")]
pub fn take_inherited_listeners(numbers: &[RawFd]) -> io::Result<Vec<OwnedFd>> {
    let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut sockets = Vec::new();
    for &number in numbers {
        let failed = |text: &str| io::Error::other(format!("file {number}: {text}"));
        if number < 3 || taken.contains(&number) {
            return Err(failed("standard input or output, or taken before"));
        }
        // SAFETY: the file is used in this call only, and the kernel refuses numbers of files that are not open.
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(file, FdFlags::CLOEXEC).map_err(|error| failed(&error.to_string()))?;
        if !socket_acceptconn(file).unwrap_or(false) {
            return Err(failed("not a listening socket"));
        }
        taken.push(number);
        // SAFETY: the file is open, and was passed to this process for the purpose that the caller states. `taken`
        // excludes a second owner from this function; the caller has opened no file of its own with this number.
        sockets.push(unsafe { OwnedFd::from_raw_fd(number) });
    }
    Ok(sockets)
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
