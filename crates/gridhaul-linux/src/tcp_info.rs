//! The kernel's state of a TCP connection (`TCP_INFO`).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use gridhaul_scenario::units::Duration;

/// The fields of `struct tcp_info` (`<linux/tcp.h>`) that are used. Fields that an older kernel
/// does not have are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// State of the connection: 1 established, 2 SYN sent, and so on (`<net/tcp_states.h>`).
    pub state: u8,
    /// State of the loss recovery: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss (`tcp_ca_state`).
    pub loss_recovery: u8,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Smoothed round trip; zero before the first measurement.
    pub srtt: Duration,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; 2³¹ − 1 before the first loss.
    pub ssthresh: u32,
    /// Payload of a full segment.
    pub mss: u32,
    /// Segments in flight.
    pub unacked: u32,
    /// Segments marked lost, and not acknowledged yet.
    pub lost: u32,
    /// Retransmitted segments.
    pub retransmissions: u32,
    /// Segments with data, retransmissions included.
    pub data_segments_sent: u32,
    /// Bytes that the peer has acknowledged, SYN and FIN included (`tcpi_bytes_acked`).
    pub bytes_acknowledged: u64,
    /// Segments received.
    pub segments_received: u32,
    /// Bytes in the send buffer that have not been sent.
    pub not_sent: u32,
    /// Times that the retransmission timer fired.
    pub timeouts: u16,
}

/// Up to `tcpi_total_rto_time`.
const SIZE: usize = 248;

impl TcpInfo {
    /// `TCP_ESTABLISHED`, a value of [`TcpInfo::state`].
    pub const ESTABLISHED: u8 = 1;

    /// Reads the state of a connection.
    ///
    /// # Errors
    /// Not a TCP socket.
    #[expect(unsafe_code, reason = "no crate defines the newer fields")]
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut raw = [0_u8; SIZE];
        let mut length = SIZE as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `raw`, and returns their number.
        let done = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                raw.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if done == 0 { Ok(Self::read(&raw)) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether both ends have seen each other's SYN (RFC 9293, 3.3.2): neither `TCP_SYN_SENT`,
    /// `TCP_SYN_RECV` nor `TCP_CLOSE`.
    #[must_use]
    pub const fn is_synchronised(&self) -> bool {
        !matches!(self.state, 0 | 2 | 3 | 7)
    }

    /// Eight bytes of flags, then numbers of 32 bits up to `tcpi_total_retrans` at offset 100;
    /// later fields at the offsets of the kernel's header.
    fn read(raw: &[u8; SIZE]) -> Self {
        let word = |at: usize| u32::from_ne_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        let low_high = |at| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let micros = |at| Duration::from_micros(u64::from(word(at)));
        Self {
            state: raw[0],
            loss_recovery: raw[1],
            rto: micros(8),
            mss: word(16),
            unacked: word(24),
            lost: word(32),
            srtt: micros(68),
            ssthresh: word(76),
            cwnd: word(80),
            retransmissions: word(100),
            bytes_acknowledged: low_high(120),
            segments_received: word(140),
            not_sent: word(144),
            data_segments_sent: word(156),
            timeouts: u16::from_ne_bytes([raw[240], raw[241]]),
        }
    }
}
