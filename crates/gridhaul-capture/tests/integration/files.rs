//! Formats of capture files, link layers, and errors.

use std::io::Cursor;
use std::net::IpAddr;

use gridhaul_capture::{CaptureError, CaptureFile, CapturedSegment, SegmentReader, explain};
use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{Addresses, IpHeader, Payload, TcpHeader, write_tcp};
use gridhaul_testing::Numbers;

/// A SYN of IPv4 or IPv6 with its options, and a data segment.
fn packets(version: u8) -> [Vec<u8>; 2] {
    let (from, to): (IpAddr, IpAddr) = if version == 4 {
        ([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
    } else {
        ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap())
    };
    let ip = IpHeader::new(Addresses::new(from, to).unwrap());
    let mut syn = TcpHeader {
        source_port: 40_000,
        destination_port: 502,
        seq: 7,
        flags: Flags::SYN,
        window: 64_000,
        ..TcpHeader::default()
    };
    syn.options.mss = Some(1_460);
    syn.options.window_scale = Some(7);
    let data = TcpHeader { seq: 8, flags: Flags::ACK, ..syn };
    let mut packets = [Vec::new(), Vec::new()];
    write_tcp(&mut packets[0], &ip, &syn, Payload::Bytes(b"")).unwrap();
    write_tcp(&mut packets[1], &ip, &data, Payload::Bytes(&[1; 300])).unwrap();
    packets
}

/// A frame of a link type around an IP packet.
fn frame(link_type: u32, version: u8, packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if version == 4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    let mut frame = match link_type {
        // With two VLAN tags.
        1 => [&[2; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7], &kind].concat(),
        113 => [&[0; 14][..], &kind].concat(),
        276 => [&kind[..], &[0; 18]].concat(),
        0 => vec![2, 0, 0, 0],
        _ => Vec::new(),
    };
    frame.extend(packet);
    frame
}

/// Format of a file.
#[derive(Debug, Clone, Copy)]
struct Format {
    magic: u32,
    units: u32,
    is_big_endian: bool,
}

const MICRO: Format = Format { magic: 0xa1b2_c3d4, units: 1_000_000, is_big_endian: false };
const NANO: Format = Format { magic: 0xa1b2_3c4d, units: 1_000_000_000, is_big_endian: false };

/// A pcap file whose packets are captured at 1 s, 1.25 s, … and cut to a length.
fn pcap(format: Format, link_type: u32, packets: &[Vec<u8>], snapshot: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let mut word = |number: u32| {
        file.extend(if format.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() });
    };
    let version = if format.is_big_endian { 0x0002_0004 } else { 0x0004_0002 };
    [format.magic, version, 0, 0, 262_144, link_type].into_iter().for_each(&mut word);
    for (index, packet) in packets.iter().enumerate() {
        let captured = packet.len().min(snapshot);
        let part = format.units / 4 * index as u32;
        let mut header = |number: u32| {
            file.extend(if format.is_big_endian {
                number.to_be_bytes()
            } else {
                number.to_le_bytes()
            });
        };
        [1, part, captured as u32, packet.len() as u32].into_iter().for_each(&mut header);
        file.extend(&packet[..captured]);
    }
    file
}

fn read(files: Vec<Vec<u8>>) -> Result<Vec<CapturedSegment>, CaptureError> {
    let files = files.into_iter().map(|bytes| CaptureFile::new("test.pcap", Cursor::new(bytes)));
    let mut reader = SegmentReader::open(files.collect())?;
    let mut segments = Vec::new();
    while let Some(segment) = reader.next_segment()? {
        segments.push(segment);
    }
    Ok(segments)
}

