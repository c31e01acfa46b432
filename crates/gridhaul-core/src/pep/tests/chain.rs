//! Two hosts and the proxies between them, in simulated time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gridhaul_scenario::units::{Duration, Instant};

use super::Packet;
use super::hop::{Impairments, arrivals};
use super::host::{Application, Close, Host};
use super::proxy::ProxyWithPayload;
use crate::pep::{PassThrough, Proxy, Side};
use crate::tcp::{Segment, StackParams, State};

/// One-way delay of each hop.
pub(super) const DELAY: Duration = Duration::from_millis(10);

/// More segments than any transfer needs, over all hops.
const MAX_SENT: u64 = 1_000_000;

/// Two hosts, the proxies between them, and the segments in flight. Node 0 is the client, nodes 1
/// to k are the proxies, and node k + 1 is the server.
pub(super) struct Chain {
    pub now: Instant,
    pub hosts: [Host; 2],
    pub proxies: Vec<ProxyWithPayload>,
    pub impairments: Impairments,
    /// Segments that were sent on all hops.
    pub sent: u64,
    /// Ranges of each direction that were at risk in a proxy that has crashed.
    pub lost_in_crash: [Vec<Range<u64>>; 2],
    /// Whether resets are expected: acknowledged data may then be lost.
    pub resets: bool,
    /// Whether an acknowledged FIN must have arrived at the other host.
    pub closes_end_to_end: bool,
    /// Segments in flight, in order of arrival, with the node and the side at which they arrive.
    in_flight: BTreeMap<(Instant, u64), (usize, Side, Packet)>,
    /// Number of segments in flight so far: segments that arrive at the same time stay in order.
    order: u64,
    steps: u64,
}

/// Initial sequence numbers of the hosts, close to 2³² so that they wrap.
pub(super) const ISNS: [u32; 2] = [u32::MAX - 100, u32::MAX - 50];

impl Chain {
    /// A connection that is opened through the given proxies, each of which may buffer `limit`
    /// bytes of each direction.
    pub(super) fn opening(
        params: &Arc<StackParams>,
        applications: [Application; 2],
        proxies: Vec<Box<dyn Proxy>>,
        limit: u64,
        impairments: Impairments,
    ) -> Self {
        let hosts = Side::BOTH.map(|side| {
            Host::opening(side, params.clone(), ISNS[side.index()], applications[side.index()])
        });
        Self::new(hosts, proxies, limit, impairments)
    }

    /// Like [`Self::opening`], but without handshake.
    pub(super) fn established(
        params: &Arc<StackParams>,
        applications: [Application; 2],
        proxies: Vec<Box<dyn Proxy>>,
        limit: u64,
        impairments: Impairments,
    ) -> Self {
        let hosts = Side::BOTH.map(|side| {
            Host::established(side, params.clone(), params, ISNS, applications[side.index()])
        });
        let mut chain = Self::new(hosts, proxies, limit, impairments);
        chain.proxies.iter_mut().for_each(|proxy| proxy.set_isns(ISNS));
        chain
    }

    fn new(
        hosts: [Host; 2],
        proxies: Vec<Box<dyn Proxy>>,
        limit: u64,
        impairments: Impairments,
    ) -> Self {
        let proxies =
            proxies.into_iter().map(|proxy| ProxyWithPayload::new(proxy, limit)).collect();
        Self {
            now: Instant::ZERO,
            hosts,
            proxies,
            impairments,
            sent: 0,
            lost_in_crash: Default::default(),
            resets: false,
            closes_end_to_end: false,
            in_flight: BTreeMap::new(),
            order: 0,
            steps: 0,
        }
    }

    /// Runs until no event is left, or until `until`. Returns whether no event is left.
    pub(super) fn run(&mut self, until: Instant) -> bool {
        self.poll_all();
        loop {
            let next = self.next_time();
            if next == Instant::NEVER {
                return true;
            }
            if next > until {
                self.now = until;
                return false;
            }
            self.now = self.now.max(next);
            self.step();
        }
    }

    /// Runs until every byte has arrived and every FIN is acknowledged, which must happen within 10
    /// hours of simulated time.
    pub(super) fn run_to_completion(&mut self) {
        self.poll_all();
        while !self.is_complete() {
            let next = self.next_time();
            let is_soon = next < self.now + Duration::from_secs(3600);
            assert!(is_soon, "no event within an hour: {}", self.progress());
            assert!(self.now < Instant::ZERO + Duration::from_secs(36_000), "{}", self.progress());
            let until = next.max(self.now);
            self.run(until);
        }
    }

    /// Whether both streams have arrived, with FIN if the application closes. A close whose
    /// acknowledgements were lost for longer than TIME-WAIT ends with a reset.
    pub(super) fn is_complete(&self) -> bool {
        Side::BOTH.into_iter().all(|side| {
            let (host, peer) = (&self.hosts[side.index()], &self.hosts[side.other().index()]);
            let over = host.close_acknowledged() || host.connection.state() == State::Closed;
            let closes = host.application.close != Close::Never;
            peer.delivered() == host.application.write && (!closes || peer.finished() && over)
        })
    }

    /// Describes the progress of both streams.
    pub(super) fn progress(&self) -> String {
        let states = self.hosts.each_ref().map(|host| {
            let (delivered, state) = (host.delivered(), host.connection.state());
            format!(
                "{:?}: {state:?}, {} acknowledged, {delivered} received, finished {}, closed {}",
                host.side,
                host.acknowledged(),
                host.finished(),
                host.close_acknowledged()
            )
        });
        format!("{:?} {states:?}", self.now)
    }

