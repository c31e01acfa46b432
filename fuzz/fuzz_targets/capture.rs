//! Arbitrary bytes as captured packets, and as payload of TCP segments with valid headers in
//! arbitrary order: a tap never panics, and finds only messages of the run.

#![no_main]

use std::net::{IpAddr, SocketAddr};

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{Addresses, IpHeader, Payload, TcpHeader, write_tcp};
use gridhaul_protocols::capture::{CapturedPacket, MessageScanner, Route, Tap};
use gridhaul_protocols::iec104;
use gridhaul_protocols::settings::DirectKind;
use gridhaul_scenario::units::Instant;
use libfuzzer_sys::fuzz_target;

const RUN: u32 = 0x6d65_6173;
const MESSAGES: u64 = 1_000;
const CLIENT: [u8; 4] = [10, 0, 0, 1];
const BROKER: [u8; 4] = [10, 0, 0, 2];
const PORT: u16 = 1883;

/// EtherType of IPv4.
const IPV4: u16 = 0x0800;

fn taps() -> Vec<Tap> {
    let routes = [
        Route::Direct,
        Route::Broker(SocketAddr::from((BROKER, PORT))),
        Route::Decoded(DirectKind::Iec104(iec104::Window::STANDARD)),
        Route::Decoded(DirectKind::Dnp3 { poll: None }),
    ];
    routes.map(|route| Tap::new(route, MessageScanner::new(RUN, MESSAGES, 40))).into()
}

/// A segment whose first bytes select direction, sequence number, acknowledgement and flags.
fn segment([selection, seq, ack]: [u8; 3], payload: &[u8]) -> Option<Vec<u8>> {
    let to_broker = selection & 1 == 0;
    let (from, to) = if to_broker { (CLIENT, BROKER) } else { (BROKER, CLIENT) };
    let ports = if to_broker { [40_000, PORT] } else { [PORT, 40_000] };
    let tcp = TcpHeader {
        source_port: ports[0],
        destination_port: ports[1],
        // Small numbers, and some that wrap.
        seq: u32::from(seq).wrapping_sub(64),
        ack: u32::from(ack).wrapping_sub(64),
        flags: if selection & 2 == 0 { Flags::ACK } else { Flags::SYN },
        ..TcpHeader::default()
    };
    let addresses = Addresses::new(IpAddr::from(from), IpAddr::from(to)).ok()?;
    let header = IpHeader::new(addresses);
    let mut packet = Vec::new();
    write_tcp(&mut packet, &header, &tcp, Payload::Bytes(payload)).ok()?;
    Some(packet)
}

fn check(taps: &mut [Tap], outgoing: bool, bytes: &[u8]) {
    for tap in taps {
        let packet = CapturedPacket { at: Instant::ZERO, outgoing, ether_type: IPV4, bytes };
        tap.handle_packet(&packet, &mut |found| assert!(found.sequence < MESSAGES, "{found:?}"));
        let counters = tap.counters();
        assert!(counters.missed_bytes < 1 << 33, "{counters:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut taps = taps();
    check(&mut taps, true, bytes);
    let mut rest = bytes;
    // Direction, sequence number, acknowledgement and length of each segment.
    while let [selection, seq, ack, length, payload @ ..] = rest {
        let (payload, after) = payload.split_at(payload.len().min(usize::from(*length)));
        if let Some(packet) = segment([*selection, *seq, *ack], payload) {
            check(&mut taps, selection & 4 == 0, &packet);
        }
        rest = after;
    }
});
