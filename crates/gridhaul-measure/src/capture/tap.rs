//! The packets of one namespace.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use gridhaul_core::wire::{Addresses, IpPacket, TcpPacket, Transport};
use gridhaul_scenario::units::Instant;

use super::scanner::MessageScanner;
use super::stream::{StreamDirection, StreamPart};
use crate::method::CapturePoint;

/// EtherTypes of IP (IEEE 802 numbers).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Which packets carry the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// From the publisher to the subscriber.
    Direct,
    /// From the publisher to the broker with this address, and from the broker to the subscriber.
    Broker(SocketAddr),
}

/// A packet from its network header on.
#[derive(Debug, Clone, Copy)]
pub struct CapturedPacket<'a> {
    /// Time at which the kernel handled it.
    pub at: Instant,
    /// The namespace sends it; otherwise it receives it.
    pub outgoing: bool,
    /// Protocol of the bytes.
    pub ether_type: u16,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A message that passes a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Sequence number of the message.
    pub sequence: u64,
    /// The place.
    pub point: CapturePoint,
    /// Time at which the message was complete.
    pub at: Instant,
}

/// What a capture counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TapCounters {
    /// TCP segments that were sent from here with bytes that had been sent before, in directions that carry messages.
    pub retransmissions: u64,
    /// Bytes of TCP streams that passed without being captured.
    pub missed_bytes: u64,
}

/// The packets of one namespace, in which messages are found. Over the loopback device a namespace both sends and receives a
/// packet.
#[derive(Debug)]
pub struct Tap {
    route: Route,
    /// A scanner of a new stream.
    scanner: MessageScanner,
    streams: HashMap<StreamKey, Stream>,
}

/// A direction of a connection, as it is sent or as it is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct StreamKey {
    flow: Flow,
    outgoing: bool,
}

/// Source and destination of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Flow {
    from: SocketAddr,
    to: SocketAddr,
}

#[derive(Debug)]
struct Stream {
    direction: StreamDirection,
    scanner: MessageScanner,
}

impl Tap {
    /// Finds the messages that `scanner` recognises on a route.
    #[must_use]
    pub fn new(route: Route, scanner: MessageScanner) -> Self {
        Self { route, scanner, streams: HashMap::new() }
    }

    /// A packet passes. Calls `found` for each message that is complete with it. Packets that cannot be parsed carry no message.
    pub fn handle_packet(&mut self, packet: &CapturedPacket<'_>, found: &mut impl FnMut(Sighting)) {
        if !matches!(packet.ether_type, IPV4 | IPV6) {
            // A frame of Sampled Values or GOOSE, which carries a message as a whole.
            if self.route == Route::Direct {
                self.handle_datagram(Leg::Only, packet, packet.bytes, found);
            }
            return;
        }
        let Ok(ip) = IpPacket::parse(packet.bytes) else { return };
        let Ok(transport) = ip.transport() else { return };
        match transport {
            Transport::Udp(udp) if self.route == Route::Direct => {
                self.handle_datagram(Leg::Only, packet, udp.payload(), found);
            }
            Transport::Tcp(tcp) => self.handle_segment(packet, &ip, &tcp, found),
            Transport::Udp(_) | Transport::Other(_) => {}
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> TapCounters {
        let mut counters = TapCounters::default();
        for (key, stream) in &self.streams {
            counters.missed_bytes += stream.direction.missed();
            if key.outgoing {
                counters.retransmissions += stream.direction.retransmissions();
            }
        }
        counters
    }

    fn handle_datagram(
        &self,
        leg: Leg,
        packet: &CapturedPacket<'_>,
        payload: &[u8],
        found: &mut impl FnMut(Sighting),
    ) {
        let (point, at) = (leg.point(packet.outgoing), packet.at);
        self.scanner
            .handle_datagram(payload, &mut |sequence| found(Sighting { sequence, point, at }));
    }

    fn handle_segment(
        &mut self,
        packet: &CapturedPacket<'_>,
        ip: &IpPacket<'_>,
        tcp: &TcpPacket<'_>,
        found: &mut impl FnMut(Sighting),
    ) {
        let Ok(header) = tcp.header() else { return };
        let (source, destination) = addresses(ip);
        let flow = Flow {
            from: SocketAddr::new(source, header.source_port),
            to: SocketAddr::new(destination, header.destination_port),
        };
        let Some(leg) = self.route.leg(&flow) else { return };
        let Some(opposite) = self.route.leg(&flow.reversed()) else { return };
        let at = packet.at;
        if header.flags.has(gridhaul_core::tcp::Flags::ACK) {
            for outgoing in [false, true] {
                let key = StreamKey { flow: flow.reversed(), outgoing };
                if let Some(stream) = self.streams.get_mut(&key) {
                    let point = opposite.point(outgoing);
                    stream.direction.handle_acknowledgement(header.ack, &mut |part| {
                        scan(&mut stream.scanner, part, at, &mut |sequence, at| {
                            found(Sighting { sequence, point, at });
                        });
                    });
                }
            }
        }
        let key = StreamKey { flow, outgoing: packet.outgoing };
        let stream = self.streams.entry(key).or_insert_with(|| Stream {
            direction: StreamDirection::default(),
            scanner: self.scanner.clone(),
        });
        let point = leg.point(packet.outgoing);
        stream.direction.handle_segment((header.seq, header.flags), tcp.payload(), &mut |part| {
            scan(&mut stream.scanner, part, at, &mut |sequence, at| {
                found(Sighting { sequence, point, at });
            });
        });
    }
}

fn scan(
    scanner: &mut MessageScanner,
    part: StreamPart<'_>,
    at: Instant,
    found: &mut impl FnMut(u64, Instant),
) {
    match part {
        StreamPart::Bytes(bytes) => scanner.handle_bytes(bytes, at, found),
        StreamPart::Gap => scanner.handle_gap(),
    }
}

/// A part of the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leg {
    /// From the publisher to the subscriber.
    Only,
    ToBroker,
    FromBroker,
}

impl Leg {
    const fn point(self, outgoing: bool) -> CapturePoint {
        match (self, outgoing) {
            (Self::Only | Self::ToBroker, true) => CapturePoint::PublisherDeparture,
            (Self::ToBroker, false) => CapturePoint::BrokerArrival,
            (Self::FromBroker, true) => CapturePoint::BrokerDeparture,
            (Self::Only | Self::FromBroker, false) => CapturePoint::SubscriberArrival,
        }
    }
}

impl Route {
    /// The leg to which packets belong; `None` for other traffic of the namespace.
    fn leg(self, flow: &Flow) -> Option<Leg> {
        match self {
            Self::Direct => Some(Leg::Only),
            Self::Broker(broker) if flow.to == broker => Some(Leg::ToBroker),
            Self::Broker(broker) if flow.from == broker => Some(Leg::FromBroker),
            Self::Broker(_) => None,
        }
    }
}

impl Flow {
    const fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

fn addresses(ip: &IpPacket<'_>) -> (IpAddr, IpAddr) {
    match ip.addresses() {
        Addresses::V4 { source, destination } => (source.into(), destination.into()),
        Addresses::V6 { source, destination } => (source.into(), destination.into()),
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_core::tcp::Flags;
    use gridhaul_core::wire::{IpHeader, Payload, TcpHeader, UdpHeader, write_tcp, write_udp};

    use super::*;
    use crate::method::Header;

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
    fn segment(client: u16, to_broker: bool, (seq, ack): (u32, u32), payload: &[u8]) -> Vec<u8> {
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
                ether_type: IPV4,
                bytes,
            };
            tap.handle_packet(&packet, &mut |it| {
                found.push((it.sequence, it.point, it.at.as_nanos()))
            });
        }
        found
    }

