use proptest::prelude::*;

use super::super::*;

fn ip() -> IpHeader {
    let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    IpHeader::new(Addresses::V4 { source, destination })
}

fn tcp(header: &TcpHeader<'_>, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    write_tcp(&mut packet, &ip(), header, Payload::Bytes(payload)).unwrap();
    packet
}

/// Ports, sequence number, acknowledgement number, window, timestamps.
type Fields = (u16, u16, u32, u32, u16, (u32, u32));

/// A segment whose timestamps are at an odd position if `odd`. The test builds it itself, because
/// the codec writes unknown options last.
fn received(fields: Fields, odd: bool, data: &[u8]) -> Vec<u8> {
    let (source_port, destination_port, seq, ack, window, (value, echo)) = fields;
    let fixed =
        TcpHeader { source_port, destination_port, seq, ack, window, ..TcpHeader::default() };
    let mut options = if odd { vec![30, 3, 0] } else { vec![] };
    options.extend([8, 10]);
    options.extend(value.to_be_bytes());
    options.extend(echo.to_be_bytes());
    options.resize(options.len().next_multiple_of(4), 0);
    let mut packet = tcp(&fixed, &[&options, data].concat());
    // After the IP header of 20 bytes: the data offset of TCP at octet 12, its checksum at octet 16
    // (RFC 9293, 3.1).
    packet[32] = (5 + options.len() as u8 / 4) << 4;
    packet[36..38].fill(0);
    let pseudo = checksum::pseudo_header(&ip().addresses, TCP, (packet.len() - 20) as u32);
    let sum = checksum::internet(pseudo, &packet[20..]);
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(IpPacket::parse(&packet).unwrap().verify(), Ok(()));
    packet
}

proptest! {
    /// A rewritten packet equals, including its checksum, the packet written with the new values.
    #[test]
    fn a_rewritten_packet_is_that_with_the_new_fields(
        before in any::<Fields>(),
        after in any::<Fields>(),
        odd in any::<bool>(),
        data in prop::collection::vec(any::<u8>(), 1..20),
        byte in any::<(prop::sample::Index, u8)>(),
    ) {
        let mut rewritten = received(before, odd, &data);
        let mut data = data;
        let place = byte.0.index(data.len());
        data[place] = byte.1;
        let expected = received(after, odd, &data);
        let (source_port, destination_port, seq, ack, window, (value, echo)) = after;
        let mut rewriter = PacketRewriter::parse(&mut rewritten).unwrap();
        rewriter.set_source_port(source_port);
        rewriter.set_destination_port(destination_port);
        rewriter.set_seq(seq).unwrap();
        rewriter.set_ack(ack).unwrap();
        rewriter.set_window(window).unwrap();
        let numbers = [value.to_be_bytes(), echo.to_be_bytes()].concat();
        rewriter.set_option(8, &numbers).unwrap();
        rewriter.set_payload(place, &data[place..=place]);
        prop_assert_eq!(rewritten, expected);
    }
}

#[test]
fn a_removed_option_becomes_padding() {
    let options = TcpOptions { mss: Some(9), sack_permitted: true, ..TcpOptions::default() };
    let mut packet = tcp(&TcpHeader { options, ..TcpHeader::default() }, &[1, 2, 3]);
    let length = packet.len();
    let mut rewriter = PacketRewriter::parse(&mut packet).unwrap();
    rewriter.remove_option(4).unwrap();
    assert_eq!(rewriter.remove_option(4), Err(WireError::OptionMissing(4)));
    let error = WireError::OptionLength { kind: 2, length: 4 };
    assert_eq!(rewriter.set_option(2, &[1]), Err(error));
    let ip = IpPacket::parse(&packet).unwrap();
    assert_eq!((packet.len(), ip.verify()), (length, Ok(())));
    let Ok(Transport::Tcp(segment)) = ip.transport() else { panic!("{ip:?}") };
    let left = segment.header().unwrap().options;
    assert_eq!(left, TcpOptions { sack_permitted: false, ..options });
}

#[test]
fn a_datagram_without_checksum_remains_without() {
    let mut packet = Vec::new();
    write_udp(&mut packet, &ip(), &UdpHeader::default(), Payload::Bytes(&[1, 2, 3])).unwrap();
    let mut without = packet.clone();
    // The checksum of UDP, at octet 6 after the IP header (RFC 768).
    without[26..28].fill(0);
    for packet in [&mut packet, &mut without] {
        let mut rewriter = PacketRewriter::parse(packet).unwrap();
        assert_eq!(rewriter.payload(), [1, 2, 3]);
        rewriter.set_payload(2, &[9]);
        assert_eq!(rewriter.set_seq(1), Err(WireError::Protocol(UDP)));
        assert_eq!(IpPacket::parse(packet).unwrap().verify(), Ok(()));
    }
    assert_eq!(without[26..28], [0, 0]);
    assert_ne!(packet[26..28], [0, 0]);
}

/// RFC 768: a computed checksum of zero is sent as 0xffff, because zero means that there is none.
#[test]
fn an_updated_udp_checksum_is_never_zero() {
    let mut packet = Vec::new();
    write_udp(&mut packet, &ip(), &UdpHeader::default(), Payload::Bytes(&[0, 0])).unwrap();
    for value in 0..=u16::MAX {
        let mut rewriter = PacketRewriter::parse(&mut packet).unwrap();
        rewriter.set_payload(0, &value.to_be_bytes());
        assert_ne!(packet[26..28], [0, 0], "{value}");
    }
    assert_eq!(IpPacket::parse(&packet).unwrap().verify(), Ok(()));
}

proptest! {
    /// Parsing never panics, neither for random bytes nor for a packet with a wrong byte.
    #[test]
    fn any_bytes_parse_or_are_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..120),
        version in prop::sample::select(vec![0x45_u8, 0x46, 0x60, 0x00]),
        protocol in prop::sample::select(vec![TCP, UDP, 60, 0, 44]),
        like_a_packet in any::<bool>(),
    ) {
        // Random bytes seldom pass the checks of version and length: half of the cases have both.
        if like_a_packet && bytes.len() >= 48 {
            bytes[0] = version;
            let length = bytes.len() as u16;
            if version == 0x60 {
                bytes[4..6].copy_from_slice(&(length - 40).to_be_bytes());
                bytes[6] = protocol;
            } else {
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
                bytes[6..8].fill(0);
                bytes[9] = protocol;
            }
        }
        let _ = EthernetFrame::parse(&bytes);
        let _ = UnknownOptions::new(&bytes);
        if let Ok(ip) = IpPacket::parse(&bytes) {
            let _ = (ip.header(), ip.verify(), ip.destination());
            if let Ok(Transport::Tcp(segment)) = ip.transport() {
                let _ = segment.segment(ip.header_len());
            }
        }
        if let Ok(mut rewriter) = PacketRewriter::parse(&mut bytes) {
            rewriter.set_source_port(1);
            let _ = (rewriter.set_window(2), rewriter.set_option(8, &[0; 8]),
                rewriter.remove_option(5));
        }
    }
}
