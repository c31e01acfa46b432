//! The schedules of chains of proxies with which the state machines are tested, through bridges.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use gridhaul_core::random::RandomStream;
use gridhaul_core::wire::TcpSegmenter;
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::units::{Bytes, Duration, Instant, Probability};
use gridhaul_testing::{CloseTime, HostSchedule, ProxySchedule};

use super::cases::MODES;
use super::frames::on_link;
use super::host::{Host, Place, Plan};
use super::world::{rule, sequence_numbers};
use crate::packet::{BridgePort, Engine, EngineSettings, Frame, Handling, Rule};

/// Largest segment that the hosts accept; they send shorter ones, because of their options.
const SEGMENT: u64 = 128;
/// Headers of IPv4 and TCP.
const MTU: u32 = SEGMENT as u32 + 40;
/// One-way delay of each hop.
const DELAY: Duration = Duration::from_millis(10);
/// Number of frames that may have a fault, over all hops.
const FAULTY_FRAMES: u64 = 150;
/// A transfer must be complete after this time: timeouts of Linux back off up to 120 s.
const TIME: Duration = Duration::from_secs(3_600);

/// Two hosts and the bridges between them. Node 0 is the client, nodes 1 to k are the bridges, and
/// node k + 1 is the server.
struct Line {
    now: Instant,
    hosts: [Host; 2],
    bridges: Vec<Engine>,
    buffers: Vec<u64>,
    faults: Option<Faults>,
    /// Frames in flight, in order of arrival, with the node and whether they come from the client.
    in_flight: BTreeMap<(Instant, u64), (usize, bool, Vec<u8>)>,
    sent: u64,
}

/// Faults of the first frames, as of the state machines' tests.
struct Faults {
    random: RandomStream,
    frames: u64,
}

