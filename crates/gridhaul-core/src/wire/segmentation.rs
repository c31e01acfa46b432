//! Work that a sender has left to its network device: large TCP packets that stand for several, and
//! their checksums (generic segmentation offload of Linux).

use super::ip::{Addresses, IpPacket, Transport};
use super::{TCP, TcpHeader, WireError, checksum};
use crate::tcp::Flags;

/// A large TCP packet, divided into packets of a segment size as Linux does
/// (`tcp_gso_segment`, `inet_gso_segment`).
///
/// All packets have the headers of the large one with its options. The sequence number rises by the
/// payload and, in IPv4, the identification by one. FIN and PSH are only in the last packet; CWR
/// only in the first, because it reports one reduction of the window (RFC 3168, section 6.1.2).
/// Checksums are computed, whether or not that of the large packet is.
#[derive(Debug, Clone, Copy)]
pub struct TcpSegmenter<'a> {
    headers: &'a [u8],
    payload: &'a [u8],
    addresses: Addresses,
    /// Position of the TCP header.
    tcp: usize,
    size: usize,
}

impl<'a> TcpSegmenter<'a> {
    /// Divides a packet, from its IP header on, into packets with `size` bytes of payload; the last
    /// may be shorter. A size of 0 does not divide it.
    ///
    /// # Errors
    /// Those of [`IpPacket::parse`] and [`IpPacket::transport`], and [`WireError::Protocol`] for a
    /// packet that is not TCP.
    pub fn new(packet: &'a [u8], size: u16) -> Result<Self, WireError> {
        let ip = IpPacket::parse(packet)?;
        let segment = match ip.transport()? {
            Transport::Tcp(segment) => segment,
            Transport::Udp(_) | Transport::Other(_) => {
                return Err(WireError::Protocol(ip.protocol()));
            }
        };
        let payload = segment.payload();
        let tcp = ip.header_len();
        let headers = &packet[..tcp + segment.header_len()];
        let size = if size == 0 { payload.len().max(1) } else { usize::from(size) };
        Ok(Self { headers, payload, addresses: ip.addresses(), tcp, size })
    }

    /// Number of packets, at least one.
    #[must_use]
    pub const fn count(&self) -> usize {
        let count = self.payload.len().div_ceil(self.size);
        if count == 0 { 1 } else { count }
    }

    /// Payload of the packet of this number, counted from 0.
    ///
    /// # Panics
    /// If there is no such packet.
    #[must_use]
    pub fn payload(&self, index: usize) -> &'a [u8] {
        let count = self.count();
        assert!(index < count, "packet {index} of {count}");
        let first = index * self.size;
        &self.payload[first..self.payload.len().min(first + self.size)]
    }

    /// The TCP header of the packet of this number, from that of the large packet.
    #[must_use]
    pub const fn header<'h>(&self, index: usize, large: &TcpHeader<'h>) -> TcpHeader<'h> {
        let mut header = *large;
        header.seq = large.seq.wrapping_add((index * self.size) as u32);
        if index + 1 < self.count() {
            header.flags = header.flags.without(Flags::FIN.with(Flags::PSH));
        }
        if index > 0 {
            header.flags = header.flags.without(Flags::CWR);
        }
        header
    }

    /// Appends the packet of this number, counted from 0, to `buffer`.
    ///
    /// # Panics
    /// If there is no such packet.
    pub fn write(&self, index: usize, buffer: &mut Vec<u8>) {
        let begin = buffer.len();
        self.write_headers(index, buffer);
        buffer.extend_from_slice(self.payload(index));
        // The sum of the pseudo header is already there.
        let tcp = &mut buffer[begin + self.tcp..];
        let sum = checksum::internet(0, tcp);
        tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Appends the headers of the packet of this number to `buffer`. In place of the checksum of
    /// TCP is the sum of the pseudo header, to which the network device adds the rest.
    ///
    /// # Panics
    /// If there is no such packet.
    pub fn write_headers(&self, index: usize, buffer: &mut Vec<u8>) {
        let (count, payload) = (self.count(), self.payload(index));
        let first = index * self.size;
        let begin = buffer.len();
        buffer.extend_from_slice(self.headers);
        let packet = &mut buffer[begin..];
        let (ip, tcp) = packet.split_at_mut(self.tcp);
        let tcp_len = tcp.len() + payload.len();
        self.adapt_ip(ip, tcp_len, index);
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(first as u32);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        if index + 1 < count {
            tcp[FLAGS] &= !(FIN | PSH);
        }
        if index > 0 {
            tcp[FLAGS] &= !CWR;
        }
        let pseudo = checksum::pseudo_header(&self.addresses, TCP, tcp_len as u32) as u16;
        tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&pseudo.to_be_bytes());
    }

    /// Sets the length and, in IPv4, identification and checksum.
    fn adapt_ip(&self, ip: &mut [u8], tcp_len: usize, index: usize) {
        match self.addresses {
            Addresses::V4 { .. } => {
                let total = (ip.len() + tcp_len) as u16;
                ip[2..4].copy_from_slice(&total.to_be_bytes());
                let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index as u16);
                ip[4..6].copy_from_slice(&id.to_be_bytes());
                ip[10..12].fill(0);
                let sum = checksum::internet(0, ip);
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            Addresses::V6 { .. } => {
                // Extension headers are a part of the payload (RFC 8200, section 3).
                let payload = (ip.len() - IPV6_HEADER + tcp_len) as u16;
                ip[4..6].copy_from_slice(&payload.to_be_bytes());
            }
        }
    }
}

