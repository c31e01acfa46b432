//! The headers of a packet that the emulator uses: its flow, its direction, and its payload.

use std::ops::Range;

use gridhaul_core::link::EcnCodePoint;
use gridhaul_core::wire::{EtherType, EthernetFrame, IpPacket, PacketRewriter, PacketSummary};

use crate::network::Address;
use gridhaul_scenario::scenario::{Dscp, FlowEnd};

/// Flow and payload of a packet, from its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Destination address: flow, end and member.
    pub to: Address,
    /// Bytes after the TCP or UDP header.
    pub payload: u32,
    /// TCP sequence number of the first payload byte.
    pub seq: u32,
    /// Differentiated services code point.
    pub dscp: Dscp,
    /// ECN field.
    pub ecn: EcnCodePoint,
    /// Identification of the datagram of which the packet is a fragment.
    pub fragment_of: Option<u32>,
}

impl Header {
    /// Parses a packet; `None` if it belongs to no flow (neighbour discovery of the kernel, an
    /// error message).
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let PacketSummary { destination, payload, seq, traffic_class, fragment_of } =
            PacketSummary::read(packet)?;
        let dscp = Dscp::of_octet(traffic_class);
        let ecn = EcnCodePoint::of_traffic_class(traffic_class);
        Some(Self { to: Address::of(destination)?, payload, seq, dscp, ecn, fragment_of })
    }

    /// Parses an Ethernet frame of the first member of a flow; `None` for the kernel's own frames
    /// (IP, ARP), which belong to no flow of frames.
    pub(crate) fn read_frame(frame: &[u8], flow: usize, side: FlowEnd) -> Option<Self> {
        const ARP: EtherType = EtherType(0x0806);
        let EthernetFrame { header, payload } = EthernetFrame::parse(frame).ok()?;
        let is_own = ![EtherType::IPV4, EtherType::IPV6, ARP].contains(&header.ether_type);
        let to = Address { flow: flow as u16, side, number: 0 };
        let payload = payload.len() as u32;
        let (dscp, ecn) = (Dscp::default(), EcnCodePoint::NotEct);
        is_own.then_some(Self { to, payload, seq: 0, dscp, ecn, fragment_of: None })
    }

    /// Whether the packet goes from the `from` end to the `to` end of its flow.
    pub(crate) fn is_forward(&self) -> bool {
        self.to.side == FlowEnd::To
    }

    /// The [`flow_key`](Self::flow_key) of all packets of a flow.
    pub(crate) fn flow_keys(flow: usize) -> Range<u64> {
        (flow as u64) << 33..(flow as u64 + 1) << 33
    }

    /// A number that the packets of one flow in one direction share.
    pub(crate) fn flow_key(&self) -> u64 {
        let Address { flow, number, .. } = self.to;
        u64::from(flow) << 33 | u64::from(number) << 1 | u64::from(self.is_forward())
    }
}

/// Flips a bit after the IP header, so that the TCP or UDP checksum is wrong. The IP header stays
/// intact, because the packet would not be delivered otherwise.
pub(crate) fn corrupt(packet: &mut [u8]) {
    let Ok(ip) = IpPacket::parse(packet) else { return };
    // The first byte of the window field in TCP; in a short datagram, the last byte.
    let at = (ip.header_len() + 14).min(packet.len().saturating_sub(1));
    if let Some(byte) = packet.get_mut(at) {
        *byte ^= 0x10;
    }
}

/// Flips a bit in the last byte of the data and adjusts the TCP or UDP checksum, so that the
/// receiver accepts the data. A packet without data stays unchanged.
pub(crate) fn corrupt_undetected(packet: &mut [u8]) {
    let Ok(mut rewriter) = PacketRewriter::parse(packet) else { return };
    if let [before @ .., last] = rewriter.payload() {
        let (at, corrupted) = (before.len(), last ^ 0x10);
        rewriter.set_payload(at, &[corrupted]);
    }
}

