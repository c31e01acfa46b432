//! Errors below the checksums: on the link, or in a device that forwards packets.

use gridhaul_core::wire::{Addresses, IpHeader, IpPacket, Payload, UdpHeader, write_udp};

use super::patterns::ErrorPattern;
use super::{Fate, Fates, fates};

/// A checksum between sender and receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The checksum of UDP and TCP, a sum of 16-bit words (RFC 1071); the IP header is intact.
    Internet,
    /// The frame check sequence of Ethernet, a CRC-32 (IEEE 802.3, section 3.2.9). It protects a
    /// single link: a switch or a router that corrupts a frame computes a new one.
    FrameCheckSequence,
}

impl Checksum {
    /// Name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Internet => "UDP, TCP (16-bit sum)",
            Self::FrameCheckSequence => "Ethernet (CRC-32)",
        }
    }
}

/// Fates of a datagram with a payload of this size. `silently_wrong` are those that the checksum
/// does not detect.
#[must_use]
pub fn below_checksums(
    checksum: Checksum,
    payload: usize,
    pattern: ErrorPattern,
    seed: u64,
) -> Fates {
    let bytes: Vec<u8> =
        (0..payload as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    match checksum {
        Checksum::Internet => {
            let packet = datagram(&bytes);
            let Ok(ip) = IpPacket::parse(&packet) else { return Fates::default() };
            let (header, rest) = packet.split_at(ip.header_len());
            fates(rest, pattern, seed, |corrupt| {
                let packet = [header, corrupt].concat();
                let accepted = IpPacket::parse(&packet).is_ok_and(|ip| ip.verify().is_ok());
                if accepted { Fate::SilentlyWrong } else { Fate::Rejected }
            })
        }
        Checksum::FrameCheckSequence => {
            let sum = crc32fast::hash(&bytes).to_le_bytes();
            let frame = [&bytes[..], &sum].concat();
            fates(&frame, pattern, seed, |corrupt| {
                let accepted = corrupt
                    .split_last_chunk::<4>()
                    .is_some_and(|(data, sum)| crc32fast::hash(data).to_le_bytes() == *sum);
                if accepted { Fate::SilentlyWrong } else { Fate::Rejected }
            })
        }
    }
}

fn datagram(payload: &[u8]) -> Vec<u8> {
    let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let ip = IpHeader::new(Addresses::V4 { source, destination });
    let udp = UdpHeader { source_port: 40_000, destination_port: 40_001 };
    let mut packet = Vec::new();
    // The payload is shorter than the largest datagram.
    let _ = write_udp(&mut packet, &ip, &udp, Payload::Bytes(payload));
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_is_always_detected() {
        for checksum in [Checksum::Internet, Checksum::FrameCheckSequence] {
            let fates = below_checksums(checksum, 132, ErrorPattern::EveryBit, 1);
            assert!(fates.total() >= 132 * 8 && fates.rejected == fates.total(), "{fates:?}");
        }
    }

    /// Two errors cancel in a sum of 16-bit words if they are at the same place of their words and
    /// one bit was 0, the other 1: one in 32 pairs of random bits.
    #[test]
    fn the_internet_checksum_misses_one_in_32_errors_of_two_bits() {
        let fates = below_checksums(Checksum::Internet, 132, ErrorPattern::TwoBits, 1);
        let share = fates.silently_wrong as f64 / fates.total() as f64;
        assert!((share - 1.0 / 32.0).abs() < 0.004, "{share}");
        let fates = below_checksums(Checksum::FrameCheckSequence, 132, ErrorPattern::TwoBits, 1);
        assert_eq!(fates.silently_wrong, 0);
    }

    #[test]
    fn the_crc_detects_every_burst_of_16_bits() {
        let fates = below_checksums(Checksum::FrameCheckSequence, 132, ErrorPattern::Burst, 1);
        assert!(fates.total() > 1_000 && fates.silently_wrong == 0, "{fates:?}");
    }
}