impl Line {
    fn new(mode: &str, schedule: &ProxySchedule, faults: Option<Faults>) -> Self {
        let address = |host: u8| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), 7_000);
        let mac = |host: u8| [2, 0, 0, 0, 0, host];
        let host = |side: usize| {
            let port = BridgePort::BOTH[side];
            let (own, peer) = if side == 0 { (1, 2) } else { (2, 1) };
            let place = Place {
                port,
                own: address(own),
                peer: address(peer),
                own_mac: mac(own),
                peer_mac: mac(peer),
            };
            let plan = plan(side == 0, schedule.hosts[side], schedule.window);
            Host::new(place, plan, [u32::MAX - 100, u32::MAX - 50][side])
        };
        let bridges =
            schedule.buffers.iter().zip(0..).map(|(&buffer, number)| {
                Engine::new(settings(mode, buffer), sequence_numbers(number))
            });
        Self {
            now: Instant::ZERO,
            hosts: [host(0), host(1)],
            bridges: bridges.collect(),
            buffers: schedule.buffers.clone(),
            faults,
            in_flight: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Runs until both streams have arrived, with FIN if the application closes.
    fn run_to_completion(&mut self) {
        while !self.is_complete() {
            assert!(self.now < Instant::ZERO + TIME, "{}", self.progress());
            self.step();
        }
    }

    fn run(&mut self, until: Instant) {
        while self.next_event() <= until {
            self.step();
        }
    }

    fn is_complete(&self) -> bool {
        [(0, 1), (1, 0)].into_iter().all(|(own, other)| {
            let (host, peer) = (&self.hosts[own], &self.hosts[other]);
            let closes = host.plan.closes || host.plan.closes_after_peer;
            peer.received() == host.plan.sends && (!closes || peer.has_finished())
        })
    }

    fn progress(&self) -> String {
        let states = self
            .hosts
            .each_ref()
            .map(|host| format!("{:?} {} of the peer", host.connection.state(), host.received()));
        let totals: Vec<_> = self.bridges.iter().map(Engine::totals).collect();
        format!("{:?} {states:?} {totals:?}", self.now)
    }

    fn next_event(&self) -> Instant {
        let in_flight = self.in_flight.first_key_value().map_or(Instant::NEVER, |(&(at, _), _)| at);
        let hosts = self.hosts.iter().map(Host::next_deadline);
        let bridges = self.bridges.iter().map(Engine::next_deadline);
        hosts.chain(bridges).fold(in_flight, Instant::min)
    }

    /// Handles all events that are due next.
    fn step(&mut self) {
        self.poll();
        self.now = self.now.max(self.next_event());
        assert!(self.now < Instant::NEVER, "no event is left: {}", self.progress());
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key().0 <= self.now
        {
            let (node, is_from_client, bytes) = entry.remove();
            self.deliver(node, is_from_client, &bytes);
        }
        for host in &mut self.hosts {
            if host.next_deadline() <= self.now {
                host.handle_timeout(self.now);
            }
        }
        for node in 1..=self.bridges.len() {
            let bridge = &mut self.bridges[node - 1];
            if bridge.next_deadline() <= self.now {
                bridge.handle_timeout(self.now);
                self.send_of_bridge(node);
            }
        }
        self.poll();
        for (bridge, buffer) in self.bridges.iter().zip(&self.buffers) {
            let memory = bridge.totals().memory as u64;
            // The store of `snoop` is twice its cache, for both directions.
            assert!(memory <= 4 * buffer, "{memory} bytes with a buffer of {buffer}");
        }
    }

    fn deliver(&mut self, node: usize, is_from_client: bool, bytes: &[u8]) {
        if node == 0 || node > self.bridges.len() {
            self.hosts[usize::from(node > 0)].receive(self.now, bytes);
            return;
        }
        let from = if is_from_client { BridgePort::First } else { BridgePort::Second };
        let handling = self.bridges[node - 1].handle_frame(self.now, from, &Frame::new(bytes));
        self.send_of_bridge(node);
        if handling != Handling::Handled {
            self.send(node, is_from_client, bytes.to_vec());
        }
    }

    fn send_of_bridge(&mut self, node: usize) {
        for port in BridgePort::BOTH {
            let outgoing = self.bridges[node - 1].outgoing().over(port);
            let frames: Vec<_> = outgoing.iter().flat_map(on_link).collect();
            for frame in frames {
                self.send(node, port == BridgePort::Second, frame);
            }
        }
        self.bridges[node - 1].outgoing().clear();
    }

    fn poll(&mut self) {
        for (side, node) in [(0, 0), (1, self.bridges.len() + 1)] {
            for frame in self.hosts[side].poll(self.now) {
                self.send(node, side == 0, frame);
            }
        }
    }

    /// Sends a frame from a node to the next one, toward the server or toward the client.
    fn send(&mut self, node: usize, to_server: bool, bytes: Vec<u8>) {
        let next = if to_server { node + 1 } else { node - 1 };
        let arrivals = match &mut self.faults {
            Some(faults) => faults.arrivals(bytes),
            None => vec![(0, bytes)],
        };
        for (delays, bytes) in arrivals {
            self.sent += 1;
            assert!(self.sent < 1_000_000, "too many frames: {}", self.progress());
            let at = self.now + DELAY * (1 + delays);
            self.in_flight.insert((at, self.sent), (next, to_server, bytes));
        }
    }
}

impl Faults {
    fn new(seed: u64) -> Self {
        Self { random: RandomStream::named(seed, 0, "chain", 0, "hops"), frames: FAULTY_FRAMES }
    }

    /// The frames that arrive in the place of one, and by how many delays of a hop they are late.
    fn arrivals(&mut self, bytes: Vec<u8>) -> Vec<(u64, Vec<u8>)> {
        let probability = |ratio| Probability::new(ratio).expect("a probability").into();
        if self.frames == 0 {
            return vec![(0, bytes)];
        }
        self.frames -= 1;
        if self.random.occurs(probability(0.1)) {
            return Vec::new();
        }
        if !self.random.occurs(probability(0.2)) {
            return vec![(0, bytes)];
        }
        let late = 1 + self.random.below(6);
        match self.random.below(4) {
            0 => vec![(0, bytes.clone()), (late, bytes)],
            1 => vec![(0, first_half(bytes))],
            _ => vec![(late, bytes)],
        }
    }
}

