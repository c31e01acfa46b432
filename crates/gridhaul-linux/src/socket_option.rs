//! Socket options of Linux that no crate wraps.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// An option whose value is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketOption {
    /// `TCP_MAXSEG`: largest segment that is sent and announced.
    MaxSegment,
    /// `TCP_WINDOW_CLAMP`: largest receive window that is announced.
    WindowClamp,
    /// `TCP_NOTSENT_LOWAT`: unsent bytes up to which the socket is writable.
    NotSentLowWater,
    /// Largest retransmission timeout, in milliseconds (Linux 6.15).
    RtoMaxMillis,
    /// Smallest retransmission timeout, in microseconds (Linux 6.15).
    RtoMinMicros,
    /// Longest delay of an acknowledgement, in microseconds (Linux 6.15).
    DelayedAckMaxMicros,
    /// `SO_RCVLOWAT`: received bytes from which on poll(2) reports the socket as readable (socket(7)). TCP reports it with fewer
    /// bytes when FIN has arrived, or when the receive window is exhausted.
    ReceiveLowWater,
}

/// Sets an option.
///
/// # Errors
/// The kernel is too old for the option, or the value is out of bounds.
#[expect(unsafe_code, reason = "options that are newer than the crates that wrap them")]
pub fn set_option(socket: impl AsFd, option: SocketOption, value: u32) -> io::Result<()> {
    let value = i32::try_from(value).unwrap_or(i32::MAX);
    let (level, name) = option.level_and_name();
    // SAFETY: the kernel reads the four bytes of `value`, which outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl SocketOption {
    /// Numbers of `<linux/tcp.h>` and `<asm-generic/socket.h>`.
    const fn level_and_name(self) -> (i32, i32) {
        let name = match self {
            Self::MaxSegment => 2,
            Self::WindowClamp => 10,
            Self::NotSentLowWater => 25,
            Self::RtoMaxMillis => 44,
            Self::RtoMinMicros => 45,
            Self::DelayedAckMaxMicros => 46,
            Self::ReceiveLowWater => return (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
        };
        (libc::IPPROTO_TCP, name)
    }
}
