//! The packets of one namespace.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use gridhaul_core::wire::{Addresses, IpPacket, TcpPacket, Transport};
use gridhaul_scenario::units::Instant;

use super::point::CapturePoint;
use super::scanner::MessageScanner;
use super::stream::{StreamDirection, StreamPart};
use crate::settings::DirectKind;

/// EtherTypes of IP (IEEE 802 numbers).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Which packets carry the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// From the publisher to the subscriber.
    Direct,
    /// As [`Route::Direct`], in connections of a protocol that divides or encodes messages.
    Decoded(DirectKind),
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

/// Counters of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TapCounters {
    /// TCP segments that were sent from here with bytes that had been sent before, in directions
    /// that carry messages.
    pub retransmissions: u64,
    /// Bytes of TCP streams that passed without being captured.
    pub missed_bytes: u64,
}

/// The packets of one namespace, in which messages are found. Over the loopback device a namespace
/// both sends and receives a packet.
#[derive(Debug)]
pub struct Tap {
    route: Route,
    /// A scanner of a new stream.
    scanner: MessageScanner,
    streams: BTreeMap<StreamKey, Stream>,
}

/// A direction of a connection, as it is sent or as it is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StreamKey {
    flow: Flow,
    outgoing: bool,
}

/// Source and destination of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
        let scanner = match route {
            Route::Decoded(kind) => scanner.decoding(kind),
            Route::Direct | Route::Broker(_) => scanner,
        };
        Self { route, scanner, streams: BTreeMap::new() }
    }

    /// A packet passes. Calls `found` for each message that is complete with it. Packets that
    /// cannot be parsed carry no message.
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

    /// Counters so far.
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
        stream.direction.handle_segment(header.seq, header.flags, tcp.payload(), &mut |part| {
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
            Self::Direct | Self::Decoded(_) => Some(Leg::Only),
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
