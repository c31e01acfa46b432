use proptest::prelude::*;

use super::super::*;
use super::*;
use crate::tcp::{ClockOption, Flags, SackBlocks, Segment};

fn v4() -> Addresses {
    Addresses::V4 { source: [10, 0, 0, 1].into(), destination: [10, 1, 255, 254].into() }
}

fn v6() -> Addresses {
    let parse = |text: &str| text.parse().unwrap();
    Addresses::new(parse("fd67:7269:6468::1"), parse("fd67:7269:6468:1::2")).unwrap()
}

#[test]
fn each_version_of_ip_has_its_header() {
    let tcp = TcpHeader::default();
    let mut packet = Vec::new();
    let length = write_tcp(&mut packet, &IpHeader::new(v4()), &tcp, Payload::Omitted(100)).unwrap();
    assert_eq!((packet.len(), length, packet[0]), (40, 140, 0x45));
    assert_eq!(packet[2..4], [0, 140], "total length");
    assert_eq!((packet[9], checksum::internet(0, &packet[..20])), (TCP, 0));
    packet.clear();
    let length = write_tcp(&mut packet, &IpHeader::new(v6()), &tcp, Payload::Omitted(100)).unwrap();
    assert_eq!((packet.len(), length, packet[0]), (60, 160, 0x60));
    assert_eq!(packet[4..8], [0, 120, TCP, 64], "payload length, next header, hop limit");
    assert_eq!(packet[8..14], [0xfd, 0x67, 0x72, 0x69, 0x64, 0x68]);
}

/// RFC 1071: the sum over all words, including the checksum and the zero payload, is zero.
#[test]
fn checksums_hold_for_data_of_zeros() {
    for ip in [v4(), v6()].map(IpHeader::new) {
        for data in [0, 33, 65_000] {
            let (mut tcp, mut udp) = (Vec::new(), Vec::new());
            let header = TcpHeader { seq: 0x89ab_cdef, ..TcpHeader::default() };
            let length = write_tcp(&mut tcp, &ip, &header, Payload::Omitted(data)).unwrap();
            tcp.resize(length as usize, 0);
            let header = UdpHeader { source_port: 1024, destination_port: 7 };
            let length = write_udp(&mut udp, &ip, &header, Payload::Omitted(data)).unwrap();
            udp.resize(length as usize, 0);
            for mut packet in [tcp, udp] {
                assert_eq!(IpPacket::parse(&packet).unwrap().verify(), Ok(()), "{ip:?} {data}");
                *packet.last_mut().unwrap() ^= 1;
                let verified = IpPacket::parse(&packet).unwrap().verify();
                assert!(matches!(verified, Err(WireError::Checksum(_))), "{verified:?}");
            }
        }
    }
}

#[test]
fn a_segment_is_parsed_as_written() {
    let mut segment = Segment {
        seq: 1_000,
        ack: u32::MAX,
        len: 501,
        window: 30_000,
        timestamps: Some((7, 8)),
        sack_permitted: true,
        flags: Flags::SYN.with(Flags::ACK),
        header: 40 + 4 + 12 + 12,
        ..Segment::default()
    };
    segment.sack.push(5, 9);
    let medx = Segment { clock: ClockOption::OneWayDelay, ..segment };
    for segment in [segment, medx] {
        let mut packet = Vec::new();
        let header = TcpHeader::from_segment(&segment, 1, 2);
        let ip = IpHeader::new(v4());
        write_tcp(&mut packet, &ip, &header, Payload::Bytes(&[7; 501])).unwrap();
        let ip = IpPacket::parse(&packet).unwrap();
        let Ok(Transport::Tcp(tcp)) = ip.transport() else { panic!("{:?}", ip.transport()) };
        assert_eq!(tcp.segment(ip.header_len()), Ok(segment));
        assert_eq!(tcp.payload(), [7; 501]);
    }
}

