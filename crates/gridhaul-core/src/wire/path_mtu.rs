//! Reports of routers about packets that exceed the MTU of a link.

use super::IpPacket;

/// Protocol numbers of ICMP (RFC 792) and ICMPv6 (RFC 4443).
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// The MTU in a report that a packet is too big: "fragmentation needed" of ICMP (RFC 1191, section
/// 4) or "packet too big" of ICMPv6 (RFC 4443, section 3.2). `None` for other packets.
#[must_use]
pub fn reported_mtu(packet: &[u8]) -> Option<u32> {
    // Most packets are segments, which the first octets tell.
    let protocol = match packet.first()? >> 4 {
        4 => *packet.get(9)?,
        _ => *packet.get(6)?,
    };
    if protocol != ICMP && protocol != ICMP_V6 {
        return None;
    }
    let ip = IpPacket::parse(packet).ok()?;
    let message = ip.payload();
    let mtu = u32::from_be_bytes(message.get(4..8)?.try_into().ok()?);
    match (ip.protocol(), message[0], message[1]) {
        (ICMP, 3, 4) => Some(mtu & 0xffff),
        (ICMP_V6, 2, 0) => Some(mtu),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Addresses, IpHeader, Payload, UdpHeader, write_udp};

    /// A packet of this protocol whose content begins with `message`.
    fn packet(addresses: Addresses, protocol: u8, message: [u8; 8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let ip = IpHeader::new(addresses);
        write_udp(&mut packet, &ip, &UdpHeader::default(), Payload::Bytes(&[0; 28])).unwrap();
        let (at, start) = if packet[0] >> 4 == 4 { (9, 20) } else { (6, 40) };
        packet[at] = protocol;
        packet[start..start + 8].copy_from_slice(&message);
        packet
    }

    #[test]
    fn reports_of_both_ip_versions_have_the_mtu_of_the_link() {
        let v4 = Addresses::V4 { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into() };
        let v6 = Addresses::V6 { source: 1_u128.into(), destination: 2_u128.into() };
        // The unused field before the MTU of ICMP may contain anything (RFC 4884).
        let report = packet(v4, ICMP, [3, 4, 0, 0, 0, 9, 5, 120]);
        assert_eq!(reported_mtu(&report), Some(1_400));
        let report = packet(v6, ICMP_V6, [2, 0, 0, 0, 0, 0, 5, 120]);
        assert_eq!(reported_mtu(&report), Some(1_400));
        let others = [
            packet(v4, ICMP, [3, 3, 0, 0, 0, 0, 5, 120]),
            packet(v6, ICMP_V6, [1, 4, 0, 0, 0, 0, 5, 120]),
            packet(v4, 17, [3, 4, 0, 0, 0, 0, 5, 120]),
        ];
        assert!(others.iter().all(|other| reported_mtu(other).is_none()));
        assert_eq!(reported_mtu(&report[..44]), None);
        assert_eq!(reported_mtu(&[]), None);
    }
}
