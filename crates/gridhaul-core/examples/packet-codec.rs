//! Prints the processing time per packet of the packet codec: parsing the fields that the emulator
//! needs, parsing all fields, writing, verifying checksums, and rewriting.

#![expect(clippy::disallowed_methods, reason = "the benchmark measures wall-clock time")]

use std::hint::black_box;
use std::time::Instant;

use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::{
    Addresses, IpHeader, IpPacket, PacketRewriter, PacketSummary, Payload, TcpHeader, Transport,
    write_tcp,
};

/// Packets per run, and number of runs, of which the fastest is reported.
const PACKETS: u32 = 2_000_000;
const RUNS: usize = 7;
/// Bytes of payload.
const DATA: usize = 1_448;

fn main() {
    let (source, destination) = ([10, 2, 0, 7].into(), [10, 3, 0, 7].into());
    let v4 = Addresses::V4 { source, destination };
    let parse = |text: &str| text.parse().expect("an address");
    let v6 = Addresses::new(parse("fd67:7269:6468:2::7"), parse("fd67:7269:6468:3::7"));
    let v6 = v6.expect("both are of version 6");
    for (name, addresses) in [("IPv4", v4), ("IPv6", v6)] {
        let ip = IpHeader::new(addresses);
        let segment = Segment { timestamps: Some((1, 2)), flags: Flags::ACK, ..Segment::default() };
        let tcp = TcpHeader::from_segment(&segment, 40_000, 7);
        let mut packet = Vec::new();
        write_tcp(&mut packet, &ip, &tcp, Payload::Bytes(&[7; DATA])).expect("options fit");
        let mut buffer = Vec::with_capacity(2 * packet.len());

        print(name, "parse destination, sequence number and length", || {
            black_box(PacketSummary::read(black_box(&packet)));
        });
        print(name, "parse a segment with its options", || {
            black_box(segment_of(black_box(&packet)));
        });
        print(name, "verify the checksums", || {
            black_box(IpPacket::parse(black_box(&packet)).map(|ip| ip.verify())).ok();
        });
        print(name, "write headers only", || {
            buffer.clear();
            let written = write_tcp(&mut buffer, &ip, black_box(&tcp), Payload::Omitted(1_448));
            black_box(written).ok();
        });
        print(name, "write with the payload", || {
            buffer.clear();
            let data = Payload::Bytes(black_box(&[7; DATA]));
            black_box(write_tcp(&mut buffer, &ip, &tcp, data)).ok();
        });
        print(name, "rewrite sequence number and window", || {
            if let Ok(mut rewriter) = PacketRewriter::parse(black_box(&mut packet)) {
                black_box(rewriter.set_seq(black_box(77))).ok();
                black_box(rewriter.set_window(black_box(99))).ok();
            }
        });
    }
}

#[inline(never)]
fn segment_of(packet: &[u8]) -> Option<Segment> {
    let ip = IpPacket::parse(packet).ok()?;
    match ip.transport() {
        Ok(Transport::Tcp(segment)) => segment.segment(ip.header_len()).ok(),
        _ => None,
    }
}

fn print(version: &str, what: &str, mut work: impl FnMut()) {
    let runs = (0..RUNS).map(|_| {
        let begun = Instant::now();
        (0..PACKETS).for_each(|_| work());
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS)
    });
    println!("{version}, {what}: {:.1} ns", runs.fold(f64::INFINITY, f64::min));
}
