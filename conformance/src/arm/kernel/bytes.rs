//! Segments as packets between two addresses of IPv4.

use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::{
    Addresses, IpHeader, IpPacket, Payload, TcpHeader, Transport, write_tcp,
};

/// Addresses of the two ends: client, server.
pub(super) const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

/// Ports of the two ends.
pub(super) const PORTS: [u16; 2] = [40_000, 5_000];

/// Ports of a connection before that.
pub(super) const BEFORE: [u16; 2] = [40_001, 5_001];

/// A segment on the wire, with the options that the state machines of `gridhaul-core` do not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wire {
    /// The segment; its window as it stands in the header.
    pub segment: Segment,
    /// Window scale, which comes with SYN.
    pub scale: Option<u8>,
    /// Maximum segment size, which comes with SYN.
    pub mss: Option<u16>,
}

/// Control bits that cases do not look at.
const IGNORED: Flags = Flags::PSH.with(Flags::URG).with(Flags::ECE).with(Flags::CWR);

impl Wire {
    /// Parses a packet; `None` where it is no segment of TCP over IPv4.
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let ip = IpPacket::parse(packet).ok()?;
        let (Addresses::V4 { .. }, Ok(Transport::Tcp(tcp))) = (ip.addresses(), ip.transport())
        else {
            return None;
        };
        let options = tcp.header().ok()?.options;
        let segment = tcp.segment(ip.header_len()).ok()?;
        let segment = Segment { flags: segment.flags.without(IGNORED), ..segment };
        Some(Self { segment, scale: options.window_scale, mss: options.mss })
    }

    /// The packet from the end of this number to the other one, with data of zeros.
    pub(super) fn write(&self, from: usize, ports: [u16; 2]) -> Result<Vec<u8>, String> {
        let (source, destination) = (ADDRESSES[from].into(), ADDRESSES[1 - from].into());
        let ip = IpHeader::new(Addresses::V4 { source, destination });
        let mut tcp = TcpHeader::from_segment(&self.segment, ports[from], ports[1 - from]);
        tcp.options.window_scale = self.scale;
        tcp.options.mss = self.mss;
        let mut packet = Vec::new();
        let whole = write_tcp(&mut packet, &ip, &tcp, Payload::Omitted(self.segment.len))
            .map_err(|error| format!("writing a segment: {error}"))?;
        packet.resize(whole as usize, 0);
        Ok(packet)
    }
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
        let packet = wire.write(1, PORTS).unwrap();
        assert_eq!(Wire::read(&packet), Some(wire));
        assert_eq!(packet.len(), 501 + usize::from(segment.header));
        assert_eq!(IpPacket::parse(&packet).unwrap().verify(), Ok(()));
    }

    #[test]
    fn what_is_cut_short_is_no_segment() {
        let whole = Wire { mss: Some(1_000), ..Wire::default() }.write(0, PORTS).unwrap();
        for length in 0..whole.len() {
            assert_eq!(Wire::read(&whole[..length]), None, "{length} bytes");
        }
    }
}