#[test]
fn truncated_packets_are_rejected() {
    for ip in [v4(), v6()].map(IpHeader::new) {
        let mut packet = Vec::new();
        let options = TcpOptions { mss: Some(1_000), ..TcpOptions::default() };
        let tcp = TcpHeader { options, ..TcpHeader::default() };
        write_tcp(&mut packet, &ip, &tcp, Payload::Bytes(&[])).unwrap();
        for end in 0..packet.len() {
            let cut = IpPacket::parse(&packet[..end]);
            assert!(matches!(cut, Err(WireError::Truncated { .. })), "{end} bytes: {cut:?}");
            let payload = &packet[ip.header_len()..];
            let cut = TcpPacket::parse(&payload[..end.min(payload.len() - 1)]);
            assert!(matches!(cut, Err(WireError::Truncated { .. })), "{end} bytes: {cut:?}");
        }
    }
}

#[test]
fn fragments_are_rejected() {
    let mut packet = Vec::new();
    let udp = UdpHeader::default();
    write_udp(&mut packet, &IpHeader::new(v4()), &udp, Payload::Bytes(&[0; 8])).unwrap();
    // RFC 791: "more fragments", and offsets in either octet.
    for flags in [[0x20, 0], [0x20, 1], [0, 1], [0x1f, 0]] {
        packet[6..8].copy_from_slice(&flags);
        let ip = IpPacket::parse(&packet).unwrap();
        assert_eq!(ip.transport(), Err(WireError::Fragment), "{flags:x?}");
        assert_eq!(PacketRewriter::parse(&mut packet).unwrap_err(), WireError::Fragment);
    }
    packet.clear();
    write_udp(&mut packet, &IpHeader::new(v6()), &udp, Payload::Bytes(&[0; 8])).unwrap();
    packet[6] = 44;
    assert_eq!(IpPacket::parse(&packet).unwrap().transport(), Err(WireError::Fragment));
    // After a destination options header.
    packet[6] = 60;
    packet[40..48].copy_from_slice(&[44, 0, 1, 4, 0, 0, 0, 0]);
    assert_eq!(IpPacket::parse(&packet).unwrap().transport(), Err(WireError::Fragment));
    packet[40] = UDP;
    packet[48 + 4..48 + 6].copy_from_slice(&[0, 8]);
    let ip = IpPacket::parse(&packet).unwrap();
    assert!(matches!(ip.transport(), Ok(Transport::Udp(_))), "{:?}", ip.transport());
    packet[41] = 1;
    let length = IpPacket::parse(&packet).map(|ip| ip.header_len());
    assert_eq!(length, Ok(56), "two blocks of eight bytes");
    packet[41] = 2;
    let cut = IpPacket::parse(&packet);
    assert!(matches!(cut, Err(WireError::Truncated { layer: Layer::Ipv6, .. })), "{cut:?}");
}

#[test]
fn errors_report_the_wrong_field() {
    let mut packet = Vec::new();
    let mss = TcpOptions { mss: Some(1_000), ..TcpOptions::default() };
    let tcp = TcpHeader { options: mss, ..TcpHeader::default() };
    write_tcp(&mut packet, &IpHeader::new(v4()), &tcp, Payload::Bytes(&[])).unwrap();
    let with = |at: usize, value: u8| {
        let mut changed = packet.clone();
        changed[at] = value;
        let ip = IpPacket::parse(&changed)?;
        let Transport::Tcp(tcp) = ip.transport()? else { panic!("{changed:?}") };
        tcp.header().map(|_| ())
    };
    assert_eq!(with(0, 0x55), Err(WireError::IpVersion(5)));
    assert_eq!(with(0, 0x44), Err(WireError::Length { layer: Layer::Ipv4, stated: 16 }));
    assert_eq!(with(3, 19), Err(WireError::Length { layer: Layer::Ipv4, stated: 19 }));
    assert_eq!(with(32, 0x40), Err(WireError::Length { layer: Layer::Tcp, stated: 16 }));
    assert_eq!(with(41, 5), Err(WireError::OptionLength { kind: 2, length: 5 }));
}

