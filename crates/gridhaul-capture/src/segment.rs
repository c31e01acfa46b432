//! A TCP segment of a capture.

use std::net::SocketAddr;

use gridhaul_core::tcp::{Flags, SackBlocks};
use gridhaul_scenario::units::Instant;

/// A TCP segment as it was captured. Its payload may be missing, as with a short snapshot length.
#[derive(Debug, Clone, Copy)]
pub struct CapturedSegment {
    /// Time of the capture. Since 1970, or since the start of a simulation.
    pub at: Instant,
    /// Point of the capture: an interface of a file. Both directions of a link of gridhaul are one
    /// point.
    pub point: u32,
    /// Network device of a cooked capture, such as one of all devices, and the direction at it. 0:
    /// the capture does not state it.
    pub device: u32,
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver.
    pub destination: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number; valid with [`Flags::ACK`].
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Bytes of payload, captured or not.
    pub payload: u32,
    /// Bytes of the IP packet.
    pub packet: u32,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Maximum segment size, in a SYN (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale, in a SYN (RFC 7323, section 2).
    pub window_scale: Option<u8>,
    /// Timestamps: value and echo reply (RFC 7323, section 3).
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements (RFC 2018).
    pub sack: SackBlocks,
}

impl CapturedSegment {
    /// Whether the segment has payload.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        self.payload > 0
    }

    /// Whether the segment only acknowledges.
    #[must_use]
    pub const fn is_pure_ack(&self) -> bool {
        self.payload == 0
            && self.flags.has(Flags::ACK)
            && !self.flags.has(Flags::SYN)
            && !self.flags.has(Flags::FIN)
            && !self.flags.has(Flags::RST)
    }
}
