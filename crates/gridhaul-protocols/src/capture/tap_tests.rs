//! Tests of taps with packets of the codec.

use std::net::{IpAddr, SocketAddr};

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{
    Addresses, IpHeader, Payload, TcpHeader, UdpHeader, write_tcp, write_udp,
};
use gridhaul_scenario::units::Instant;

use super::CapturePoint;
use super::{CapturedPacket, MessageScanner, Route, Sighting, Tap, TapCounters};
use crate::message_header::Header;

const RUN: u32 = 0x6d65_6173;
const PUBLISHER: [u8; 4] = [10, 0, 0, 1];
const BROKER: [u8; 4] = [10, 0, 0, 2];
const PORT: u16 = 1883;

fn message(sequence: u64) -> Vec<u8> {
    let mut message = vec![0x33; 40];
    Header { run: RUN, sequence }.write(&mut message);
    message
}

fn tap(route: Route) -> Tap {
    Tap::new(route, MessageScanner::new(RUN, 1_000, 40))
}

fn ip(from: [u8; 4], to: [u8; 4]) -> IpHeader {
    IpHeader::new(Addresses::new(IpAddr::from(from), IpAddr::from(to)).unwrap())
}

/// A segment between the broker and a client with this port.
fn segment(client: u16, to_broker: bool, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    let (header, ports) = if to_broker {
        (ip(PUBLISHER, BROKER), [client, PORT])
    } else {
        (ip(BROKER, PUBLISHER), [PORT, client])
    };
    let flags = if seq == 0 && payload.is_empty() { Flags::SYN } else { Flags::ACK };
    let tcp = TcpHeader {
        source_port: ports[0],
        destination_port: ports[1],
        seq,
        ack,
        flags,
        ..TcpHeader::default()
    };
    let mut packet = Vec::new();
    write_tcp(&mut packet, &header, &tcp, Payload::Bytes(payload)).unwrap();
    packet
}

/// A segment that is neither to nor from the broker.
fn other_traffic(payload: &[u8]) -> Vec<u8> {
    let tcp = TcpHeader { source_port: 9, destination_port: 10, ..TcpHeader::default() };
    let mut packet = Vec::new();
    write_tcp(&mut packet, &ip(PUBLISHER, BROKER), &tcp, Payload::Bytes(payload)).unwrap();
    packet
}

fn sightings(tap: &mut Tap, packets: &[(u64, bool, Vec<u8>)]) -> Vec<(u64, CapturePoint, u64)> {
    let mut found = Vec::new();
    for (at, outgoing, bytes) in packets {
        let packet = CapturedPacket {
            at: Instant::from_nanos(*at),
            outgoing: *outgoing,
            ether_type: 0x0800,
            bytes,
        };
        tap.handle_packet(&packet, &mut |sighting| {
            found.push((sighting.sequence, sighting.point, sighting.at.as_nanos()));
        });
    }
    found
}

#[test]
fn the_legs_are_those_to_and_from_the_broker() {
    let broker = SocketAddr::from((BROKER, PORT));
    let mut tap = tap(Route::Broker(broker));
    let (publish, deliver) =
        (segment(5_000, true, 1, 1, &message(3)), segment(5_001, false, 1, 1, &message(3)));
    // Both ends in one namespace: each packet is sent and received.
    let packets = [
        (10, true, publish.clone()),
        (11, false, publish),
        (20, true, deliver.clone()),
        (21, false, deliver),
        (30, true, other_traffic(&message(4))),
    ];
    let expected = [
        (3, CapturePoint::PublisherDeparture, 10),
        (3, CapturePoint::BrokerArrival, 11),
        (3, CapturePoint::BrokerDeparture, 20),
        (3, CapturePoint::SubscriberArrival, 21),
    ];
    assert_eq!(sightings(&mut tap, &packets), expected);
}

#[test]
fn a_message_arrives_when_all_bytes_before_it_have_arrived() {
    let mut tap = tap(Route::Broker(SocketAddr::from((BROKER, PORT))));
    let packets = [
        (1, false, segment(5_000, true, 0, 0, &[])),
        // The second message overtakes the first, which is retransmitted.
        (20, false, segment(5_000, true, 41, 1, &message(1))),
        (90, false, segment(5_000, true, 1, 1, &message(0))),
    ];
    let expected = [(0, CapturePoint::BrokerArrival, 90), (1, CapturePoint::BrokerArrival, 90)];
    assert_eq!(sightings(&mut tap, &packets), expected);
    assert_eq!(tap.counters(), TapCounters::default());
}

#[test]
fn retransmissions_are_counted_where_they_are_sent() {
    let mut tap = tap(Route::Broker(SocketAddr::from((BROKER, PORT))));
    let data = segment(5_000, true, 1, 1, &message(0));
    let packets =
        [(1, true, segment(5_000, true, 0, 0, &[])), (20, true, data.clone()), (220, true, data)];
    assert_eq!(sightings(&mut tap, &packets), [(0, CapturePoint::PublisherDeparture, 20)]);
    assert_eq!(tap.counters().retransmissions, 1);
}

#[test]
fn bytes_that_the_capture_missed_are_skipped_when_they_are_acknowledged() {
    let mut tap = tap(Route::Broker(SocketAddr::from((BROKER, PORT))));
    let packets = [
        (1, false, segment(5_000, true, 0, 0, &[])),
        (20, false, segment(5_000, true, 41, 1, &message(1))),
        (21, true, segment(5_000, false, 1, 81, &[])),
        (30, false, segment(5_000, true, 81, 1, &message(2))),
    ];
    let expected = [(1, CapturePoint::BrokerArrival, 21), (2, CapturePoint::BrokerArrival, 30)];
    assert_eq!(sightings(&mut tap, &packets), expected);
    assert_eq!(tap.counters().missed_bytes, 40);
}

#[test]
fn datagrams_and_frames_carry_whole_messages() {
    let mut tap = tap(Route::Direct);
    let mut datagram = Vec::new();
    let udp = UdpHeader { source_port: 1, destination_port: 2 };
    write_udp(&mut datagram, &ip(PUBLISHER, BROKER), &udp, Payload::Bytes(&message(6))).unwrap();
    let expected = [(6, CapturePoint::SubscriberArrival, 5)];
    assert_eq!(sightings(&mut tap, &[(5, false, datagram)]), expected);
    let frame = [&[0x61, 3, 4][..], &message(7)].concat();
    let packet =
        CapturedPacket { at: Instant::ZERO, outgoing: true, ether_type: 0x88ba, bytes: &frame };
    let mut found = Vec::new();
    tap.handle_packet(&packet, &mut |sighting| found.push(sighting));
    let (sequence, point) = (7, CapturePoint::PublisherDeparture);
    assert_eq!(found, [Sighting { sequence, point, at: Instant::ZERO }]);
}
