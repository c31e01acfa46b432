//! Two machines and the links between them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gridhaul_scenario::units::{Duration, Instant};
use gridhaul_testing::Numbers;

use crate::router::{Event, LinkSettings, Machine, Probe, Settings};

/// Numbers of the links: the preferred one, and the other.
pub(super) const PREFERRED: usize = 0;
pub(super) const OTHER: usize = 1;

/// Numbers of the routers.
pub(super) const TERMINAL: usize = 0;
pub(super) const CENTRE: usize = 1;

/// Delay of a direction of a link, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Delay {
    Constant(f64),
    /// Independent for each packet: packets overtake each other.
    Uniform(f64, f64),
    /// A queue that fills and drains with this many seconds per second, between two delays.
    Queue {
        least: f64,
        largest: f64,
        slope: f64,
    },
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub delay: Delay,
    pub loss: f64,
    /// Times, in seconds, between which the path swallows packets.
    pub dead: Vec<(f64, f64)>,
    /// Times, in seconds, between which the path swallows large packets.
    pub dead_for_large: Vec<(f64, f64)>,
    last_arrival: Instant,
}

impl Path {
    pub(super) const fn new(delay: Delay, loss: f64) -> Self {
        Self {
            delay,
            loss,
            dead: Vec::new(),
            dead_for_large: Vec::new(),
            last_arrival: Instant::ZERO,
        }
    }

    /// When a packet arrives that is sent now.
    fn transmit(&mut self, now: Instant, is_large: bool, random: &mut Numbers) -> Option<Instant> {
        let time = now.as_secs_f64();
        let has_now =
            |times: &[(f64, f64)]| times.iter().any(|(from, to)| (*from..*to).contains(&time));
        let is_dead = has_now(&self.dead) || is_large && has_now(&self.dead_for_large);
        if is_dead || random.between(0.0, 1.0) < self.loss {
            return None;
        }
        let delay = match self.delay {
            Delay::Constant(delay) => delay,
            Delay::Uniform(least, largest) => least + (largest - least) * random.between(0.0, 1.0),
            Delay::Queue { least, largest, slope } => {
                let height = largest - least;
                let phase = time * slope % (2.0 * height);
                least + if phase < height { phase } else { 2.0 * height - phase }
            }
        };
        let mut arrival = now + Duration::from_secs_f64(delay);
        if !matches!(self.delay, Delay::Uniform(..)) {
            arrival = arrival.max(self.last_arrival);
            self.last_arrival = arrival;
        }
        Some(arrival)
    }
}

/// An event of a router, with its time in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Logged {
    pub time: f64,
    pub router: usize,
    pub event: Event,
}

/// Both routers with their links.
pub(super) struct World {
    pub machines: [Machine; 2],
    /// By the router that sends, and the link.
    pub paths: [[Path; 2]; 2],
    /// Changes of carrier at a router: time in seconds, router, link, carrier.
    pub carrier: Vec<(f64, usize, usize, bool)>,
    pub log: Vec<Logged>,
    random: Numbers,
    now: Instant,
    arrivals: BinaryHeap<Reverse<(Instant, u64)>>,
    packets: std::collections::BTreeMap<u64, (usize, usize, Probe)>,
    next_packet: u64,
}

/// Length of large probes: 1500 bytes with the headers of IPv4 and UDP.
const LARGE_PROBE: usize = 1_472;

pub(super) fn settings(session: u32, large_probe: Option<usize>) -> Settings {
    let link = |name: &str| LinkSettings {
        name: name.to_owned(),
        probe_interval: Duration::from_millis(200),
        large_probe,
        has_carrier: true,
    };
    Settings {
        session,
        detection_time: Duration::from_secs(1),
        hold_time: Duration::from_secs(6),
        links: vec![link("preferred"), link("other")],
        classes: vec![vec![PREFERRED, OTHER]],
    }
}

