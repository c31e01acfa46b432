//! Connections in the state ESTABLISHED without a handshake, by `TCP_REPAIR`, which checkpointing
//! (CRIU) uses to move connections between machines.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use socket2::{SockAddr, Socket};

/// The state that a connection is set to, as if a handshake had negotiated it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Established {
    /// Next sequence number of this end (SND.NXT) and of the peer (RCV.NXT).
    pub next: [u32; 2],
    /// MSS of the peer, TCP options included.
    pub mss: u32,
    /// Send window (SND.WND) and receive window (RCV.WND) in bytes.
    pub windows: [u32; 2],
    /// Window scales of the peer and of this end (RFC 7323, section 2).
    pub scales: [u8; 2],
    /// Whether selective acknowledgements were negotiated.
    pub sack: bool,
    /// Whether timestamps were negotiated; they count milliseconds from now on.
    pub timestamps: bool,
}

/// `struct tcp_repair_opt`: kind of the TCP option, and its value.
type RepairOption = [u32; 2];

// `<linux/tcp.h>`.
const QUEUE_RECEIVE: i32 = 1;
const QUEUE_SEND: i32 = 2;
const REPAIR_ON: i32 = 1;
/// `TCP_REPAIR_OFF_NO_WP`: without a window probe.
const REPAIR_OFF_NO_PROBE: i32 = -1;

// Kinds of TCP options.
const MSS: u32 = 2;
const WINDOW_SCALE: u32 = 3;
const SACK_PERMITTED: u32 = 4;
const TIMESTAMPS: u32 = 8;

impl Established {
    /// Makes a bound socket an established connection with `peer`. No packet is sent.
    ///
    /// # Errors
    /// The caller lacks `CAP_NET_ADMIN`, or the kernel rejects the state.
    pub fn set(&self, socket: &Socket, peer: &SockAddr) -> io::Result<()> {
        set(socket, libc::TCP_REPAIR, &REPAIR_ON.to_ne_bytes())?;
        for (queue, next) in [QUEUE_SEND, QUEUE_RECEIVE].into_iter().zip(self.next) {
            set(socket, libc::TCP_REPAIR_QUEUE, &queue.to_ne_bytes())?;
            set(socket, libc::TCP_QUEUE_SEQ, &next.to_ne_bytes())?;
        }
        socket.connect(peer)?;
        let [theirs, own] = self.scales.map(u32::from);
        let mut options = vec![[MSS, self.mss], [WINDOW_SCALE, theirs | own << 16]];
        options.extend(self.sack.then_some([SACK_PERMITTED, 0]));
        options.extend(self.timestamps.then_some([TIMESTAMPS, 0]));
        let raw: Vec<u8> =
            options.iter().flatten().flat_map(|word: &u32| word.to_ne_bytes()).collect();
        debug_assert_eq!(raw.len(), options.len() * size_of::<RepairOption>());
        set(socket, libc::TCP_REPAIR_OPTIONS, &raw)?;
        // `struct tcp_repair_window`: snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup.
        let ([_, received], [may_fill, offered]) = (self.next, self.windows);
        let window = [received, may_fill, may_fill, offered, received].map(u32::to_ne_bytes);
        set(socket, libc::TCP_REPAIR_WINDOW, window.as_flattened())?;
        if self.timestamps {
            set(socket, libc::TCP_TIMESTAMP, &0_i32.to_ne_bytes())?;
        }
        set(socket, libc::TCP_REPAIR, &REPAIR_OFF_NO_PROBE.to_ne_bytes())
    }
}

#[expect(unsafe_code, reason = "options that no crate wraps")]
fn set(socket: &Socket, option: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads the bytes of `value`, which outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
