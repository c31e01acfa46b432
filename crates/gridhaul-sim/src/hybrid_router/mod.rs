//! Hybrid routers: pairs of nodes that send the packets between them over one of several links.
//!
//! The machines are those of the daemon. Their probes are packets of the links, so that queues,
//! losses and outages decide what the routers know. A switch replaces the entries of the links in
//! the list of routes: packets that a link has accepted stay on it.

mod unsupported;
mod wiring;

use std::collections::BTreeMap;

use gridhaul_core::router::{Event, Machine, Probe};
use gridhaul_scenario::units::Instant;

use crate::end_id::EndId;
use crate::events::Target;
use crate::network::Network;
use crate::packet::{Body, Packet, ProbePacket};

pub(crate) use self::unsupported::unsupported_routers;

/// The hybrid routers of a run and their probes.
#[derive(Debug, Clone, Default)]
pub(crate) struct HybridRouters {
    routers: Vec<HybridRouter>,
    /// Number of flows: the routers are ends after those of the flows.
    flows: u32,
    /// Probes on the links, by number.
    in_transit: BTreeMap<u32, ProbeInTransit>,
    /// Number of the next probe.
    next_id: u32,
}

/// A router of a pair.
#[derive(Debug, Clone)]
struct HybridRouter {
    machine: Machine,
    /// The first probe is sent at this time.
    starts_at: Instant,
    peer: u32,
    links: Vec<RouterLink>,
    /// Indices in the list of routes at which packets of each class leave the router.
    departures: Vec<Vec<u32>>,
}

/// A link in the direction to the peer.
#[derive(Debug, Clone, Copy)]
struct RouterLink {
    direction: u32,
    /// Index in the list of routes at which the route of probes begins.
    probe_route: u32,
    /// Number of the link at the peer.
    at_peer: usize,
}

#[derive(Debug, Clone)]
struct ProbeInTransit {
    /// The datagram, whose times have the resolution of the daemon.
    datagram: Vec<u8>,
    /// Number of the link at the receiver.
    link: usize,
}

/// Headers of IP (RFC 791) and UDP (RFC 768).
const PROBE_HEADERS: u32 = 20 + 8;

impl HybridRouters {
    /// Number of routers.
    pub(crate) const fn count(&self) -> usize {
        self.routers.len()
    }

    /// When each router starts.
    pub(crate) fn starts(&self) -> impl Iterator<Item = Instant> {
        self.routers.iter().map(|router| router.starts_at)
    }

    /// A probe arrives. A copy of it, which a link may create, has no effect.
    pub(crate) fn on_probe(&mut self, now: Instant, net: &mut Network, packet: &Packet, id: u32) {
        let Some(ProbeInTransit { datagram, link }) = self.in_transit.remove(&id) else { return };
        let index = packet.to.index() - 2 * self.flows;
        let router = &mut self.routers[index as usize];
        if now >= router.starts_at
            && let Some(probe) = Probe::decode(&datagram)
        {
            router.machine.handle_probe(now, link, &probe);
            self.proceed(now, net, index);
        }
    }

    /// A link has lost a probe.
    pub(crate) fn on_lost(&mut self, id: u32) {
        self.in_transit.remove(&id);
    }

    /// Applies the passing of time, sends the probes that are due, and applies switches.
    pub(crate) fn proceed(&mut self, now: Instant, net: &mut Network, index: u32) {
        let Self { routers, flows, in_transit, next_id } = self;
        let router = &mut routers[index as usize];
        router.machine.advance(now);
        while let Some((link, probe)) = router.machine.next_probe(now) {
            let id = *next_id;
            *next_id = id.wrapping_add(1);
            let RouterLink { probe_route, at_peer, .. } = router.links[link];
            let datagram = probe.encode();
            let bytes = PROBE_HEADERS + datagram.len() as u32;
            let to = EndId::from_index(2 * *flows + router.peer);
            let body = Body::Probe(ProbePacket { id, bytes });
            let packet = |next| Packet { to, next, sent: now, body };
            if net.offer(now, probe_route, bytes, packet).is_ok() {
                in_transit.insert(id, ProbeInTransit { datagram, link: at_peer });
            }
        }
        router.apply_switches(net);
        net.events.schedule(Target::Router(index), router.machine.deadline());
    }
}

impl HybridRouter {
    /// Lets classes use the links that the machine has selected.
    fn apply_switches(&mut self, net: &mut Network) {
        for event in self.machine.take_events() {
            if let Event::Selected { class, link } = event {
                for departure in &self.departures[class] {
                    net.routes[*departure as usize] = self.links[link].direction;
                }
            }
        }
    }
}
