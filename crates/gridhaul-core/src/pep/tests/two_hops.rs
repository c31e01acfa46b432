//! Two hosts, a proxy, and a hop on each side of the proxy with rate and delay, to measure
//! throughput.

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
    /// Queue limit in bytes.
    queue: u64,
    max_queueing_delay: Duration,
    free_at: Instant,
    random: RandomStream,
}

impl Hop {
    /// A hop without loss and with an unlimited queue.
    pub(super) fn new(rate: BitRate, delay: Duration) -> Self {
        Self {
            serializer: Serializer::new(rate),
            delay,
            loss: Probability::new(0.0).expect("a probability"),
            queue: u64::MAX,
            max_queueing_delay: Duration::default(),
            free_at: Instant::ZERO,
            random: RandomStream::named(0, 0, "hop", 0, "loss"),
        }
    }

    /// Drops segments without SYN with this probability.
    pub(super) fn losing(mut self, ratio: f64, seed: u64, direction: u64) -> Self {
        self.loss = Probability::new(ratio).expect("a probability");
        self.random = RandomStream::named(seed, 0, "hop", direction, "loss");
        self
    }

    /// Limits the queue.
    pub(super) fn with_queue(mut self, rate: BitRate, bytes: u64) -> Self {
        self.max_queueing_delay = Serializer::new(rate).charge(bytes as u32);
        self.queue = bytes;
        self
    }

    /// Time of arrival of a segment that is sent now; `None` if it is dropped.
    fn arrival_time(&mut self, now: Instant, segment: &Segment) -> Option<Instant> {
        // The time until the transmitter is free measures the bytes in the queue.
        if self.queue < u64::MAX && self.free_at.since(now) > self.max_queueing_delay {
            return None;
        }
        let time = self.serializer.charge(segment.wire_bytes());
        self.free_at = self.free_at.max(now) + time;
        // The transmitter sends a segment that is lost, so that it delays the following ones.
        let lost = self.random.occurs(self.loss.into()) && !segment.flags.has(Flags::SYN);
        (!lost).then_some(self.free_at + self.delay)
    }
}

/// Result of a transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    pub delivered: u64,
    pub stats: SenderStats,
    /// Maximum payload in the buffer of the proxy.
    pub max_buffered: u64,
}

/// Two hosts and a proxy. The client sends without end, and the server reads everything.
pub(super) struct TwoHops {
    hosts: [Connection; 2],
    proxy: Box<dyn Proxy>,
    /// From the client, from the proxy to the server, from the server, from the proxy to the
    /// client.
    hops: [Hop; 4],
    in_flight: BTreeMap<(Instant, u64), (usize, Segment)>,
    order: u64,
    now: Instant,
    outcome: Outcome,
}

impl TwoHops {
    pub(super) fn new(params: &Arc<StackParams>, proxy: Box<dyn Proxy>, hops: [Hop; 4]) -> Self {
        let mut sender = Connection::connect(params.clone(), u32::MAX - 100_000);
        sender.write(u64::MAX);
        let receiver = Connection::listen(params.clone(), 77);
        let outcome = Outcome { delivered: 0, stats: SenderStats::default(), max_buffered: 0 };
        let in_flight = BTreeMap::new();
        let now = Instant::ZERO;
        Self { hosts: [sender, receiver], proxy, hops, in_flight, order: 0, now, outcome }
    }

    /// Runs until `until`; `observe` is called with the sender after every event.
    pub(super) fn run(&mut self, until: Instant, mut observe: impl FnMut(&Connection)) -> Outcome {
        self.poll();
        loop {
            let hosts = self.hosts.iter().map(Connection::next_deadline);
            let in_flight = self.in_flight.first_key_value().map(|(&(at, _), _)| at);
            let next = hosts.chain([self.proxy.next_deadline()]).chain(in_flight).min();
            let next = next.expect("there are hosts").max(self.now);
            if next > until {
                break;
            }
            self.now = next;
            self.step();
            self.poll();
            observe(&self.hosts[0]);
        }
        self.outcome.delivered = self.hosts[1].receiver().delivered();
        self.outcome.stats = *self.hosts[0].sender().expect("the client has a sender").stats();
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
        if let Some(entry) = self.in_flight.first_entry()
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
        let buffered = self.proxy.buffer_status(Side::Client).bytes;
        self.outcome.max_buffered = self.outcome.max_buffered.max(buffered);
    }

    fn send(&mut self, hop: usize, segment: Segment) {
        if let Some(at) = self.hops[hop].arrival_time(self.now, &segment) {
            self.order += 1;
            self.in_flight.insert((at, self.order), (hop, segment));
        }
    }
}