#[test]
fn a_packet_too_long_for_its_length_field_is_rejected() {
    let (mut packet, data) = (vec![1], vec![0; 65_536]);
    let ip = IpHeader::new(v4());
    let tcp = TcpHeader::default();
    let maximum = 65_535 - 40;
    let refused = write_tcp(&mut packet, &ip, &tcp, Payload::Bytes(&data[..=maximum]));
    assert_eq!(refused, Err(WireError::TooLong { layer: Layer::Ipv4, bytes: 65_536 }));
    assert_eq!(packet, [1]);
    write_tcp(&mut packet, &ip, &tcp, Payload::Bytes(&data[..maximum])).unwrap();
}

fn sack_blocks() -> impl Strategy<Value = SackBlocks> {
    prop::collection::vec(any::<(u32, u32)>(), 0..=SackBlocks::MAX).prop_map(|blocks| {
        let mut sack = SackBlocks::default();
        blocks.into_iter().for_each(|(left, right)| sack.push(left, right));
        sack
    })
}

fn ip_header() -> impl Strategy<Value = IpHeader> {
    (any::<[u128; 2]>(), any::<(bool, u8, u8, u16, bool)>(), 0_u32..1 << 20).prop_map(
        |([source, destination], (six, traffic_class, hop_limit, number, dont_fragment), label)| {
            if six {
                let (source, destination) = (source.into(), destination.into());
                let new = IpHeader::new(Addresses::V6 { source, destination });
                IpHeader { traffic_class, hop_limit, flow_label: label, ..new }
            } else {
                let (source, destination) = ((source as u32).into(), (destination as u32).into());
                let new = IpHeader::new(Addresses::V4 { source, destination });
                IpHeader { traffic_class, hop_limit, identification: number, dont_fragment, ..new }
            }
        },
    )
}

proptest! {
    #[test]
    fn headers_are_parsed_as_written(
        ip in ip_header(),
        numbers in any::<(u16, u16, u32, u32, u8, u16, u16)>(),
        options in any::<(Option<u16>, Option<u8>, bool, Option<(u32, u32)>, Option<(u32, u32)>)>(),
        sack in sack_blocks(),
        unknown in prop::sample::select(vec![&[][..], &[30, 3, 1], &[34, 2, 253, 4, 0, 1]]),
        data in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let (source_port, destination_port, seq, ack, flags, window, urgent) = numbers;
        let (mss, window_scale, sack_permitted, timestamps, one_way_delay) = options;
        let unknown = UnknownOptions::new(unknown).unwrap();
        let options = TcpOptions {
            mss, window_scale, sack_permitted, timestamps, one_way_delay, sack, unknown,
        };
        let flags = Flags::from_bits(flags);
        let tcp = TcpHeader { source_port, destination_port, seq, ack, flags, window, urgent,
            options };
        let mut packet = Vec::new();
        match write_tcp(&mut packet, &ip, &tcp, Payload::Bytes(&data)) {
            Err(WireError::OptionsTooLong(bytes)) => prop_assert!(bytes > 40 && packet.is_empty()),
            written => {
                prop_assert_eq!(written, Ok(packet.len() as u32));
                // Bytes after the packet, such as Ethernet padding, are not payload.
                packet.extend([0; 3]);
                let parsed = IpPacket::parse(&packet).unwrap();
                prop_assert_eq!(parsed.header(), ip);
                prop_assert_eq!(parsed.verify(), Ok(()));
                let Ok(Transport::Tcp(segment)) = parsed.transport() else { panic!("{parsed:?}") };
                prop_assert_eq!(segment.header(), Ok(tcp));
                prop_assert_eq!(segment.payload(), data);
            }
        }
        let (udp, mut packet) = (UdpHeader { source_port, destination_port }, Vec::new());
        write_udp(&mut packet, &ip, &udp, Payload::Bytes(&[])).unwrap();
        let parsed = IpPacket::parse(&packet).unwrap();
        prop_assert_eq!(parsed.verify(), Ok(()));
        let Ok(Transport::Udp(datagram)) = parsed.transport() else { panic!("{parsed:?}") };
        prop_assert_eq!(datagram.header(), udp);
    }
}