#[test]
fn segments_are_the_same_in_each_format_and_link_layer() {
    let mut read_files = 0;
    for version in [4, 6] {
        for link_type in [1, 113, 276, 101, 0] {
            let frames = packets(version).map(|packet| frame(link_type, version, &packet));
            for format in [MICRO, NANO, Format { is_big_endian: true, ..NANO }] {
                let segments = read(vec![pcap(format, link_type, &frames, 65_535)]).unwrap();
                let [syn, data] = segments[..] else { panic!("{segments:?}") };
                assert_eq!(
                    [syn.at, data.at].map(|at| at.as_nanos()),
                    [1_000_000_000, 1_250_000_000]
                );
                assert_eq!((syn.source.port(), syn.destination.port()), (40_000, 502));
                assert_eq!((syn.mss, syn.window_scale, syn.payload), (Some(1_460), Some(7), 0));
                assert_eq!((data.seq, data.payload, data.window), (8, 300, 64_000));
                let headers = if version == 4 { 40 } else { 60 };
                // Four bytes of MSS, and three of window scale with padding.
                assert_eq!(data.packet, headers + 8 + 300);
                read_files += 1;
            }
        }
    }
    assert_eq!(read_files, 30);
}

#[test]
fn a_truncated_packet_has_the_length_that_its_header_states() {
    let frames = packets(4).map(|packet| frame(1, 4, &packet));
    // Ethernet with tags 22 B, IP 20 B, TCP 28 B.
    let segments = read(vec![pcap(MICRO, 1, &frames, 70)]).unwrap();
    assert_eq!(segments[1].payload, 300);
    // Without the last options.
    let segments = read(vec![pcap(MICRO, 1, &frames, 66)]).unwrap();
    assert_eq!((segments[0].mss, segments[0].window_scale), (Some(1_460), None));
    // Without the fixed header: counted, and no segment.
    let file = CaptureFile::new("short", Cursor::new(pcap(MICRO, 1, &frames, 60)));
    let explanation = explain(vec![file], &mut |_| true).unwrap();
    assert_eq!((explanation.segments, explanation.cut_packets), (0, 2));
    assert!(explanation.text().contains("tcpdump -s 128"), "{}", explanation.text());
}

