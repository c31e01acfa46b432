//! Conversion between segments and IPv4 packets.

use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::{
    Addresses, IpHeader, IpPacket, Payload, TcpHeader, Transport, write_tcp,
};

/// Addresses of the client and the server.
pub(super) const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

/// Ports of the client and the server.
pub(super) const PORTS: [u16; 2] = [40_000, 5_000];

/// Ports of the connection that primes the path metrics of the kernel.
pub(super) const PRIMING_PORTS: [u16; 2] = [40_001, 5_001];

/// A TCP packet: a segment and the options that the state machines of `gridhaul-core` do not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TcpPacket {
    /// The segment, with the unscaled window of the header.
    pub segment: Segment,
    /// Window scale option of a SYN.
    pub scale: Option<u8>,
    /// Maximum segment size option of a SYN.
    pub mss: Option<u16>,
}

/// Flags that cases ignore.
const IGNORED: Flags = Flags::PSH.with(Flags::URG).with(Flags::ECE).with(Flags::CWR);

impl TcpPacket {
    /// Parses a packet; `None` unless it contains a TCP segment over IPv4.
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

    /// The packet from host `from` to the other host, with a payload of zeros.
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
    fn a_written_packet_is_read_back() {
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
        let packet_with_options = TcpPacket { segment, scale: Some(7), mss: Some(1_460) };
        let packet = packet_with_options.write(1, PORTS).unwrap();
        assert_eq!(TcpPacket::read(&packet), Some(packet_with_options));
        assert_eq!(packet.len(), 501 + usize::from(segment.header));
        assert_eq!(IpPacket::parse(&packet).unwrap().verify(), Ok(()));
    }

    #[test]
    fn a_truncated_packet_is_rejected() {
        let whole = TcpPacket { mss: Some(1_000), ..TcpPacket::default() }.write(0, PORTS).unwrap();
        for length in 0..whole.len() {
            assert_eq!(TcpPacket::read(&whole[..length]), None, "{length} bytes");
        }
    }
}
