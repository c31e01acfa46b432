//! Congestion marks in the IP header.

use super::super::checksum;

/// Marks an IP packet: sets its ECN field to "congestion experienced" (RFC 3168, section 5), and
/// updates the header checksum of IPv4. A packet of another version, or without a complete first
/// line of its header, stays unchanged.
pub fn mark_congestion(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 12 => {
            let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
            let (before, stored) = (word(0), word(10));
            let sum = checksum::adjusted(stored, before, before | 3);
            packet[1] |= 3;
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        // The traffic class begins with the low half of the first octet.
        Some(6) if packet.len() >= 2 => packet[1] |= 0x30,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::EcnCodePoint;
    use crate::wire::{Addresses, IpHeader, PacketSummary, Payload, UdpHeader, write_udp};

    #[test]
    fn a_marked_packet_has_a_correct_checksum_and_its_old_code_point() {
        let v4 = Addresses::V4 { source: [10, 0, 0, 1].into(), destination: [10, 9, 8, 7].into() };
        let v6 = Addresses::V6 { source: 1_u128.into(), destination: 2_u128.into() };
        for (addresses, ecn) in [(v4, 1), (v4, 2), (v4, 3), (v6, 1), (v6, 2)] {
            let ip = IpHeader { traffic_class: 0xb8 | ecn, ..IpHeader::new(addresses) };
            let (mut packet, mut expected) = (Vec::new(), Vec::new());
            let udp = UdpHeader::default();
            write_udp(&mut packet, &ip, &udp, Payload::Bytes(&[0x5a; 33])).unwrap();
            let ip = IpHeader { traffic_class: 0xb8 | EcnCodePoint::Ce.bits(), ..ip };
            write_udp(&mut expected, &ip, &udp, Payload::Bytes(&[0x5a; 33])).unwrap();
            mark_congestion(&mut packet);
            assert_eq!(packet, expected);
            assert_eq!(PacketSummary::read(&packet).unwrap().traffic_class, 0xbb);
        }
        let mut other = [0x50, 0, 0];
        mark_congestion(&mut other);
        mark_congestion(&mut []);
        assert_eq!(other, [0x50, 0, 0]);
    }
}
