//! Joining of consecutive segments of a connection into one large frame, as the kernel's receive
//! offload does (`tcp_gro_receive`): the next device divides it again, or passes it on as a whole.
//!
//! Segments are joined if all header fields but those of position and length are the same. PSH may
//! differ: it is in the large frame if one of its segments has it.

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::checksum;

/// Positions in a frame with one TCP segment, or with several that are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Begin of the IP header.
    pub(super) network: usize,
    /// Begin of the TCP header.
    pub(super) transport: usize,
    /// Begin of the payload.
    pub(super) payload: usize,
    pub(super) is_v6: bool,
}

/// Positions in the TCP header (RFC 9293, section 3.1).
const SEQ: usize = 4;
const ACK: usize = 8;
const FLAGS: usize = 13;
const WINDOW: usize = 14;
pub(super) const CHECKSUM: usize = 16;
const URGENT: usize = 18;

/// Largest IP packet.
const PACKET_MAX: usize = 65_535;

/// Flags of segments that are joined.
const JOINED: u8 = Flags::ACK.with(Flags::PSH).with(Flags::ECE).bits();

impl Layout {
    /// Whether the segment with these headers and this much payload continues a frame, whose last
    /// segment is `segment_size` bytes long.
    pub(super) fn continues(
        &self,
        frame: &[u8],
        segment_size: usize,
        next: &[u8],
        payload: usize,
    ) -> bool {
        let present = frame.len() - self.payload;
        if next.len() != self.payload
            || payload == 0
            || payload > segment_size
            || !present.is_multiple_of(segment_size)
            || frame.len() - self.network + payload > PACKET_MAX
        {
            return false;
        }
        let tcp = |bytes: &[u8], at: usize| {
            let at = self.transport + at;
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        tcp(next, SEQ) == tcp(frame, SEQ).wrapping_add(present as u32)
            && self.has_same_fields(frame, next)
    }

    fn has_same_fields(&self, frame: &[u8], next: &[u8]) -> bool {
        let (ip, tcp) = (self.network, self.transport);
        let flags = [frame[tcp + FLAGS], next[tcp + FLAGS]];
        let is_plain = flags.iter().all(|flags| flags & !JOINED == 0);
        let is_same = |range: std::ops::Range<usize>| frame[range.clone()] == next[range];
        // All but the length and, in IPv4, identification and checksum.
        let is_same_ip = match self.is_v6 {
            true => is_same(0..ip + 4) && is_same(ip + 6..tcp),
            false => is_same(0..ip + 2) && is_same(ip + 6..ip + 10) && is_same(ip + 12..tcp),
        };
        is_plain
            && (flags[0] ^ flags[1]) & !Flags::PSH.bits() == 0
            && is_same_ip
            && is_same(tcp..tcp + SEQ)
            && is_same(tcp + ACK..tcp + FLAGS)
            && is_same(tcp + WINDOW..tcp + CHECKSUM)
            && is_same(tcp + URGENT..self.payload)
    }

    /// Corrects the header of a frame to which the payload of a segment with these flags was
    /// added.
    pub(super) fn extend(&self, frame: &mut [u8], flags: u8) {
        let length = frame.len() - self.network;
        let (ip, tcp) = (self.network, self.transport);
        let half = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let at = if self.is_v6 { ip + 4 } else { ip + 2 };
        let before = half(frame, at);
        let stated = if self.is_v6 { length - IPV6_HEADER } else { length };
        let after = stated as u16;
        frame[at..at + 2].copy_from_slice(&after.to_be_bytes());
        if !self.is_v6 {
            let sum = checksum::adjusted(half(frame, ip + 10), before, after);
            frame[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
        }
        // The sum of the pseudo header contains the length, and is not complemented.
        let sum = !checksum::adjusted(!half(frame, tcp + CHECKSUM), before, after);
        frame[tcp + CHECKSUM..tcp + CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        frame[tcp + FLAGS] |= flags & Flags::PSH.bits();
    }

    /// Flags of a segment with these headers.
    pub(super) fn flags(&self, headers: &[u8]) -> u8 {
        headers[self.transport + FLAGS]
    }
}

/// Bytes of the fixed header of IPv6.
const IPV6_HEADER: usize = 40;
