//! For tests that measure: two hosts, a proxy, and a hop on each side of it, with rates and delays.

use std::collections::BTreeMap;
use std::sync::Arc;

use gridhaul_scenario::units::{BitRate, Duration, Instant, Probability};

use crate::link::Serializer;
use crate::pep::{Proxy, Side};
use crate::random::RandomStream;
use crate::tcp::{Connection, Flags, Segment, SenderStats, StackParams};

/// One direction of a hop.
pub(super) struct Hop {
    serializer: Serializer,
    delay: Duration,
    loss: Probability,
    /// Bytes that may wait.
    queue: u64,
    waiting: Duration,
    free_at: Instant,
    random: RandomStream,
}

impl Hop {
    /// A hop without loss, whose queue has no end.
    pub(super) fn new(rate: BitRate, delay: Duration) -> Self {
        Self {
            serializer: Serializer::new(rate),
            delay,
            loss: Probability::new(0.0).expect("a probability"),
            queue: u64::MAX,
            waiting: Duration::default(),
            free_at: Instant::ZERO,
            random: RandomStream::named(0, 0, "hop", 0, "loss"),
        }
    }

    /// Loses segments with this probability, but none with SYN.
    pub(super) fn losing(mut self, ratio: f64, seed: u64, member: u64) -> Self {
        self.loss = Probability::new(ratio).expect("a probability");
        self.random = RandomStream::named(seed, 0, "hop", member, "loss");
        self
    }

    /// Only so many bytes may wait.
    pub(super) fn with_queue(mut self, rate: BitRate, bytes: u64) -> Self {
        self.waiting = Serializer::new(rate).charge(bytes as u32);
        self.queue = bytes;
        self
    }

    /// When a segment that is put on it now arrives.
    fn carry(&mut self, now: Instant, segment: &Segment) -> Option<Instant> {
        if self.queue < u64::MAX && self.free_at.since(now) > self.waiting {
            return None;
        }
        let time = self.serializer.charge(segment.wire_bytes());
        self.free_at = self.free_at.max(now) + time;
        let lost = self.random.occurs(self.loss.into()) && !segment.flags.has(Flags::SYN);
        (!lost).then_some(self.free_at + self.delay)
    }
}

/// What a sender at the left and its receiver at the right have come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    pub delivered: u64,
    pub stats: SenderStats,
    /// Most payload that the proxy has kept.
    pub most_held: u64,
}

/// Two hosts and a proxy. The left host sends for ever, the right one takes everything.
pub(super) struct TwoHops {
    hosts: [Connection; 2],
    proxy: Box<dyn Proxy>,
    /// From the left host, from the proxy to the right, from the right host, from the proxy to
    /// the left.
    hops: [Hop; 4],
    flying: BTreeMap<(Instant, u64), (usize, Segment)>,
    order: u64,
    now: Instant,
    outcome: Outcome,
}

impl TwoHops {
    pub(super) fn new(params: &Arc<StackParams>, proxy: Box<dyn Proxy>, hops: [Hop; 4]) -> Self {
        let mut sender = Connection::connect(params.clone(), u32::MAX - 100_000);
        sender.write(u64::MAX);
        let receiver = Connection::listen(params.clone(), 77);
        let outcome = Outcome { delivered: 0, stats: SenderStats::default(), most_held: 0 };
        let flying = BTreeMap::new();
        let now = Instant::ZERO;
        Self { hosts: [sender, receiver], proxy, hops, flying, order: 0, now, outcome }
    }

    /// Runs until `until`; `watch` sees the sender after every event.
    pub(super) fn run(&mut self, until: Instant, mut watch: impl FnMut(&Connection)) -> Outcome {
        self.poll();
        loop {
            let hosts = self.hosts.iter().map(Connection::next_deadline);
            let flying = self.flying.first_key_value().map(|(&(at, _), _)| at);
            let next = hosts.chain([self.proxy.next_deadline()]).chain(flying).min();
            let next = next.expect("there are hosts").max(self.now);
            if next > until {
                break;
            }
            self.now = next;
            self.step();
            self.poll();
            watch(&self.hosts[0]);
        }
        self.outcome.delivered = self.hosts[1].receiver().delivered();
        self.outcome.stats = *self.hosts[0].sender().expect("it sends").stats();
        self.outcome
    }

    fn step(&mut self) {
        let now = self.now;
        for host in &mut self.hosts {
            if host.next_deadline() <= now {
                host.handle_timeout(now);
            }
        }
        if self.proxy.next_deadline() <= now {
            self.proxy.handle_timeout(now);
        }
        if let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= now
        {
            let (hop, segment) = entry.remove();
            match hop {
                0 => self.proxy.handle_segment(now, Side::Client, &segment),
                1 => self.hosts[1].handle_segment(now, &segment),
                2 => self.proxy.handle_segment(now, Side::Server, &segment),
                _ => self.hosts[0].handle_segment(now, &segment),
            }
        }
    }

    fn poll(&mut self) {
        while let Some(segment) = self.hosts[0].poll_transmit(self.now) {
            self.send(0, segment);
        }
        while let Some(out) = self.proxy.poll_transmit(self.now) {
            self.send(if out.to == Side::Server { 1 } else { 3 }, out.segment);
        }
        while let Some(segment) = self.hosts[1].poll_transmit(self.now) {
            self.send(2, segment);
        }
        let held = self.proxy.buffer_status(Side::Client).bytes;
        self.outcome.most_held = self.outcome.most_held.max(held);
    }

    fn send(&mut self, hop: usize, segment: Segment) {
        if let Some(at) = self.hops[hop].carry(self.now, &segment) {
            self.order += 1;
            self.flying.insert((at, self.order), (hop, segment));
        }
    }
}
