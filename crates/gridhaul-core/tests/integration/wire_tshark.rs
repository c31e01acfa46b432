//! Packets of the codec as parsed by `tshark`: all options, flags and addresses, with and without
//! VLAN tags.

use std::process::Command;

use gridhaul_core::tcp::{Flags, SackBlocks};
use gridhaul_core::wire::{
    Addresses, EtherType, EthernetFrame, EthernetHeader, IpHeader, IpPacket, Payload, TcpHeader,
    TcpOptions, Transport, UdpHeader, UnknownOptions, VlanTag, WireError, write_tcp, write_udp,
};
use gridhaul_testing::has_program;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The fields that tshark prints for a packet, in this order.
const FIELDS: [&str; 27] = [
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "eth.src",
    "vlan.id",
    "vlan.priority",
    "ieee8021ad.id",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.seq",
    "tcp.ack",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.urgent_pointer",
    "tcp.len",
    "tcp.option_kind",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.timestamp.tsval",
    "tcp.options.sack_le",
    "udp.length",
];

/// A written packet, with the expected fields after those of the errors.
#[derive(Debug)]
struct Written {
    frame: Vec<u8>,
    fields: Vec<String>,
}

#[test]
fn tshark_reads_what_was_written() {
    if !has_program("tshark") {
        return;
    }
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let mut packets = Vec::new();
    for round in 0..3 {
        for number in 0..2 * 3 * 32 * 5 {
            packets.extend(tcp(number, round * 85 + number / 6, &mut random));
        }
    }
    for number in 0..60 {
        packets.push(udp(number, &mut random));
    }
    assert!(packets.len() > 1_500, "{} packets", packets.len());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("codec.pcap");
    std::fs::write(&path, pcap(&packets)).expect("the capture is written");
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-n", "-T", "fields"]);
    for protocol in ["ip", "tcp", "udp"] {
        tshark.arg("-o").arg(format!("{protocol}.check_checksum:TRUE"));
    }
    // Sequence numbers of unrelated segments do not form a connection.
    tshark.args(["-o", "tcp.analyze_sequence_numbers:FALSE"]);
    tshark.args(["-o", "tcp.relative_sequence_numbers:FALSE"]);
    FIELDS.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let output = tshark.output().expect("tshark starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("tshark prints UTF-8");
    assert_eq!(text.lines().count(), packets.len());
    for (line, packet) in text.lines().zip(&packets) {
        let read: Vec<_> = line.split('\t').collect();
        assert_eq!(read.len(), FIELDS.len(), "{line}");
        assert_eq!(read[0], "", "malformed: {line} {packet:x?}");
        let remarks = read[2].split(',').filter(|message| {
            // tshark reports an RST, SYN or FIN, and a SYN without MSS option.
            !["onnection", "does not contain a MSS option"]
                .iter()
                .any(|part| message.contains(part))
        });
        assert_eq!(remarks.collect::<String>(), "", "{line} {packet:x?}");
        // 0 is a wrong checksum.
        assert!(!read[3..6].contains(&"0"), "wrong checksum: {line} {packet:x?}");
        assert!(read[4..6].contains(&"1"), "no checksum verified: {line} {packet:x?}");
        assert_eq!(read[6..], packet.fields, "{line}");
        assert_eq!(reserialised(&packet.frame), packet.frame, "{line}");
    }
}

/// A segment with the options selected by the bits of `number`; `None` if they do not fit.
fn tcp(number: u32, flags: u32, random: &mut Pcg64Mcg) -> Option<Written> {
    let (six, tags, bits, blocks) =
        (number % 2 == 1, number / 2 % 3, number / 6 % 32, number / 192 % 5);
    let syn = bits & 7 != 0;
    let mut flags = Flags::from_bits(flags as u8);
    // tshark warns about handshake options outside of the handshake.
    flags = if syn { flags.with(Flags::SYN) } else { flags.without(Flags::SYN) };
    // tshark warns about a nonzero field whose flag is not set.
    let ack = if flags.has(Flags::ACK) { random.random() } else { 0 };
    let mut sack = SackBlocks::default();
    for block in 1..=blocks {
        // tshark reports SACK blocks below the acknowledgement number (D-SACK, RFC 2883).
        let left = u32::wrapping_add(ack, block * 10_000 + random.random_range(0..4_000));
        sack.push(left, left.wrapping_add(random.random_range(1..4_000)));
    }
    let options = TcpOptions {
        mss: (bits & 1 != 0).then(|| random.random()),
        window_scale: (bits & 2 != 0).then(|| random.random_range(0..15)),
        sack_permitted: bits & 4 != 0,
        timestamps: (bits & 8 != 0).then(|| random.random()),
        one_way_delay: (bits & 16 != 0).then(|| random.random()),
        sack,
        unknown: UnknownOptions::default(),
    };
    let header = TcpHeader {
        source_port: random.random_range(50_000..60_000),
        destination_port: 60_001,
        seq: random.random(),
        ack,
        flags,
        window: random.random(),
        urgent: if flags.has(Flags::URG) { random.random_range(1..9) } else { 0 },
        options,
    };
    let (mut frame, ip, mut fields) = lower_headers(six, tags, random);
    let data = vec![0x5a; random.random_range(0..40)];
    match write_tcp(&mut frame, &ip, &header, Payload::Bytes(&data)) {
        Err(WireError::OptionsTooLong(_)) => return None,
        written => assert!(written.is_ok(), "{written:?}"),
    }
    let print = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
    let edges = sack.as_slice().iter().map(|(left, _)| left.to_string());
    fields.extend([
        header.source_port.to_string(),
        header.seq.to_string(),
        header.ack.to_string(),
        format!("0x{:04x}", flags.bits()),
        header.window.to_string(),
        header.urgent.to_string(),
        data.len().to_string(),
        kinds(&frame),
        print(options.mss.map(u32::from)),
        print(options.window_scale.map(u32::from)),
        print(options.timestamps.map(|(own, _)| own)),
        edges.collect::<Vec<_>>().join(","),
        String::new(),
    ]);
    Some(Written { frame, fields })
}

fn udp(number: u32, random: &mut Pcg64Mcg) -> Written {
    let (mut frame, ip, mut fields) = lower_headers(number % 2 == 1, number / 2 % 3, random);
    let header =
        UdpHeader { source_port: random.random_range(50_000..60_000), destination_port: 60_001 };
    let data = vec![0x5a; random.random_range(0..40)];
    write_udp(&mut frame, &ip, &header, Payload::Bytes(&data)).expect("it fits");
    fields.extend(vec![String::new(); 12]);
    fields.push((8 + data.len()).to_string());
    Written { frame, fields }
}

/// An Ethernet header, an IP header, and the fields that tshark prints for both.
fn lower_headers(six: bool, tags: u32, random: &mut Pcg64Mcg) -> (Vec<u8>, IpHeader, Vec<String>) {
    let tag = VlanTag {
        id: random.random_range(1..4_095),
        priority: random.random_range(0..8),
        drop_eligible: random.random(),
        service: false,
    };
    let service =
        VlanTag { id: random.random_range(1..4_095), service: true, ..VlanTag::default() };
    let number: u16 = random.random();
    let [high, low] = number.to_be_bytes();
    let ethernet = EthernetHeader {
        destination: [2, 0, 0, 0, 0, 1],
        source: [2, 0, 0, 0, high, low],
        tags: match tags {
            0 => [None, None],
            1 => [Some(tag), None],
            _ => [Some(service), Some(tag)],
        },
        ether_type: if six { EtherType::IPV6 } else { EtherType::IPV4 },
    };
    let mut frame = Vec::new();
    ethernet.write(&mut frame);
    let address = |end: u8| -> std::net::IpAddr {
        if six {
            [0xfd, 0x67, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end, 1, high, low].into()
        } else {
            [10, end, high, low].into()
        }
    };
    let (source, destination) = (address(1), address(2));
    let mut ip = IpHeader::new(Addresses::new(source, destination).expect("one version"));
    ip.traffic_class = random.random();
    ip.hop_limit = random.random_range(10..=255);
    if six {
        ip.flow_label = random.random_range(0..1 << 20);
    } else {
        ip.identification = random.random();
    }
    let (none, source, destination) = (String::new(), source.to_string(), destination.to_string());
    let mut fields = vec![format!("02:00:00:00:{high:02x}:{low:02x}")];
    fields.push(if tags > 0 { tag.id.to_string() } else { none.clone() });
    fields.push(if tags > 0 { tag.priority.to_string() } else { none.clone() });
    fields.push(if tags > 1 { service.id.to_string() } else { none.clone() });
    fields.extend(if six {
        [none.clone(), none, source, destination]
    } else {
        [source, destination, none.clone(), none]
    });
    (frame, ip, fields)
}

/// The kinds of the options in a frame, including padding; each byte after the last option is an
/// end of list.
fn kinds(frame: &[u8]) -> String {
    let ethernet = EthernetFrame::parse(frame).expect("a frame");
    let ip = IpPacket::parse(ethernet.payload).expect("a packet");
    let header = usize::from(ip.payload()[12] >> 4) * 4;
    let (mut area, mut kinds) = (&ip.payload()[20..header], Vec::new());
    while let Some(&kind) = area.first() {
        kinds.push(kind.to_string());
        let length = if kind <= 1 { 1 } else { usize::from(area[1]) };
        area = &area[length..];
    }
    kinds.join(",")
}

/// The frame, parsed and written again.
fn reserialised(frame: &[u8]) -> Vec<u8> {
    let ethernet = EthernetFrame::parse(frame).expect("a frame");
    let ip = IpPacket::parse(ethernet.payload).expect("a packet");
    assert_eq!(ip.verify(), Ok(()));
    let mut written = Vec::new();
    ethernet.header.write(&mut written);
    let done = match ip.transport() {
        Ok(Transport::Tcp(tcp)) => {
            let header = tcp.header().expect("options");
            write_tcp(&mut written, &ip.header(), &header, Payload::Bytes(tcp.payload()))
        }
        Ok(Transport::Udp(udp)) => {
            write_udp(&mut written, &ip.header(), &udp.header(), Payload::Bytes(udp.payload()))
        }
        other => panic!("{other:?}"),
    };
    done.expect("what was parsed fits");
    written
}

/// A capture file of Ethernet frames (libpcap's format, link type 1).
fn pcap(packets: &[Written]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 1 << 16, 1] {
        file.extend(word.to_le_bytes());
    }
    for (packet, second) in packets.iter().zip(0_u32..) {
        let length = packet.frame.len() as u32;
        for word in [second, 0, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&packet.frame);
    }
    file
}
