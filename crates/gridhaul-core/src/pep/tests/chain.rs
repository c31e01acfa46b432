//! Two hosts and the units between them, on a virtual clock.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gridhaul_scenario::units::{Duration, Instant};

use super::Packet;
use super::hop::{Impairments, arrivals};
use super::host::{Application, Close, Host};
use super::proxy::CarriedProxy;
use crate::pep::{PassThrough, Proxy, Side};
use crate::tcp::{Segment, StackParams, State};

/// Time that a segment takes over each hop.
pub(super) const DELAY: Duration = Duration::from_millis(10);

/// More segments than any transfer here needs, on all hops together.
const MOST_SENT: u64 = 1_000_000;

/// Two hosts, the units between them, and what is on its way. Node 0 is the left host, nodes
/// 1 to k are the units, node k + 1 is the right host.
pub(super) struct Chain {
    pub now: Instant,
    pub hosts: [Host; 2],
    pub units: Vec<CarriedProxy>,
    pub impairments: Impairments,
    /// Segments that were sent on all hops.
    pub sent: u64,
    /// Of each direction, what a unit that crashed had as the only one.
    pub excused: [Vec<Range<u64>>; 2],
    /// Resets may come: then what is acknowledged may be lost.
    pub resets: bool,
    /// A close that is acknowledged has arrived at the other end.
    pub closes_end_to_end: bool,
    /// What arrives, at which node and from which side, in order of time.
    flying: BTreeMap<(Instant, u64), (usize, Side, Packet)>,
    order: u64,
    steps: u64,
}

/// Initial sequence numbers of the hosts, near the end of their range so that they wrap.
pub(super) const ISNS: [u32; 2] = [u32::MAX - 100, u32::MAX - 50];

impl Chain {
    /// A connection that is opened through the given proxies, each of which may keep `limit` bytes
    /// of each direction.
    pub(super) fn opening(
        params: &Arc<StackParams>,
        plans: [Application; 2],
        proxies: Vec<Box<dyn Proxy>>,
        limit: u64,
        impairments: Impairments,
    ) -> Self {
        let hosts = Side::BOTH.map(|side| {
            Host::opening(side, params.clone(), ISNS[side.index()], plans[side.index()])
        });
        Self::new(hosts, proxies, limit, impairments)
    }

    /// As [`Self::opening`], without handshake.
    pub(super) fn established(
        params: &Arc<StackParams>,
        plans: [Application; 2],
        proxies: Vec<Box<dyn Proxy>>,
        limit: u64,
        impairments: Impairments,
    ) -> Self {
        let hosts = Side::BOTH
            .map(|side| Host::established(side, params.clone(), params, ISNS, plans[side.index()]));
        let mut chain = Self::new(hosts, proxies, limit, impairments);
        chain.units.iter_mut().for_each(|unit| unit.know(ISNS));
        chain
    }

    fn new(
        hosts: [Host; 2],
        proxies: Vec<Box<dyn Proxy>>,
        limit: u64,
        impairments: Impairments,
    ) -> Self {
        let units = proxies.into_iter().map(|proxy| CarriedProxy::new(proxy, limit)).collect();
        Self {
            now: Instant::ZERO,
            hosts,
            units,
            impairments,
            sent: 0,
            excused: Default::default(),
            resets: false,
            closes_end_to_end: false,
            flying: BTreeMap::new(),
            order: 0,
            steps: 0,
        }
    }

    /// Runs until nothing is left to do or `until` has come. Returns whether nothing is left.
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

    /// Runs for at most an hour of its time; then every byte must have arrived and every close
    /// must have been acknowledged.
    pub(super) fn run_to_the_end(&mut self) {
        self.poll_all();
        while !self.is_complete() {
            let next = self.next_time();
            assert!(next < self.now + Duration::from_secs(3600), "nothing happens any more");
            assert!(self.now < Instant::ZERO + Duration::from_secs(36_000), "{}", self.progress());
            let until = next.max(self.now);
            self.run(until);
        }
    }

    /// Whether both streams have arrived with the closes that were asked for. A close whose
    /// acknowledgements were lost for longer than TIME-WAIT ends with a reset.
    pub(super) fn is_complete(&self) -> bool {
        Side::BOTH.into_iter().all(|side| {
            let (host, peer) = (&self.hosts[side.index()], &self.hosts[side.other().index()]);
            let over = host.close_acknowledged() || host.connection.state() == State::Closed;
            let closes = host.plan.close != Close::Never;
            peer.delivered() == host.plan.write && (!closes || peer.finished() && over)
        })
    }

    /// How far both streams have come.
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

