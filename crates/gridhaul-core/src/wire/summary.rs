//! The fields that the emulator needs to forward a packet.

use super::TCP;

/// Destination, payload and sequence number of a packet, read at fixed offsets and without the
/// checks of [`super::IpPacket`], which take several times as long. The emulator reads packets of a
/// kernel, whose length fields are correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSummary<'a> {
    /// Octets of the destination: 4 or 16.
    pub destination: &'a [u8],
    /// Bytes after the transport header, which has 8 bytes in all protocols except TCP.
    pub payload: u32,
    /// Sequence number of TCP; 0 in other protocols.
    pub seq: u32,
    /// Differentiated services code point and ECN field: the octet "type of service" of IPv4, the
    /// traffic class of IPv6 (RFC 2474, section 3; RFC 3168, section 5).
    pub traffic_class: u8,
    /// Identification of the datagram of which the packet is a fragment.
    pub fragment_of: Option<u32>,
}

/// Protocol number of the fragment header of IPv6 (RFC 8200, section 4.5).
const IPV6_FRAGMENT: u8 = 44;

impl<'a> PacketSummary<'a> {
    /// Reads a packet; `None` if a field is missing or the version is neither 4 nor 6. A fragment
    /// that is not the first one has no transport header. IPv6 extension headers other than the
    /// fragment header are taken as another protocol.
    #[inline]
    #[must_use]
    pub fn read(packet: &'a [u8]) -> Option<Self> {
        let ip = IpFields::read(packet)?;
        let IpFields { destination, protocol, transport, traffic_class, fragment } = ip;
        let (header, seq) = match protocol {
            // Only the first fragment has the transport header.
            _ if fragment.is_some_and(|(_, offset)| offset > 0) => (0, 0),
            TCP => {
                let header = usize::from(*transport.get(12)? >> 4) * 4;
                (header, u32::from_be_bytes(transport.get(4..8)?.try_into().ok()?))
            }
            _ => (8, 0),
        };
        let payload = transport.len().saturating_sub(header) as u32;
        let fragment_of = fragment.map(|(identification, _)| identification);
        Some(Self { destination, payload, seq, traffic_class, fragment_of })
    }
}

/// The fields of an IP header, and the bytes after it.
struct IpFields<'a> {
    destination: &'a [u8],
    protocol: u8,
    transport: &'a [u8],
    traffic_class: u8,
    /// Identification and offset of a fragment.
    fragment: Option<(u32, u16)>,
}

impl<'a> IpFields<'a> {
    #[inline]
    fn read(packet: &'a [u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let header = usize::from(packet[0] & 0xf) * 4;
                // Flag "more fragments" and offset (RFC 791, section 3.1).
                let flags = u16::from_be_bytes(packet.get(6..8)?.try_into().ok()?);
                let identification = u16::from_be_bytes(packet.get(4..6)?.try_into().ok()?);
                let is_fragment = flags & 0x3fff != 0;
                Some(Self {
                    destination: packet.get(16..20)?,
                    protocol: *packet.get(9)?,
                    transport: packet.get(header..)?,
                    traffic_class: packet[1],
                    fragment: is_fragment.then_some((identification.into(), flags & 0x1fff)),
                })
            }
            6 => {
                let destination = packet.get(24..40)?;
                let traffic_class = packet[0] << 4 | packet[1] >> 4;
                let (protocol, transport, fragment) = match packet[6] {
                    IPV6_FRAGMENT => {
                        let header = packet.get(40..48)?;
                        let offset = u16::from_be_bytes([header[2], header[3]]) >> 3;
                        let identification = u32::from_be_bytes(header[4..8].try_into().ok()?);
                        (header[0], packet.get(48..)?, Some((identification, offset)))
                    }
                    protocol => (protocol, packet.get(40..)?, None),
                };
                Some(Self { destination, protocol, transport, traffic_class, fragment })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;

    #[test]
    fn a_summary_has_the_fields_of_the_packet() {
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let v4 = Addresses::V4 { source, destination };
        let (source, destination) = (1_u128.into(), 2_u128.into());
        for addresses in [v4, Addresses::V6 { source, destination }] {
            let ip = IpHeader::new(addresses);
            let options = TcpOptions { timestamps: Some((1, 2)), ..TcpOptions::default() };
            let tcp = TcpHeader { seq: 77, options, ..TcpHeader::default() };
            let (mut segment, mut datagram) = (Vec::new(), Vec::new());
            write_tcp(&mut segment, &ip, &tcp, Payload::Bytes(&[0; 33])).unwrap();
            let udp = UdpHeader::default();
            write_udp(&mut datagram, &ip, &udp, Payload::Bytes(&[0; 33])).unwrap();
            for (packet, seq) in [(&segment, 77), (&datagram, 0)] {
                let destination = IpPacket::parse(packet).unwrap().destination();
                let summary = PacketSummary {
                    destination,
                    payload: 33,
                    seq,
                    traffic_class: 0,
                    fragment_of: None,
                };
                assert_eq!(PacketSummary::read(packet), Some(summary));
            }
            for end in 0..ip.header_len() + 13 {
                assert_eq!(PacketSummary::read(&segment[..end]), None, "{end} bytes");
            }
        }
        assert_eq!(PacketSummary::read(&[0x55; 60]), None);
    }

    #[test]
    fn fragments_have_the_identification_of_their_datagram() {
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let ip = IpHeader::new(Addresses::V4 { source, destination });
        let mut first = Vec::new();
        write_udp(&mut first, &ip, &UdpHeader::default(), Payload::Bytes(&[0; 32])).unwrap();
        first[4..8].copy_from_slice(&[0x12, 0x34, 0x20, 0]);
        let mut later = first.clone();
        later[6..8].copy_from_slice(&[0, 5]);
        let read = |packet: &[u8]| {
            let summary = PacketSummary::read(packet).unwrap();
            (summary.payload, summary.fragment_of)
        };
        assert_eq!((read(&first), read(&later)), ((32, Some(0x1234)), (40, Some(0x1234))));
        // "Do not fragment" is no fragment.
        later[6..8].copy_from_slice(&[0x40, 0]);
        assert_eq!(read(&later), (32, None));
        // IPv6: a fragment header, then 20 B of a datagram from offset 16 B on.
        let mut packet = vec![0x6b, 0x80, 0, 0, 0, 28, 44, 64];
        packet.extend([0; 32]);
        packet.extend([17, 0, 0, 0x10, 0, 0, 0, 9]);
        packet.extend([0; 20]);
        assert_eq!(read(&packet), (20, Some(9)));
        assert_eq!(PacketSummary::read(&packet).unwrap().traffic_class, 0xb8);
        assert_eq!(PacketSummary::read(&packet[..47]), None);
    }
}