    /// Crashes a proxy, which loses all its state, and replaces it by `fresh`.
    pub(super) fn crash(&mut self, proxy: usize, fresh: Box<dyn Proxy>) {
        let limit = self.proxies[proxy].limit;
        let old = std::mem::replace(&mut self.proxies[proxy], ProxyWithPayload::new(fresh, limit));
        for from in Side::BOTH {
            let lost = old.bytes_at_risk(from, ISNS[from.index()]);
            if !lost.is_empty() {
                self.lost_in_crash[from.index()].push(lost);
            }
        }
    }

    /// Changes the path so that it no longer contains this proxy.
    pub(super) fn bypass(&mut self, proxy: usize) {
        self.crash(proxy, Box::new(PassThrough::default()));
    }

    /// Injects a segment at a proxy.
    pub(super) fn inject(&mut self, proxy: usize, from: Side, segment: Segment) {
        let packet = Packet { segment, bytes: vec![0; segment.len as usize].into() };
        self.proxies[proxy].handle(self.now, from, packet);
        self.poll_node(proxy + 1);
    }

    fn next_time(&self) -> Instant {
        let in_flight = self.in_flight.first_key_value().map_or(Instant::NEVER, |(&(at, _), _)| at);
        let hosts = self.hosts.iter().map(Host::next_deadline);
        let proxies = self.proxies.iter().map(|proxy| proxy.proxy.next_deadline());
        hosts.chain(proxies).fold(in_flight, Instant::min)
    }

    /// Handles all events that are due.
    fn step(&mut self) {
        self.steps += 1;
        assert!(self.steps < 100_000, "too many events: {}", self.progress());
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key().0 <= self.now
        {
            let (node, from, packet) = entry.remove();
            if node == 0 || node > self.proxies.len() {
                self.hosts[from.other().index()].handle(self.now, &packet);
            } else {
                self.proxies[node - 1].handle(self.now, from, packet);
            }
            self.poll_node(node);
            self.check();
        }
        for host in &mut self.hosts {
            if host.next_deadline() <= self.now {
                host.handle_timeout(self.now);
            }
        }
        for proxy in &mut self.proxies {
            if proxy.proxy.next_deadline() <= self.now {
                proxy.proxy.handle_timeout(self.now);
            }
        }
        self.poll_all();
        self.check();
    }

    fn poll_all(&mut self) {
        (0..self.proxies.len() + 2).for_each(|node| self.poll_node(node));
    }

    fn poll_node(&mut self, node: usize) {
        let now = self.now;
        if node == 0 {
            while let Some(packet) = self.hosts[0].poll(now) {
                self.send(1, Side::Client, packet);
            }
        } else if node == self.proxies.len() + 1 {
            while let Some(packet) = self.hosts[1].poll(now) {
                self.send(node - 1, Side::Server, packet);
            }
        } else {
            while let Some((to, packet)) = self.proxies[node - 1].poll(now) {
                let next = if to == Side::Client { node - 1 } else { node + 1 };
                self.send(next, to.other(), packet);
            }
        }
    }

    /// Sends a packet over the hop to a node, where it arrives from this side.
    fn send(&mut self, node: usize, from: Side, packet: Packet) {
        self.sent += 1;
        assert!(self.sent < MAX_SENT, "too many segments: {}", self.progress());
        for (after, packet) in arrivals(packet, self.impairments.next(), DELAY) {
            self.order += 1;
            self.in_flight.insert((self.now + after, self.order), (node, from, packet));
        }
    }

    /// Checks the invariants.
    fn check(&mut self) {
        self.proxies.iter().for_each(ProxyWithPayload::check);
        for from in Side::BOTH {
            let (write, acknowledged) = {
                let host = &self.hosts[from.index()];
                (host.application.write, host.acknowledged())
            };
            let receiver = &mut self.hosts[from.other().index()];
            receiver.check(write);
            let delivered = receiver.delivered();
            // A reset may lose acknowledged data, as that of any TCP connection.
            if self.resets {
                continue;
            }
            if self.closes_end_to_end && self.hosts[from.index()].close_acknowledged() {
                let has_fin = self.hosts[from.other().index()].finished();
                assert!(has_fin, "{from:?}: FIN is acknowledged and has not arrived");
            }
            // Each byte that its sender may have forgotten and the receiver does not yet have must
            // be stored in a proxy, unless a crash has lost it. Stored ranges are skipped as a
            // whole.
            let mut offset = delivered;
            while offset < acknowledged {
                let isn = ISNS[from.index()];
                let stored =
                    self.proxies.iter().find_map(|proxy| proxy.stored_up_to(from, isn, offset));
                let lost = || {
                    let mut ranges = self.lost_in_crash[from.index()].iter();
                    ranges.find(|range| range.contains(&offset)).map(|range| range.end)
                };
                let statuses = || self.proxies.iter().map(|proxy| proxy.proxy.buffer_status(from));
                offset = stored.or_else(lost).unwrap_or_else(|| {
                    panic!(
                        "byte {offset} from {from:?} is acknowledged and stored nowhere: {:?}",
                        statuses().collect::<Vec<_>>()
                    )
                });
            }
        }
    }
}
