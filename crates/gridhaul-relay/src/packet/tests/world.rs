//! Hosts on both sides of a bridge.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::units::{Duration, Instant};
use gridhaul_testing::Numbers;

use super::frames::{on_link, packet_too_big, with_unknown_option};
use super::host::{Host, Place, Plan};
use crate::packet::{BridgePort, Engine, EngineSettings, Frame, Handling, Rule};

/// Hosts, links and the bridge.
pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) now: Instant,
    pub(super) hosts: Vec<Host>,
    pub(super) faults: Faults,
    /// Frames in transit, by the time of their arrival.
    transit: BTreeMap<(Instant, u64), (Receiver, Vec<u8>)>,
    sent: u64,
    random: Numbers,
    /// Largest packet that the link behind an interface carries; longer ones vanish.
    pub(super) link_mtus: [usize; 2],
    /// Routers behind the interfaces report packets that are too long.
    pub(super) reports_mtu: bool,
    pub(super) memory_max: usize,
    /// Added to the initial sequence numbers of hosts.
    pub(super) first_number: u32,
}

/// Receiver of a frame in transit.
#[derive(Debug, Clone, Copy)]
enum Receiver {
    Bridge(BridgePort),
    Hosts(BridgePort),
}

/// Probabilities of faults of the links, in 1/1000.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    pub(super) loss: u64,
    pub(super) duplication: u64,
    pub(super) reordering: u64,
    pub(super) corruption: u64,
    /// Insertion of an option that no proxy knows, after the handshake.
    pub(super) option: u64,
}

/// Delay of a link.
const DELAY: Duration = Duration::from_millis(5);

/// The configuration of a bridge with these keys of `[bridge]`.
pub(super) fn settings(keys: &str) -> EngineSettings {
    let text = format!(
        "name = \"test\"\n[bridge]\ninterfaces = [\"left\", \"right\"]\nfail_open = false\n{keys}"
    );
    let config = RelayConfig::from_toml(&text, "relay.toml").unwrap().bridge.unwrap();
    EngineSettings {
        rules: Rule::all(&config),
        connections: config.connections as usize,
        memory: config.memory,
        idle_timeout: config.idle_timeout,
        mtus: [1_500; 2],
        detects_losses: !config.fail_open,
    }
}

/// Initial sequence numbers of the proxies.
pub(super) fn sequence_numbers(mut number: u32) -> impl FnMut() -> u32 + Send + 'static {
    move || {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        number
    }
}

/// A rule for all connections.
pub(super) fn rule(mode: &str) -> String {
    let served = if matches!(mode, "snoop" | "ack") { "toward = \"right\"\n" } else { "" };
    format!("[bridge.rule.all]\nmode = \"{mode}\"\n{served}")
}

impl World {
    pub(super) fn new(settings: EngineSettings) -> Self {
        Self {
            engine: Engine::new(settings, sequence_numbers(0x1234_5678)),
            now: Instant::ZERO,
            hosts: Vec::new(),
            faults: Faults::default(),
            transit: BTreeMap::new(),
            sent: 0,
            random: Numbers::new(1),
            link_mtus: [100_000; 2],
            reports_mtu: false,
            memory_max: 0,
            first_number: 0,
        }
    }

    /// Replaces the bridge by one without connections.
    pub(super) fn restart(&mut self, settings: EngineSettings) {
        let seed = self.next_random() as u32;
        self.engine = Engine::new(settings, sequence_numbers(seed));
    }

    pub(super) fn with_seed(mut self, seed: u64) -> Self {
        self.random = Numbers::new(seed | 1);
        self
    }