/// Positions and control bits of the TCP header (RFC 9293, section 3.1).
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Bytes of the fixed header of IPv6.
const IPV6_HEADER: usize = 40;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tcp::Flags;
    use crate::wire::{IpHeader, Payload, TcpHeader, TcpOptions, write_tcp};

    fn addresses(v6: bool) -> Addresses {
        let texts = if v6 { ["fd00::1", "fd00::2"] } else { ["10.0.0.1", "10.0.0.2"] };
        let [source, destination] = texts.map(|text| text.parse().unwrap());
        Addresses::new(source, destination).unwrap()
    }

    fn packet(v6: bool, header: &TcpHeader<'_>, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let ip = IpHeader { identification: 65_535, ..IpHeader::new(addresses(v6)) };
        write_tcp(&mut packet, &ip, header, Payload::Bytes(payload)).unwrap();
        packet
    }

    fn segments(packet: &[u8], size: u16) -> Vec<Vec<u8>> {
        let segmenter = TcpSegmenter::new(packet, size).unwrap();
        let write = |index| {
            let mut buffer = Vec::new();
            segmenter.write(index, &mut buffer);
            buffer
        };
        (0..segmenter.count()).map(write).collect()
    }

    fn headers(packet: &[u8]) -> (IpHeader, TcpHeader<'_>, &[u8]) {
        let ip = IpPacket::parse(packet).unwrap();
        let Ok(Transport::Tcp(tcp)) = ip.transport() else { panic!("{packet:?}") };
        (ip.header(), tcp.header().unwrap(), tcp.payload())
    }

    #[test]
    fn flags_that_report_one_event_are_in_one_packet() {
        let ack = Flags::ACK.with(Flags::ECE);
        let flags = ack.with(Flags::FIN).with(Flags::PSH).with(Flags::CWR);
        let header = TcpHeader { seq: u32::MAX - 50, flags, ..TcpHeader::default() };
        let packets = segments(&packet(false, &header, &[7; 250]), 100);
        let headers_of = |index: usize| headers(&packets[index]);
        let all: Vec<_> =
            (0..3).map(|index| (headers_of(index).1.flags, headers_of(index).1.seq)).collect();
        assert_eq!(
            all,
            [
                (ack.with(Flags::CWR), u32::MAX - 50),
                (ack, 49),
                (ack.with(Flags::FIN).with(Flags::PSH), 149),
            ]
        );
        let ids = [0, 1, 2].map(|index| headers_of(index).0.identification);
        assert_eq!(ids, [65_535, 0, 1]);
    }

    #[test]
    fn a_packet_that_is_not_larger_than_a_segment_stays_unchanged() {
        for v6 in [false, true] {
            for payload in [&[][..], &[1; 100][..]] {
                let flags = Flags::ACK.with(Flags::PSH);
                let header = TcpHeader { flags, ..TcpHeader::default() };
                let packet = packet(v6, &header, payload);
                assert_eq!(segments(&packet, 100), std::slice::from_ref(&packet));
                assert_eq!(segments(&packet, 0), std::slice::from_ref(&packet));
            }
        }
    }

    #[test]
    fn packets_that_are_not_tcp_are_refused() {
        let mut udp = packet(false, &TcpHeader::default(), &[0; 10]);
        udp[9] = 17;
        let refused = TcpSegmenter::new(&udp, 100).unwrap_err();
        assert!(matches!(refused, WireError::Protocol(17) | WireError::Length { .. }), "{refused}");
    }

    proptest! {
        #[test]
        fn segments_carry_the_payload_once_and_in_order(
            v6: bool,
            seq: u32,
            bits: u8,
            payload in proptest::collection::vec(any::<u8>(), 0..3_000),
            size in 1_u16..2_000,
            timestamps: Option<(u32, u32)>,
        ) {
            let options = TcpOptions { timestamps, ..TcpOptions::default() };
            let flags = Flags::from_bits(bits & !2);
            let header = TcpHeader { seq, flags, options, ..TcpHeader::default() };
            let large = packet(v6, &header, &payload);
            let mut joined = Vec::new();
            let mut united = 0;
            for segment in segments(&large, size) {
                prop_assert_eq!(IpPacket::parse(&segment).unwrap().verify(), Ok(()));
                let (ip, tcp, bytes) = headers(&segment);
                prop_assert_eq!(tcp.seq, seq.wrapping_add(joined.len() as u32));
                prop_assert!(bytes.len() <= usize::from(size));
                let index = joined.len() / usize::from(size);
                let adapted = TcpSegmenter::new(&large, size).unwrap().header(index, &header);
                prop_assert_eq!((adapted.seq, adapted.flags), (tcp.seq, tcp.flags));
                let same = TcpHeader { seq, flags, ..tcp };
                prop_assert_eq!(same, header);
                let same = IpHeader { identification: 65_535, ..ip };
                prop_assert_eq!(same, IpHeader { identification: 65_535, ..headers(&large).0 });
                united |= tcp.flags.bits();
                joined.extend_from_slice(bytes);
            }
            prop_assert_eq!(joined, payload);
            prop_assert_eq!(united, flags.bits());
        }
    }
}
