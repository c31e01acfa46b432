//! TCP socket options of Linux that no crate wraps.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// An option at level `IPPROTO_TCP` whose value is a number (`<linux/tcp.h>`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum SocketOption {
    /// `TCP_MAXSEG`: largest segment that is sent and announced.
    MaxSegment = 2,
    /// `TCP_WINDOW_CLAMP`: largest receive window that is announced.
    WindowClamp = 10,
    /// `TCP_NOTSENT_LOWAT`: unsent bytes up to which the socket is writable.
    NotSentLowWater = 25,
    /// Largest retransmission timeout, in milliseconds (Linux 6.15).
    RtoMaxMillis = 44,
    /// Smallest retransmission timeout, in microseconds (Linux 6.15).
    RtoMinMicros = 45,
    /// Longest delay of an acknowledgement, in microseconds (Linux 6.15).
    DelayedAckMaxMicros = 46,
}

/// Sets an option.
///
/// # Errors
/// The kernel is too old for the option, or the value is out of bounds.
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