    #[test]
    fn the_legs_are_those_to_and_from_the_broker() {
        let broker = SocketAddr::from((BROKER, PORT));
        let mut tap = tap(Route::Broker(broker));
        let (publish, deliver) =
            (segment(5_000, true, (1, 1), &message(3)), segment(5_001, false, (1, 1), &message(3)));
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
            (1, false, segment(5_000, true, (0, 0), &[])),
            // The second message overtakes the first, which is retransmitted.
            (20, false, segment(5_000, true, (41, 1), &message(1))),
            (90, false, segment(5_000, true, (1, 1), &message(0))),
        ];
        let expected = [(0, CapturePoint::BrokerArrival, 90), (1, CapturePoint::BrokerArrival, 90)];
        assert_eq!(sightings(&mut tap, &packets), expected);
        assert_eq!(tap.counters(), TapCounters::default());
    }

    #[test]
    fn retransmissions_are_counted_where_they_are_sent() {
        let mut tap = tap(Route::Broker(SocketAddr::from((BROKER, PORT))));
        let data = segment(5_000, true, (1, 1), &message(0));
        let packets = [
            (1, true, segment(5_000, true, (0, 0), &[])),
            (20, true, data.clone()),
            (220, true, data),
        ];
        assert_eq!(sightings(&mut tap, &packets), [(0, CapturePoint::PublisherDeparture, 20)]);
        assert_eq!(tap.counters().retransmissions, 1);
    }

    #[test]
    fn bytes_that_the_capture_missed_are_skipped_when_they_are_acknowledged() {
        let mut tap = tap(Route::Broker(SocketAddr::from((BROKER, PORT))));
        let packets = [
            (1, false, segment(5_000, true, (0, 0), &[])),
            (20, false, segment(5_000, true, (41, 1), &message(1))),
            (21, true, segment(5_000, false, (1, 81), &[])),
            (30, false, segment(5_000, true, (81, 1), &message(2))),
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
        write_udp(&mut datagram, &ip(PUBLISHER, BROKER), &udp, Payload::Bytes(&message(6)))
            .unwrap();
        let expected = [(6, CapturePoint::SubscriberArrival, 5)];
        assert_eq!(sightings(&mut tap, &[(5, false, datagram)]), expected);
        let frame = [&[0x61, 3, 4][..], &message(7)].concat();
        let packet =
            CapturedPacket { at: Instant::ZERO, outgoing: true, ether_type: 0x88ba, bytes: &frame };
        let mut found = Vec::new();
        tap.handle_packet(&packet, &mut |it| found.push(it));
        let (sequence, point) = (7, CapturePoint::PublisherDeparture);
        assert_eq!(found, [Sighting { sequence, point, at: Instant::ZERO }]);
    }
}
