//! Socket options of Linux that no crate knows yet.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// An option at level `IPPROTO_TCP` whose value is a number. `<linux/tcp.h>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum SocketOption {
    /// Largest segment that is sent and asked for.
    MaxSegment = 2,
    /// Largest window that is offered.
    WindowClamp = 10,
    /// Bytes not yet sent up to which the socket counts as writable.
    NotSentLowWater = 25,
    /// Largest retransmission timeout, in milliseconds (Linux 6.15).
    RtoMaxMillis = 44,
    /// Least retransmission timeout, in microseconds (Linux 6.15).
    RtoMinMicros = 45,
    /// Longest wait of an acknowledgement, in microseconds (Linux 6.15).
    DelayedAckMaxMicros = 46,
}

/// Sets an option.
///
/// # Errors
/// What the kernel says: it may be too old for the option, or the value out of its bounds.
#[expect(unsafe_code, reason = "options that are newer than the crates that wrap them")]
pub fn set_option(socket: impl AsFd, option: SocketOption, value: u32) -> io::Result<()> {
    let value = i32::try_from(value).unwrap_or(i32::MAX);
    // SAFETY: the kernel reads the four bytes of `value`, which outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option as i32,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
