//! Segments as bytes, between two addresses of IPv4.

use gridhaul_core::checksum;
use gridhaul_core::tcp::{Flags, SackBlocks, Segment};

/// Addresses of the two ends: client, server.
pub(super) const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

/// Ports of the two ends.
pub(super) const PORTS: [u16; 2] = [40_000, 5_000];

/// Ports of a connection before that.
pub(super) const BEFORE: [u16; 2] = [40_001, 5_001];

/// A segment on the wire, with what the machines of `gridhaul-core` do not keep of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wire {
    /// The segment; its window as it stands in the header.
    pub segment: Segment,
    /// Window scale, which comes with SYN.
    pub scale: Option<u8>,
    /// Maximum segment size, which comes with SYN.
    pub mss: Option<u16>,
}

const TCP: u8 = 6;
const IP_HEADER: usize = 20;

// Kinds of TCP options (RFC 9293, 3.2; RFC 7323, 2.2 and 3.2; RFC 2018, 2 and 3).
const END: u8 = 0;
const NOTHING: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

impl Wire {
    /// Reads a packet; `None` where it is no segment of TCP over IPv4.
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        if packet.first()? >> 4 != 4 || *packet.get(9)? != TCP {
            return None;
        }
        let tcp = packet.get(usize::from(packet[0] & 15) * 4..)?;
        let length = usize::from(*tcp.get(12)? >> 4) * 4;
        let (header, payload) = (tcp.get(..length)?, &tcp[length..]);
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let known = [Flags::FIN, Flags::SYN, Flags::RST, Flags::ACK];
        let set = known.into_iter().filter(|flag| header[13] & flag.bits() != 0);
        let mut wire = Self {
            segment: Segment {
                seq: word(&header[4..])?,
                ack: word(&header[8..])?,
                len: payload.len() as u32,
                window: u32::from(half(14)),
                flags: set.fold(Flags::NONE, Flags::with),
                header: (IP_HEADER + length) as u8,
                ..Segment::default()
            },
            ..Self::default()
        };
        wire.read_options(&header[20..])?;
        Some(wire)
    }

    fn read_options(&mut self, mut rest: &[u8]) -> Option<()> {
        while let Some(&kind) = rest.first() {
            if kind == END {
                break;
            }
            if kind == NOTHING {
                rest = &rest[1..];
                continue;
            }
            let length = usize::from(*rest.get(1)?).max(2);
            let value = rest.get(2..length)?;
            match kind {
                MSS => self.mss = Some(u16::from_be_bytes([*value.first()?, *value.get(1)?])),
                SCALE => self.scale = value.first().copied(),
                SACK_PERMITTED => self.segment.sack_permitted = true,
                SACK => {
                    let mut blocks = SackBlocks::default();
                    for block in value.chunks_exact(8).take(SackBlocks::MAX) {
                        blocks.push(word(block)?, word(&block[4..])?);
                    }
                    self.segment.sack = blocks;
                }
                TIMESTAMPS => {
                    self.segment.timestamps = Some((word(value)?, word(value.get(4..)?)?));
                }
                _ => {}
            }
            rest = &rest[length..];
        }
        Some(())
    }

    /// The packet from the end of this number to the other one, with right checksums.
    pub(super) fn write(&self, from: usize, ports: [u16; 2]) -> Vec<u8> {
        let options = self.options();
        let segment = &self.segment;
        let header = 20 + options.len();
        let total = IP_HEADER + header + segment.len as usize;
        let mut packet = vec![0x45, 0];
        packet.extend((total as u16).to_be_bytes());
        // No identification, not to be cut, 64 hops, and the checksum to come.
        packet.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
        packet.extend(ADDRESSES[from]);
        packet.extend(ADDRESSES[1 - from]);
        let sum = checksum::internet(0, &packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(ports[from].to_be_bytes());
        packet.extend(ports[1 - from].to_be_bytes());
        packet.extend(segment.seq.to_be_bytes());
        packet.extend(segment.ack.to_be_bytes());
        packet.extend([(header as u8 / 4) << 4, segment.flags.bits()]);
        packet.extend((segment.window as u16).to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(options);
        packet.resize(total, 0);
        // RFC 9293, 3.1: addresses, protocol and length count as well.
        let pseudo = ADDRESSES.as_flattened().chunks_exact(2);
        let pseudo: u32 =
            pseudo.map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let pseudo = pseudo + u32::from(TCP) + (total - IP_HEADER) as u32;
        let sum = checksum::internet(pseudo, &packet[IP_HEADER..]);
        packet[IP_HEADER + 16..IP_HEADER + 18].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn options(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some(mss) = self.mss {
            options.extend([MSS, 4]);
            options.extend(mss.to_be_bytes());
        }
        if let Some(scale) = self.scale {
            options.extend([NOTHING, SCALE, 3, scale]);
        }
        if self.segment.sack_permitted {
            options.extend([NOTHING, NOTHING, SACK_PERMITTED, 2]);
        }
        if let Some((own, echo)) = self.segment.timestamps {
            options.extend([NOTHING, NOTHING, TIMESTAMPS, 10]);
            options.extend(own.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        let blocks = self.segment.sack.as_slice();
        if !blocks.is_empty() {
            options.extend([NOTHING, NOTHING, SACK, 2 + 8 * blocks.len() as u8]);
            for (left, right) in blocks {
                options.extend(left.to_be_bytes());
                options.extend(right.to_be_bytes());
            }
        }
        options
    }
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut segment = Segment {
            seq: 1_000,
            ack: u32::MAX,
            len: 501,
            window: 30_000,
            timestamps: Some((7, 8)),
            sack_permitted: true,
            flags: Flags::SYN.with(Flags::ACK),
            header: 40 + 4 + 4 + 4 + 12 + 12,
            ..Segment::default()
        };
        segment.sack.push(5, 9);
        let wire = Wire { segment, scale: Some(7), mss: Some(1_460) };
        let packet = wire.write(1, PORTS);
        assert_eq!(Wire::read(&packet), Some(wire));
        assert_eq!(packet.len(), 501 + usize::from(segment.header));
    }

    #[test]
    fn checksums_are_right() {
        let packet = Wire::default().write(0, PORTS);
        assert_eq!(checksum::internet(0, &packet[..20]), 0, "a right header adds up to nothing");
    }

    #[test]
    fn what_is_cut_short_is_no_segment() {
        let whole = Wire { mss: Some(1_000), ..Wire::default() }.write(0, PORTS);
        for length in 0..whole.len() {
            assert_eq!(Wire::read(&whole[..length]), None, "{length} bytes");
        }
    }
}
