//! Fragmentation of datagrams that are larger than the MTU of a link (RFC 791, section 3.2; RFC
//! 8200, section 4.5), and their reassembly at the destination.

use std::collections::{BTreeMap, BTreeSet};

use gridhaul_core::link::LinkPayload;
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::scenario::{Directions, IpVersion, Scenario};

use crate::network::{END_OF_ROUTE, FIRST_PROXY};
use crate::packet::{Body, Datagram, Fragment, Packet};
use crate::path_mtu::{PathMtu, size_without_sack};

/// The MTU of each link, and the datagrams of which some fragments have arrived or are lost.
#[derive(Debug, Clone)]
pub(crate) struct Fragmentation {
    /// MTU of each direction in bytes.
    mtu: Vec<u32>,
    /// Row of the answer of each direction.
    row_of: Vec<u32>,
    pub path_mtu: PathMtu,
    /// By destination and number of the datagram.
    pending: BTreeMap<(u64, u32), PendingDatagram>,
}

/// A datagram of which not all fragments have arrived.
#[derive(Debug, Clone, Default)]
struct PendingDatagram {
    /// Where the fragments start that have arrived or are lost; a link may duplicate them.
    seen: BTreeSet<u16>,
    /// Bytes in these fragments.
    bytes: u32,
    is_lost: bool,
    is_altered: bool,
}

/// Result of a fragment for its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reassembled {
    /// Other fragments are on the way.
    Waiting,
    /// All fragments have arrived.
    Complete(Datagram),
}

/// UDP header, which is part of the first fragment (RFC 768).
const UDP_HEADER: u32 = 8;

/// Offsets of fragments count units of 8 B (RFC 791, section 3.1).
const UNIT: u32 = 8;

/// Fragment header of IPv6 (RFC 8200, section 4.5).
const IPV6_FRAGMENT_HEADER: u8 = 8;

impl Fragmentation {
    /// `None` for a scenario whose links have no MTU.
    pub(crate) fn new(scenario: &Scenario, directions: &Directions) -> Option<Box<Self>> {
        let limits = Directions::keys(scenario).map(|direction| {
            direction.mtu.map_or(u32::MAX, |mtu| u32::try_from(mtu.get()).unwrap_or(u32::MAX))
        });
        let limits: Vec<u32> = limits.collect();
        let mtu = directions.row_of().iter().map(|&row| limits[row as usize]).collect();
        let has_limit = limits.iter().any(|limit| *limit != u32::MAX);
        has_limit.then(|| {
            let (row_of, path_mtu) = (directions.row_of().to_vec(), PathMtu::new(scenario));
            Box::new(Self { mtu, row_of, path_mtu, pending: BTreeMap::new() })
        })
    }

    /// The MTU of a link that is smaller than a segment.
    pub(crate) fn mtu_exceeded_by(&self, segment: &Segment, link: u32) -> Option<u32> {
        let mtu = self.mtu[link as usize];
        (size_without_sack(segment) > mtu).then_some(mtu)
    }

    /// See [`PathMtu::return_path`], for a direction and the reverse route of a flow.
    pub(crate) fn return_path(&self, link: u32, route: &[u32]) -> Option<usize> {
        let row = |link: &u32| self.row_of.get(*link as usize).copied().unwrap_or(END_OF_ROUTE);
        let route = route.iter().take_while(|link| **link != END_OF_ROUTE);
        self.path_mtu.return_path(row(&link), route.map(row))
    }

    /// The fragments of a datagram, or of a fragment, that is offered to the first link of `route`;
    /// empty if the packet fits.
    ///
    /// Routers fragment datagrams of IPv4. Those of IPv6 are fragmented by their sender (RFC 8200,
    /// section 5), which is assumed to know the MTU of the path.
    pub(crate) fn fragments(&self, datagram: &Datagram, route: &[u32]) -> Vec<Datagram> {
        let is_v6 = u64::from(datagram.header) == IpVersion::V6.datagram_headers().get();
        let links = route.iter().take_while(|link| **link != END_OF_ROUTE);
        let links = links.filter(|link| **link < FIRST_PROXY);
        let links = links.take(if is_v6 { usize::MAX } else { 1 });
        let mtu = links.map(|link| self.mtu[*link as usize]).min().unwrap_or(u32::MAX);
        if Body::Datagram(*datagram).wire_bytes() <= mtu {
            return Vec::new();
        }
        let extension = if is_v6 { IPV6_FRAGMENT_HEADER } else { 0 };
        let header = datagram.header - UDP_HEADER as u8 + extension;
        let whole = Fragment { header, start: 0, bytes: datagram.bytes + UDP_HEADER };
        let Fragment { start, bytes, .. } = datagram.fragment.unwrap_or(whole);
        let most = (mtu.saturating_sub(u32::from(header)) / UNIT * UNIT).max(UNIT);
        let starts = (0..bytes).step_by(most as usize);
        let fragment = |offset: u32| {
            let start = start + (offset / UNIT) as u16;
            let fragment = Fragment { header, start, bytes: most.min(bytes - offset) };
            Datagram { fragment: Some(fragment), ..*datagram }
        };
        starts.map(fragment).collect()
    }