    /// Adds a client behind an interface and a server behind the other one.
    pub(super) fn connect(&mut self, client: BridgePort, is_v6: bool, plans: [Plan; 2]) {
        let number = (self.hosts.len() / 2) as u16;
        let address = |host: u16| -> IpAddr {
            match is_v6 {
                true => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, number, host).into(),
                false => Ipv4Addr::new(10, (number >> 8) as u8, number as u8, host as u8).into(),
            }
        };
        let (own, peer) =
            (SocketAddr::new(address(1), 40_000 + number), SocketAddr::new(address(2), 7_000));
        let mac = |host: u8| [2, 0, 0, (number >> 8) as u8, number as u8, host];
        let ends =
            [(client, own, peer, mac(1), mac(2)), (client.other(), peer, own, mac(2), mac(1))];
        let isns = [u32::MAX - 5_000, 77_000].map(|isn| self.first_number.wrapping_add(isn));
        for ((end, plan), isn) in ends.into_iter().zip(plans).zip(isns) {
            let (port, own, peer, own_mac, peer_mac) = end;
            let place = Place { port, own, peer, own_mac, peer_mac };
            self.hosts.push(Host::new(place, plan, isn.wrapping_add(u32::from(number) * 7_919)));
        }
    }

    /// Runs until a time, or until nothing happens any more.
    pub(super) fn run(&mut self, until: Instant) {
        self.poll_hosts();
        loop {
            let next = self.next_event();
            if next > until {
                self.now = self.now.max(until);
                return;
            }
            self.now = self.now.max(next);
            while let Some(((at, _), _)) = self.transit.first_key_value()
                && *at <= self.now
            {
                let (_, (place, bytes)) = self.transit.pop_first().unwrap();
                self.deliver(place, &bytes);
            }
            for host in &mut self.hosts {
                if host.next_deadline() <= self.now {
                    host.handle_timeout(self.now);
                }
            }
            if self.engine.next_deadline() <= self.now {
                self.engine.handle_timeout(self.now);
                self.send_of_bridge();
            }
            self.poll_hosts();
            self.memory_max = self.memory_max.max(self.engine.totals().memory);
        }
    }

    /// Runs until all hosts have closed their connections, at most for this time.
    pub(super) fn run_to_end(&mut self, limit: Duration) {
        let end = self.now + limit;
        while self.now < end && !self.hosts.iter().all(Host::is_done) {
            self.run((self.now + Duration::from_millis(500)).min(end));
        }
    }

    /// Sends a frame as a host does.
    pub(super) fn inject(&mut self, from: BridgePort, bytes: Vec<u8>) {
        self.send(Receiver::Bridge(from), bytes);
    }

    /// All bytes have arrived, and both hosts have closed.
    pub(super) fn assert_complete(&self) {
        for pair in self.hosts.chunks(2) {
            for (host, peer) in [(0, 1), (1, 0)].map(|(own, other)| (&pair[own], &pair[other])) {
                let state = host.connection.state();
                assert_eq!(
                    host.received(),
                    peer.plan.sends,
                    "{} at {:?}, {state:?}",
                    host.own,
                    self.now
                );
                assert!(host.is_done(), "{} is {state:?} at {:?}", host.own, self.now);
                assert!(!host.was_reset, "{} was reset", host.own);
            }
        }
    }

    fn next_event(&self) -> Instant {
        let transit = self.transit.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at);
        let hosts = self.hosts.iter().map(Host::next_deadline);
        let own = self.engine.next_deadline().min(transit);
        hosts.min().unwrap_or(Instant::NEVER).min(own)
    }

    fn deliver(&mut self, place: Receiver, bytes: &[u8]) {
        match place {
            Receiver::Bridge(from) => {
                let handling = self.engine.handle_frame(self.now, from, &Frame::new(bytes));
                self.send_of_bridge();
                if handling != Handling::Handled {
                    self.send(Receiver::Hosts(from.other()), bytes.to_vec());
                }
            }
            Receiver::Hosts(port) => {
                let now = self.now;
                let mut hosts = self.hosts.iter_mut().filter(|host| host.port == port);
                hosts.any(|host| host.receive(now, bytes));
            }
        }
    }

    pub(super) fn send_of_bridge(&mut self) {
        for port in BridgePort::BOTH {
            let frames: Vec<_> =
                self.engine.outgoing().over(port).iter().flat_map(on_link).collect();
            for frame in frames {
                self.send(Receiver::Hosts(port), frame);
            }
        }
        self.engine.outgoing().clear();
    }

    fn poll_hosts(&mut self) {
        for index in 0..self.hosts.len() {
            let port = self.hosts[index].port;
            for frame in self.hosts[index].poll(self.now) {
                self.send(Receiver::Bridge(port), frame);
            }
        }
    }

    /// Puts a frame on a link with its faults.
    fn send(&mut self, place: Receiver, mut bytes: Vec<u8>) {
        if let Receiver::Hosts(port) = place
            && bytes.len() > 14 + self.link_mtus[port.index()]
        {
            if self.reports_mtu {
                let report = packet_too_big(&bytes, self.link_mtus[port.index()] as u16);
                self.inject(port, report);
            }
            return;
        }
        if self.happens(self.faults.loss) {
            return;
        }
        // A proxy fills the packets that the next host accepts.
        if matches!(place, Receiver::Bridge(_))
            && self.happens(self.faults.option)
            && let Some(longer) = with_unknown_option(&bytes)
        {
            bytes = longer;
        }
        if bytes.len() > 14 && self.happens(self.faults.corruption) {
            let bit = self.next_random() as usize % ((bytes.len() - 14) * 8);
            bytes[14 + bit / 8] ^= 1 << (bit % 8);
        }
        let copies = 1 + u64::from(self.happens(self.faults.duplication));
        for _ in 0..copies {
            let late = if self.happens(self.faults.reordering) { DELAY } else { Duration::ZERO };
            self.sent += 1;
            self.transit.insert((self.now + DELAY + late, self.sent), (place, bytes.clone()));
        }
    }

    fn happens(&mut self, per_thousand: u64) -> bool {
        per_thousand > 0 && self.next_random() % 1_000 < per_thousand
    }

    pub(super) const fn next_random(&mut self) -> u64 {
        self.random.draw()
    }
}
