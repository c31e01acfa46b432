//! Captures: packets for Wireshark. Payload bytes do not exist in a simulation,
//! so packets are cut behind their headers, as with a short snapshot length.

use gridhaul_core::checksum;
use gridhaul_core::tcp::{ClockOption, Flags, OneWayDelay, Segment};
use gridhaul_scenario::answer::Capture;
use gridhaul_scenario::scenario::dealt;
use gridhaul_scenario::units::Instant;

use crate::packet::{Body, Datagram, Packet};

/// Writes down the packets that are offered to one direction of a link.
#[derive(Debug)]
pub(crate) struct Tap {
    /// Name of the direction.
    name: String,
    packets: Vec<(Instant, Packet)>,
}

/// Addresses and ports of the flows.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The ways of the flows, and the number of the first flow of each.
    ways: Vec<(u64, Way)>,
}

/// The ends of equal flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub from: Place,
    pub to: Place,
    /// Members of the larger of the two groups.
    pub group: u64,
    /// Number of flows: for each member as many.
    pub count: u64,
    /// Whether the flows lead on from a collector.
    pub upstream: bool,
}

/// A node or a group of nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Number of the node.
    pub node: u32,
    pub members: u64,
}

impl Tap {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), packets: Vec::new() }
    }

    pub(crate) fn on_offered(&mut self, now: Instant, packet: &Packet) {
        if self.packets.len() < Capture::PACKETS_MAX {
            self.packets.push((now, *packet));
        }
    }

    /// The capture.
    pub(crate) fn into_capture(self, addresses: &Addresses) -> Capture {
        let mut capture = Capture::new(&self.name);
        for (at, packet) in &self.packets {
            let (headers, whole) = addresses.encode(packet);
            capture.push(*at, &headers, whole);
        }
        capture
    }
}

impl Addresses {
    /// For flows that are numbered in the order of their ways.
    pub(crate) fn new(ways: impl Iterator<Item = Way>) -> Self {
        let mut first = 0;
        let ways = ways.map(|way| {
            let begin = first;
            first += way.count;
            (begin, way)
        });
        Self { ways: ways.collect() }
    }

    /// Headers of a packet, and its length on the wire.
    fn encode(&self, packet: &Packet) -> (Vec<u8>, u32) {
        let flow = u64::from(packet.flow());
        let index = self.ways.partition_point(|&(first, _)| first <= flow).saturating_sub(1);
        let (first, way) = &self.ways[index];
        let number = flow - first;
        // The flows of a single node are told apart by address; a collector has but one.
        let near = if way.upstream || way.from.members > 1 {
            way.from.address(number, way.group)
        } else {
            Place { members: way.count, ..way.from }.address(number, way.count)
        };
        let far = way.to.address(number, way.group);
        let port = 1024 + (flow % 60_000) as u16;
        let way = if packet.returning() {
            Header { source: far, target: near, ports: (SERVICE_PORT, port) }
        } else {
            Header { source: near, target: far, ports: (port, SERVICE_PORT) }
        };
        match &packet.body {
            Body::Tcp(segment) => (tcp(&way, segment), packet.body.wire_bytes()),
            Body::Datagram(datagram) => (udp(&way, *datagram), packet.body.wire_bytes()),
        }
    }
}

impl Place {
    /// 10.<node>.<member>: nodes and members are told apart for the first 256 and 65,536. The
    /// member is the one that goes with this one of a group.
    fn address(self, number: u64, group: u64) -> [u8; 4] {
        let member = match self.members {
            1 => 0xfffe,
            members => dealt(number % group, group, members),
        };
        [10, self.node as u8, (member >> 8) as u8, member as u8]
    }
}

/// Port of the `to` end.
const SERVICE_PORT: u16 = 7;

struct Header {
    source: [u8; 4],
    target: [u8; 4],
    ports: (u16, u16),
}

fn ipv4(way: &Header, protocol: u8, total: u32) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend((total.min(65_535) as u16).to_be_bytes());
    header.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    header.extend(way.source);
    header.extend(way.target);
    let checksum = checksum::internet(0, &header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn tcp(way: &Header, segment: &Segment) -> Vec<u8> {
    let options = tcp_options(segment);
    let header_len = 20 + options.len();
    let mut packet = ipv4(way, 6, 20 + header_len as u32 + segment.len);
    packet.extend(way.ports.0.to_be_bytes());
    packet.extend(way.ports.1.to_be_bytes());
    packet.extend(segment.seq.to_be_bytes());
    let ack = if segment.flags.has(Flags::ACK) { segment.ack } else { 0 };
    packet.extend(ack.to_be_bytes());
    packet.extend([(header_len as u8 / 4) << 4, segment.flags.bits()]);
    // The window of a SYN is never scaled (RFC 7323, section 2.2).
    let scale = if segment.flags.has(Flags::SYN) { 0 } else { WINDOW_SCALE };
    packet.extend(((segment.window >> scale).min(65_535) as u16).to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(options);
    packet
}

/// Shift of the windows in a capture (RFC 7323, section 2): room for 8 MB.
const WINDOW_SCALE: u8 = 7;

fn tcp_options(segment: &Segment) -> Vec<u8> {
    let mut options = Vec::new();
    if segment.flags.has(Flags::SYN) {
        options.extend([3, 3, WINDOW_SCALE, 1]);
        if segment.sack_permitted {
            options.extend([4, 2, 1, 1]);
        }
    }
    if let Some((value, echo)) = segment.timestamps {
        match segment.clock {
            ClockOption::Timestamps => options.extend([1, 1, 8, 10]),
            ClockOption::OneWayDelay => {
                options.extend([OneWayDelay::KIND, OneWayDelay::LEN]);
                options.extend(OneWayDelay::IDENTIFIER.to_be_bytes());
            }
        }
        options.extend(value.to_be_bytes());
        options.extend(echo.to_be_bytes());
    }
    let blocks = segment.sack.as_slice();
    if !blocks.is_empty() {
        options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            options.extend(left.to_be_bytes());
            options.extend(right.to_be_bytes());
        }
    }
    options
}

fn udp(way: &Header, datagram: Datagram) -> Vec<u8> {
    let mut packet = ipv4(way, 17, 28 + datagram.bytes);
    packet.extend(way.ports.0.to_be_bytes());
    packet.extend(way.ports.1.to_be_bytes());
    packet.extend(((datagram.bytes + 8).min(65_535) as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_an_option_of_their_own() {
        let timestamps = Some((0x0102_0304, 0x0506_0708));
        let segment = Segment { timestamps, ..Segment::default() };
        let medx = Segment { clock: ClockOption::OneWayDelay, ..segment };
        // RFC 7323: kind 8, length 10, behind two bytes of padding. RFC 6994: kind 253, length 12,
        // identifier of the experiment.
        assert_eq!(tcp_options(&segment), [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(tcp_options(&medx), [253, 12, 0x4d, 0x58, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
