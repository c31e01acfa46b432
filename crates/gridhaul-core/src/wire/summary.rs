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
}

impl<'a> PacketSummary<'a> {
    /// Reads a packet; `None` if a field is missing or the version is neither 4 nor 6. In a
    /// fragment, the bytes after the IP header are taken as a transport header, and IPv6 extension
    /// headers as another protocol.
    #[inline]
    #[must_use]
    pub fn read(packet: &'a [u8]) -> Option<Self> {
        let (destination, protocol, transport) = match packet.first()? >> 4 {
            4 => {
                let header = usize::from(packet[0] & 0xf) * 4;
                (packet.get(16..20)?, *packet.get(9)?, packet.get(header..)?)
            }
            6 => (packet.get(24..40)?, *packet.get(6)?, packet.get(40..)?),
            _ => return None,
        };
        let (header, seq) = if protocol == TCP {
            let header = usize::from(*transport.get(12)? >> 4) * 4;
            (header, u32::from_be_bytes(transport.get(4..8)?.try_into().ok()?))
        } else {
            (8, 0)
        };
        Some(Self { destination, payload: transport.len().saturating_sub(header) as u32, seq })
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
                let summary = PacketSummary { destination, payload: 33, seq };
                assert_eq!(PacketSummary::read(packet), Some(summary));
            }
            for end in 0..ip.header_len() + 13 {
                assert_eq!(PacketSummary::read(&segment[..end]), None, "{end} bytes");
            }
        }
        assert_eq!(PacketSummary::read(&[0x55; 60]), None);
    }
}