    /// A fragment has arrived at the destination of its datagram.
    pub(crate) fn on_arrived(&mut self, packet: &Packet, datagram: &Datagram) -> Reassembled {
        let Some(fragment) = datagram.fragment else { return Reassembled::Complete(*datagram) };
        let pending = self.pending.entry((packet.flow_key(), datagram.number)).or_default();
        pending.is_altered |= datagram.is_altered;
        if !pending.add(fragment) || pending.bytes < datagram.bytes + UDP_HEADER {
            return Reassembled::Waiting;
        }
        let PendingDatagram { is_lost, is_altered, .. } = *pending;
        self.pending.remove(&(packet.flow_key(), datagram.number));
        let whole = Datagram { fragment: None, is_altered, ..*datagram };
        if is_lost { Reassembled::Waiting } else { Reassembled::Complete(whole) }
    }

    /// A packet of a datagram is lost. Returns whether the datagram is lost with it: only the first
    /// lost fragment counts.
    pub(crate) fn on_lost(&mut self, packet: &Packet, datagram: &Datagram) -> bool {
        let Some(fragment) = datagram.fragment else { return true };
        let pending = self.pending.entry((packet.flow_key(), datagram.number)).or_default();
        // The loss of a duplicate is none.
        let is_new = pending.add(fragment);
        let is_first = is_new && !pending.is_lost;
        pending.is_lost |= is_new;
        if pending.bytes >= datagram.bytes + UDP_HEADER {
            self.pending.remove(&(packet.flow_key(), datagram.number));
        }
        is_first
    }
}

impl PendingDatagram {
    /// Counts a fragment; false for a duplicate.
    fn add(&mut self, fragment: Fragment) -> bool {
        let is_new = self.seen.insert(fragment.start);
        if is_new {
            self.bytes += fragment.bytes;
        }
        is_new
    }
}