    /// The unit loses all that it has, and another proxy takes its place.
    pub(super) fn crash(&mut self, unit: usize, fresh: Box<dyn Proxy>) {
        let limit = self.units[unit].limit;
        let old = std::mem::replace(&mut self.units[unit], CarriedProxy::new(fresh, limit));
        for from in Side::BOTH {
            let lost = old.bytes_at_risk(from, ISNS[from.index()]);
            if !lost.is_empty() {
                self.excused[from.index()].push(lost);
            }
        }
    }

    /// The path changes: the unit is on it no more.
    pub(super) fn bypass(&mut self, unit: usize) {
        self.crash(unit, Box::new(PassThrough::default()));
    }

    /// A segment comes to a unit out of nowhere.
    pub(super) fn inject(&mut self, unit: usize, from: Side, segment: Segment) {
        let packet = Packet { segment, bytes: vec![0; segment.len as usize].into() };
        self.units[unit].handle(self.now, from, packet);
        self.poll_node(unit + 1);
    }

    fn next_time(&self) -> Instant {
        let flying = self.flying.first_key_value().map_or(Instant::NEVER, |(&(at, _), _)| at);
        let hosts = self.hosts.iter().map(Host::next_deadline);
        let units = self.units.iter().map(|unit| unit.proxy.next_deadline());
        hosts.chain(units).fold(flying, Instant::min)
    }

    /// Does what is due now.
    fn step(&mut self) {
        self.steps += 1;
        assert!(self.steps < 100_000, "no end of it: {}", self.progress());
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= self.now
        {
            let (node, from, packet) = entry.remove();
            if node == 0 || node > self.units.len() {
                self.hosts[from.other().index()].handle(self.now, &packet);
            } else {
                self.units[node - 1].handle(self.now, from, packet);
            }
            self.poll_node(node);
            self.check();
        }
        for host in &mut self.hosts {
            if host.next_deadline() <= self.now {
                host.handle_timeout(self.now);
            }
        }
        for unit in &mut self.units {
            if unit.proxy.next_deadline() <= self.now {
                unit.proxy.handle_timeout(self.now);
            }
        }
        self.poll_all();
        self.check();
    }

    fn poll_all(&mut self) {
        (0..self.units.len() + 2).for_each(|node| self.poll_node(node));
    }

    fn poll_node(&mut self, node: usize) {
        let now = self.now;
        if node == 0 {
            while let Some(packet) = self.hosts[0].poll(now) {
                self.send(1, Side::Client, packet);
            }
        } else if node == self.units.len() + 1 {
            while let Some(packet) = self.hosts[1].poll(now) {
                self.send(node - 1, Side::Server, packet);
            }
        } else {
            while let Some((to, packet)) = self.units[node - 1].poll(now) {
                let next = if to == Side::Client { node - 1 } else { node + 1 };
                self.send(next, to.other(), packet);
            }
        }
    }

    /// Puts a packet on the hop to a node, at which it will come from this side.
    fn send(&mut self, node: usize, from: Side, packet: Packet) {
        self.sent += 1;
        assert!(self.sent < MOST_SENT, "no end of sending: {}", self.progress());
        for (after, packet) in arrivals(packet, self.impairments.next(), DELAY) {
            self.order += 1;
            self.flying.insert((self.now + after, self.order), (node, from, packet));
        }
    }

    /// What must hold at every time.
    fn check(&mut self) {
        self.units.iter().for_each(CarriedProxy::check);
        for from in Side::BOTH {
            let (write, acknowledged) = {
                let host = &self.hosts[from.index()];
                (host.plan.write, host.acknowledged())
            };
            let receiver = &mut self.hosts[from.other().index()];
            receiver.check(write);
            let delivered = receiver.delivered();
            if self.resets {
                continue;
            }
            if self.closes_end_to_end && self.hosts[from.index()].close_acknowledged() {
                let told = self.hosts[from.other().index()].finished();
                assert!(told, "{from:?}: close is acknowledged and has not arrived");
            }
            let mut offset = delivered;
            while offset < acknowledged {
                let isn = ISNS[from.index()];
                let kept = self.units.iter().find_map(|unit| unit.keeps_up_to(from, isn, offset));
                let excused = || {
                    let lost =
                        self.excused[from.index()].iter().find(|lost| lost.contains(&offset));
                    lost.map(|lost| lost.end)
                };
                let held = || self.units.iter().map(|unit| unit.proxy.buffer_status(from));
                offset = kept.or_else(excused).unwrap_or_else(|| {
                    panic!(
                        "byte {offset} from {from:?} is acknowledged and kept nowhere: {:?}",
                        held().collect::<Vec<_>>()
                    )
                });
            }
        }
    }
}