/// A file of pcapng with one interface of IP packets, whose times have this unit, and blocks.
fn pcapng(resolution: u8, blocks: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let section = (0x0a0d_0d0a, words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let unit = u32::from(resolution);
    let interface = (1, words(&[101, 262_144, 9 | 1 << 16, unit, 0]));
    let mut file = Vec::new();
    for (kind, body) in [section, interface].iter().chain(blocks) {
        let padded = body.len().next_multiple_of(4);
        let length = (12 + padded as u32).to_le_bytes();
        file.extend([&kind.to_le_bytes()[..], &length, body].concat());
        file.resize(file.len() + padded - body.len(), 0);
        file.extend(length);
    }
    file
}

/// An enhanced packet block.
fn enhanced(units: u64, packet: &[u8]) -> (u32, Vec<u8>) {
    let length = packet.len() as u32;
    let words = [0, (units >> 32) as u32, units as u32, length, length].map(u32::to_le_bytes);
    (6, [words.as_flattened(), packet].concat())
}

#[test]
fn times_of_pcapng_have_units_of_powers_of_ten_and_two() {
    let [syn, _] = packets(4);
    for (resolution, units) in [(0, 3), (3, 3_000), (6, 3_000_000), (9, 3_000_000_000)] {
        let segments = read(vec![pcapng(resolution, &[enhanced(units, &syn)])]).unwrap();
        assert_eq!(segments[0].at.as_nanos(), 3_000_000_000, "10^-{resolution} s");
    }
    for power in [0, 10, 20, 30, 63] {
        let units = (1_u64 << power) + (1 << power) / 2;
        let segments = read(vec![pcapng(0x80 | power, &[enhanced(units, &syn)])]).unwrap();
        let nanos = if power == 0 { 1_000_000_000 } else { 1_500_000_000 };
        assert_eq!(segments[0].at.as_nanos(), nanos, "2^-{power} s");
    }
    for (resolution, unit) in [(20, "10^-20 s"), (0x80 | 70, "2^-70 s")] {
        let error = read(vec![pcapng(resolution, &[enhanced(1, &syn)])]).unwrap_err();
        assert!(error.message.contains(unit) && error.help.contains("unit"), "{error}");
    }
}

#[test]
fn packets_without_a_time_are_counted_in_a_note() {
    let [syn, _] = packets(4);
    let simple = (3, [&(syn.len() as u32).to_le_bytes()[..], &syn].concat());
    let file = pcapng(6, &[simple.clone(), simple]);
    let file = CaptureFile::new("simple.pcapng", Cursor::new(file));
    let explanation = explain(vec![file], &mut |_| true).unwrap();
    assert_eq!((explanation.segments, explanation.untimed_packets), (0, 2));
    assert!(explanation.text().contains("2 packets have no time"), "{}", explanation.text());
}

#[test]
fn padding_of_ethernet_is_not_payload() {
    let [syn, _] = packets(4);
    let mut padded = frame(1, 4, &syn);
    padded.extend([0; 30]);
    let segments = read(vec![pcap(MICRO, 1, &[padded], 65_535)]).unwrap();
    assert_eq!((segments[0].payload, segments[0].packet), (0, 48));
}

#[test]
fn segments_of_several_files_are_in_the_order_of_time() {
    let frames = packets(4);
    let early = pcap(NANO, 101, &frames, 65_535);
    let late = pcap(NANO, 101, &[frames[0].clone(), frames[0].clone(), frames[1].clone()], 65_535);
    let segments = read(vec![late, early]).unwrap();
    let times: Vec<_> =
        segments.iter().map(|segment| segment.at.as_nanos() / 250_000_000).collect();
    assert_eq!(times, [4, 4, 5, 5, 6]);
    // Each file is a point of its own.
    assert_eq!(segments.iter().map(|segment| segment.point).max(), Some(1));
}

#[test]
fn errors_name_the_file_the_byte_and_the_remedy() {
    let frames = packets(4);
    let whole = pcap(MICRO, 101, &frames, 65_535);
    let second = 24 + 16 + frames[0].len();
    let pcapng =
        [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28].map(u32::to_le_bytes);
    let pcapng = pcapng.as_flattened();
    // An enhanced packet block of interface 3.
    let block = [6_u32, 36, 3, 0, 0, 4, 4, 0, 36].map(u32::to_le_bytes);
    // The length at its end differs.
    let damaged = [6_u32, 36, 0, 0, 0, 4, 4, 0, 40].map(u32::to_le_bytes);
    let cases: Vec<(Vec<u8>, u64, &str)> = vec![
        (Vec::new(), 0, "the file is empty"),
        (b"\x1f\x8b\x08\0rest of a compressed file".to_vec(), 0, "compressed"),
        (b"time,bytes\n1,20\n2,30\n3,40\n".to_vec(), 0, "expected pcap or pcapng"),
        (whole[..second + 30].to_vec(), second as u64, "ends within a packet"),
        (whole[..second + 5].to_vec(), second as u64, "ends within a packet"),
        (pcap(MICRO, 147, &frames, 65_535), 24, "link type 147"),
        (pcapng[..20].to_vec(), 0, "ends within its section header"),
        ([pcapng, block.as_flattened()].concat(), 28, "interface 3"),
        ([pcapng, damaged.as_flattened()].concat(), 28, "expected a block"),
    ];
    for (bytes, offset, message) in cases {
        let error = read(vec![bytes]).unwrap_err();
        assert!(error.message.contains(message), "{message}: {error}");
        assert_eq!(error.offset, offset, "{error}");
        assert!(
            error.to_string().starts_with("test.pcap: byte ") && !error.help.is_empty(),
            "{error}"
        );
    }
}

#[test]
fn damaged_captures_end_with_an_error_or_an_explanation() {
    let captures: [&[u8]; 2] =
        [include_bytes!("../kernel/nagle.pcap"), include_bytes!("../short.pcapng")];
    let mut numbers = Numbers::new(1);
    let mut explained = 0;
    for round in 0..400 {
        let mut bytes = captures[round % 2].to_vec();
        for _ in 0..numbers.between(1.0, 40.0) as usize {
            let at = numbers.between(0.0, bytes.len() as f64 - 1.0) as usize;
            bytes[at] = numbers.between(0.0, 256.0) as u8;
        }
        match explain(vec![CaptureFile::new("damaged", Cursor::new(bytes))], &mut |_| true) {
            Ok(explanation) => {
                explained += 1;
                for connection in &explanation.connections {
                    let shares: f64 = connection.shares.limits.iter().map(|(_, share)| share).sum();
                    assert!(shares < 1.01 && !connection.details().is_empty(), "{shares}");
                }
            }
            Err(error) => assert!(error.to_string().contains("help: "), "{error}"),
        }
    }
    assert!(explained > 20, "{explained}");
}