impl World {
    /// All directions of all links are equal.
    pub(super) fn new(delay: Delay, loss: f64, seed: u64) -> Self {
        let path = || Path::new(delay, loss);
        Self::with_paths([[path(), path()], [path(), path()]], seed)
    }

    /// All directions of all links are equal, and large probes are sent.
    pub(super) fn with_large_probes(delay: Delay, loss: f64, seed: u64) -> Self {
        let machine = |session| Machine::new(Instant::ZERO, settings(session, Some(LARGE_PROBE)));
        Self { machines: [machine(11), machine(22)], ..Self::new(delay, loss, seed) }
    }

    pub(super) fn with_paths(paths: [[Path; 2]; 2], seed: u64) -> Self {
        let machine = |session| Machine::new(Instant::ZERO, settings(session, None));
        Self {
            machines: [machine(11), machine(22)],
            paths,
            carrier: Vec::new(),
            log: Vec::new(),
            random: Numbers::new(seed),
            now: Instant::ZERO,
            arrivals: BinaryHeap::new(),
            packets: std::collections::BTreeMap::new(),
            next_packet: 0,
        }
    }

    /// Swallows all packets of a link from a router from a time on.
    pub(super) fn kill(&mut self, router: usize, link: usize, from: f64, to: f64) {
        self.paths[router][link].dead.push((from, to));
    }

    /// Runs until a time in seconds.
    pub(super) fn run(&mut self, until: f64) {
        let until = Instant::from_secs_f64(until);
        loop {
            let carrier = self.carrier.iter().map(|change| Instant::from_secs_f64(change.0)).min();
            let arrival = self.arrivals.peek().map(|Reverse((at, _))| *at);
            let probes = self.machines.iter().map(Machine::deadline);
            let times = probes.chain(carrier).chain(arrival);
            let next = times.min().unwrap_or(Instant::NEVER);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            self.change_carrier();
            self.deliver();
            for router in [TERMINAL, CENTRE] {
                self.machines[router].advance(next);
                while let Some((link, probe)) = self.machines[router].next_probe(next) {
                    self.send(router, link, &probe);
                }
                let time = next.as_secs_f64();
                let events = self.machines[router].take_events().into_iter();
                self.log.extend(events.map(|event| Logged { time, router, event }));
            }
        }
    }

    fn change_carrier(&mut self) {
        let now = self.now;
        let all = std::mem::take(&mut self.carrier);
        let (due, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|change| Instant::from_secs_f64(change.0) <= now);
        self.carrier = rest;
        for (_, router, link, has_carrier) in due {
            self.machines[router].handle_carrier(now, link, has_carrier);
        }
    }

    fn deliver(&mut self) {
        while let Some(Reverse((at, packet))) = self.arrivals.peek().copied() {
            if at > self.now {
                return;
            }
            self.arrivals.pop();
            if let Some((router, link, probe)) = self.packets.remove(&packet) {
                self.machines[router].handle_probe(self.now, link, &probe);
            }
        }
    }

    fn send(&mut self, router: usize, link: usize, probe: &Probe) {
        // The bytes are those of the network.
        let probe = Probe::decode(&probe.encode()).unwrap();
        let is_large = probe.padded_to.is_some();
        let path = &mut self.paths[router][link];
        if let Some(arrival) = path.transmit(self.now, is_large, &mut self.random) {
            self.next_packet += 1;
            self.arrivals.push(Reverse((arrival, self.next_packet)));
            self.packets.insert(self.next_packet, (1 - router, link, probe));
        }
    }

    /// Switches of a router after a time: the time and the link.
    pub(super) fn switches(&self, router: usize, after: f64) -> Vec<(f64, usize)> {
        let of_router = self.log.iter().filter(|entry| entry.router == router);
        of_router
            .filter(|entry| entry.time >= after)
            .filter_map(|entry| match entry.event {
                Event::Selected { link, .. } => Some((entry.time, link)),
                Event::State { .. } => None,
            })
            .collect()
    }
}