/// The frame without the second half of its payload, and without FIN.
fn first_half(mut frame: Vec<u8>) -> Vec<u8> {
    let packet = frame.split_off(14);
    for size in (1..=(packet.len() / 2) as u16).rev() {
        if let Ok(segmenter) = TcpSegmenter::new(&packet, size)
            && segmenter.count() == 2
        {
            segmenter.write(0, &mut frame);
            return frame;
        }
    }
    frame.extend_from_slice(&packet);
    frame
}

fn plan(opens: bool, host: HostSchedule, window: u64) -> Plan {
    Plan {
        closes: host.closes == CloseTime::AtOnce,
        closes_after_peer: host.closes == CloseTime::AfterPeer,
        reads: host.reads.map(|(bytes, millis)| (bytes, Duration::from_millis(millis))),
        mtu: MTU,
        peer_mtu: MTU,
        window: window as u32,
        has_window_scale: false,
        ..Plan::new(opens, host.writes)
    }
}

/// A bridge whose proxies have a smaller buffer than a configuration permits.
fn settings(mode: &str, buffer: u64) -> EngineSettings {
    let text = format!(
        "name = \"test\"\n[bridge]\ninterfaces = [\"left\", \"right\"]\nfail_open = false\n{}",
        rule(mode)
    );
    let mut config = RelayConfig::from_toml(&text, "relay.toml").unwrap().bridge.unwrap();
    config.rule.values_mut().for_each(|rule| rule.buffer = Bytes::new(buffer));
    EngineSettings {
        rules: Rule::all(&config),
        connections: 10,
        memory: config.memory,
        idle_timeout: config.idle_timeout,
        mtus: [MTU; 2],
        detects_losses: true,
    }
}

fn loses_nothing(mode: &str, schedule: &ProxySchedule, faults: Option<Faults>) {
    let mut line = Line::new(mode, schedule, faults);
    line.run_to_completion();
    // The last acknowledgements may need retransmissions.
    line.run(line.now + Duration::from_secs(300));
    for bridge in &line.bridges {
        let totals = bridge.totals();
        assert_eq!((totals.at_risk, totals.lost), (0, 0), "{}", line.progress());
    }
    assert!(line.hosts.iter().all(|host| !host.was_reset), "{}", line.progress());
}

#[test]
fn every_close_is_complete_over_chains_of_every_length() {
    for mode in MODES {
        for schedule in ProxySchedule::closes_of_chains(SEGMENT) {
            loses_nothing(mode, &schedule, None);
        }
    }
}

#[test]
fn random_schedules_lose_nothing() {
    many_random_schedules(0..100);
}

/// `GRIDHAUL_SCHEDULES=100000 cargo test --release -p gridhaul-relay --lib schedules -- --ignored`
/// runs this many schedules, from `GRIDHAUL_SCHEDULES_FROM` on.
#[test]
#[ignore = "long-running"]
fn many_random_schedules_lose_nothing() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("GRIDHAUL_SCHEDULES_FROM").unwrap_or(0);
    many_random_schedules(first..first + number("GRIDHAUL_SCHEDULES").unwrap_or(10_000));
}

fn many_random_schedules(seeds: std::ops::Range<u64>) {
    for mode in MODES {
        for seed in seeds.clone() {
            let mut random = RandomStream::named(seed, 0, "chain", 0, "case");
            let between = |low: u64, high: u64| low + random.below(high - low + 1);
            let schedule = ProxySchedule::random(SEGMENT, between);
            let run = || loses_nothing(mode, &schedule, Some(Faults::new(seed)));
            if let Err(panic) = std::panic::catch_unwind(run) {
                eprintln!("{mode}, schedule {seed}: {schedule:?}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}