impl Packet {
    /// The destination, which the fragments of a datagram share.
    fn flow_key(&self) -> u64 {
        LinkPayload::flow(self)
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::FlowEnd;
    use gridhaul_scenario::units::Instant;

    use super::*;
    use crate::end_id::EndId;

    fn datagram(bytes: u32, header: u8) -> Datagram {
        let (is_altered, number, ready) = (false, 7, Instant::ZERO);
        Datagram { bytes, header, is_altered, number, ready, fragment: None, coap: None }
    }

    fn fragmentation(mtu: &[u32]) -> Fragmentation {
        let path_mtu = PathMtu::default();
        let row_of = (0..mtu.len() as u32).collect();
        Fragmentation { mtu: mtu.to_vec(), row_of, path_mtu, pending: BTreeMap::new() }
    }

    fn sizes(fragments: &[Datagram]) -> Vec<u32> {
        fragments.iter().map(|fragment| Body::Datagram(*fragment).wire_bytes()).collect()
    }

    fn packet(datagram: Datagram) -> Packet {
        Packet { to: EndId::of(0, FlowEnd::To), body: Body::Datagram(datagram), ..Packet::blank() }
    }

    #[test]
    fn fragments_fill_the_mtu_in_units_of_eight_bytes() {
        let links = fragmentation(&[1_500, 1_280, u32::MAX]);
        let route = [0, 1, 2, END_OF_ROUTE];
        // 4,000 B and 8 B of UDP header: 1,480 + 1,480 + 1,048 B with 20 B of IPv4 header each.
        let fragments = links.fragments(&datagram(4_000, 28), &route);
        assert_eq!(sizes(&fragments), [1_500, 1_500, 1_068]);
        // A router divides a fragment again: 1,256 + 224 B.
        assert_eq!(sizes(&links.fragments(&fragments[1], &route[1..])), [1_276, 244]);
        assert_eq!(sizes(&links.fragments(&fragments[2], &route[1..])), [0_u32; 0]);
        // IPv6, for the smallest MTU of the path: 1,232 B after headers of 40 and 8 B.
        let fragments = links.fragments(&datagram(4_000, 48), &route);
        assert_eq!(sizes(&fragments), [1_280, 1_280, 1_280, 360]);
        assert_eq!(sizes(&links.fragments(&datagram(1_472, 28), &route)), [0_u32; 0]);
        assert_eq!(sizes(&links.fragments(&datagram(1_473, 28), &route)), [1_500, 21]);
    }

    #[test]
    fn a_datagram_arrives_with_its_last_fragment_in_any_order() {
        let mut links = fragmentation(&[1_500]);
        let fragments = links.fragments(&datagram(4_000, 28), &[0, END_OF_ROUTE]);
        let mut arrive = |number: usize| {
            let fragment = fragments[number];
            links.on_arrived(&packet(fragment), &fragment)
        };
        // A duplicate is no other fragment, although the bytes of these three would suffice.
        assert_eq!([0, 0, 2].map(&mut arrive), [Reassembled::Waiting; 3]);
        assert_eq!(arrive(1), Reassembled::Complete(datagram(4_000, 28)));
        assert!(links.pending.is_empty());
    }

    #[test]
    fn a_datagram_is_lost_once_with_any_of_its_fragments() {
        let mut links = fragmentation(&[1_500]);
        let fragments = links.fragments(&datagram(4_000, 28), &[0, END_OF_ROUTE]);
        assert!(links.on_lost(&packet(fragments[0]), &fragments[0]));
        let arrived = links.on_arrived(&packet(fragments[1]), &fragments[1]);
        assert_eq!(arrived, Reassembled::Waiting);
        assert!(!links.on_lost(&packet(fragments[2]), &fragments[2]));
        assert!(links.pending.is_empty(), "no fragment is on the way any more");
        // The other fragments arrive.
        assert!(links.on_lost(&packet(fragments[1]), &fragments[1]));
        for number in [0, 2] {
            let arrived = links.on_arrived(&packet(fragments[number]), &fragments[number]);
            assert_eq!(arrived, Reassembled::Waiting);
        }
    }

    #[test]
    fn a_lost_duplicate_of_a_fragment_loses_nothing() {
        let mut links = fragmentation(&[1_500]);
        let fragments = links.fragments(&datagram(4_000, 28), &[0, END_OF_ROUTE]);
        let [first, second, third] = [0, 1, 2].map(|number| packet(fragments[number]));
        links.on_arrived(&first, &fragments[0]);
        assert!(!links.on_lost(&first, &fragments[0]));
        links.on_arrived(&second, &fragments[1]);
        let complete = Reassembled::Complete(datagram(4_000, 28));
        assert_eq!(links.on_arrived(&third, &fragments[2]), complete);
    }

    #[test]
    fn any_altered_fragment_alters_its_datagram() {
        for altered in 0..3 {
            let mut links = fragmentation(&[1_500]);
            let mut fragments = links.fragments(&datagram(4_000, 28), &[0, END_OF_ROUTE]);
            fragments[altered].is_altered = true;
            let arrived = fragments.iter().map(|part| links.on_arrived(&packet(*part), part));
            let expected = Datagram { is_altered: true, ..datagram(4_000, 28) };
            assert_eq!(arrived.last(), Some(Reassembled::Complete(expected)), "{altered}");
        }
    }

    #[test]
    fn fragments_of_datagrams_to_different_ends_are_apart() {
        let mut links = fragmentation(&[1_500]);
        let fragments = links.fragments(&datagram(4_000, 28), &[0, END_OF_ROUTE]);
        let ends = [(0, FlowEnd::To), (0, FlowEnd::From), (1, FlowEnd::To)];
        for (part, (flow, end)) in fragments.iter().zip(ends) {
            let packet = Packet { to: EndId::of(flow, end), ..packet(*part) };
            assert_eq!(links.on_arrived(&packet, part), Reassembled::Waiting, "{end:?} of {flow}");
        }
    }
}