/// Flips a bit in the last byte of a frame whose frame check sequence is valid nevertheless: it was
/// computed after the error, in a switch for example.
pub(crate) fn corrupt_frame_undetected(frame: &mut [u8]) {
    if let Some(last) = frame.last_mut() {
        *last ^= 0x10;
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_core::wire::{Addresses, IpHeader, Payload, TcpHeader, TcpOptions, write_tcp};

    use super::*;

    fn tcp(payload: &[u8]) -> Vec<u8> {
        let (source, destination) = ([10, 2, 0, 7].into(), [10, 3, 0, 7].into());
        let options = TcpOptions { timestamps: Some((1, 2)), ..TcpOptions::default() };
        let header = TcpHeader { seq: 0x0102_0304, options, ..TcpHeader::default() };
        let ip = IpHeader::new(Addresses::V4 { source, destination });
        let mut packet = Vec::new();
        write_tcp(&mut packet, &ip, &header, Payload::Bytes(payload)).unwrap();
        packet
    }

    #[test]
    fn options_are_not_payload() {
        let header = Header::read(&tcp(&[0; 100])).unwrap();
        assert_eq!((header.payload, header.seq), (100, 0x0102_0304));
        assert_eq!(header.to, Address { flow: 1, side: FlowEnd::To, number: 6 });
        assert!(header.is_forward());
    }

    #[test]
    fn frames_of_the_kernel_belong_to_no_flow() {
        let frame = |ether_type: [u8; 2]| [&[0; 12][..], &ether_type, &[1, 2, 3]].concat();
        let header = Header::read_frame(&frame([0x88, 0xba]), 2, FlowEnd::From).unwrap();
        assert_eq!((header.to.flow, header.payload, header.is_forward()), (2, 3, false));
        for kernel in [[0x08, 0x00], [0x08, 0x06], [0x86, 0xdd]] {
            assert_eq!(Header::read_frame(&frame(kernel), 2, FlowEnd::From), None);
        }
        assert_eq!(Header::read_frame(&[0; 13], 0, FlowEnd::To), None);
    }

    #[test]
    fn a_truncated_packet_belongs_to_no_flow() {
        let intact = tcp(&[]);
        for length in 0..20 + 13 {
            assert_eq!(Header::read(&intact[..length]), None, "{length} bytes");
        }
        let mut foreign = intact;
        foreign[16] = 192;
        assert_eq!(Header::read(&foreign), None);
    }

    #[test]
    fn echo_replies_belong_to_a_flow() {
        let mut packet = tcp(&[0; 16]);
        packet[9] = 1;
        let echo = Header::read(&packet).unwrap();
        assert_eq!((echo.payload, echo.seq), (32 + 16 - 8, 0));
    }

    #[test]
    fn corruption_leaves_the_ip_header_intact() {
        let (mut damaged, intact) = (tcp(&[0; 5]), tcp(&[0; 5]));
        corrupt(&mut damaged);
        assert_eq!(damaged[..20], intact[..20]);
        let flipped: u32 =
            damaged.iter().zip(&intact).map(|(after, before)| (after ^ before).count_ones()).sum();
        assert_eq!(flipped, 1);
        let mut tiny = vec![0x45; 3];
        corrupt(&mut tiny);
        corrupt(&mut []);
    }

    #[test]
    fn undetected_corruption_has_a_correct_checksum() {
        for payload in [1, 2, 5, 100] {
            let data: Vec<u8> = (1..=payload).collect();
            let intact = tcp(&data);
            let mut packet = intact.clone();
            corrupt_undetected(&mut packet);
            assert_eq!(IpPacket::parse(&packet).unwrap().verify(), Ok(()), "{payload} bytes");
            assert_eq!(packet[..36], intact[..36]);
            assert_ne!(packet.last(), intact.last());
        }
    }

    #[test]
    fn packets_without_data_or_complete_headers_stay_unchanged() {
        for mut packet in [tcp(&[]), vec![0x45; 3], vec![]] {
            let intact = packet.clone();
            corrupt_undetected(&mut packet);
            assert_eq!(packet, intact);
        }
    }
}
