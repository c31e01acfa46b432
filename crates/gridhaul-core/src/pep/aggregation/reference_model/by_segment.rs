//! Admission by segment compared with the reference model.

use gridhaul_scenario::units::{self, BufferLimit, Duration, Instant};
use proptest::prelude::*;

use super::super::SegmentAggregator;
use super::{CONNECTIONS, Case, Model, cases};

#[derive(Debug, Clone)]
enum Step {
    /// A connection sends its next bytes, as many as these.
    Segment(usize, usize),
    /// An upstream connection sends this many more bytes.
    Send(usize, u64),
    /// The receiver of an upstream connection acknowledges this many more bytes.
    Acknowledge(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let upstream = 0..3_usize;
    let step = prop_oneof![
        6 => (0..CONNECTIONS, prop_oneof![1..8_usize, 1..150_usize])
            .prop_map(|(connection, bytes)| Step::Segment(connection, bytes)),
        2 => (upstream.clone(), 1..400_u64)
            .prop_map(|(upstream, bytes)| Step::Send(upstream, bytes)),
        2 => (upstream, 1..400_u64)
            .prop_map(|(upstream, bytes)| Step::Acknowledge(upstream, bytes)),
    ];
    prop::collection::vec(step, 0..150)
}

/// An aggregator that admits segments, its connections, and the reference model.
struct Bench {
    aggregator: SegmentAggregator,
    model: Model,
    limit: u64,
    streams: Vec<Vec<u8>>,
    /// Ends of the messages of each stream.
    ends: Vec<Vec<u64>>,
    next: Vec<u64>,
    /// Position in each stream up to which space is reserved: always the end of a message.
    reserved: Vec<u64>,
    sent: Vec<u64>,
    acknowledged: Vec<u64>,
    now: Instant,
}

impl Bench {
    fn new(Case { streams, upstream_of }: Case, limit: u64) -> Self {
        let sizes = streams.iter().map(|stream| stream.sizes.clone()).collect();
        let model = Model::new(sizes, &upstream_of);
        let upstreams = model.upstreams();
        Self {
            aggregator: SegmentAggregator::new(
                BufferLimit::Bytes(units::Bytes::new(limit)),
                upstreams,
            ),
            ends: (0..CONNECTIONS).map(|connection| model.ends(connection)).collect(),
            model,
            limit,
            streams: streams.into_iter().map(|stream| stream.bytes).collect(),
            next: vec![0; CONNECTIONS],
            reserved: vec![0; CONNECTIONS],
            sent: vec![0; upstreams],
            acknowledged: vec![0; upstreams],
            now: Instant::ZERO,
        }
    }

    /// Reserved bytes that are not sent: whole messages, also those of which only a part has
    /// arrived.
    fn occupied(&self) -> u64 {
        let messages: u64 = (0..self.model.upstreams())
            .map(|upstream| {
                let departed = self.model.departed[upstream];
                self.model.written(upstream) - self.model.bytes_of_first(upstream, departed)
            })
            .sum();
        let incomplete: u64 = (0..CONNECTIONS)
            .map(|connection| self.reserved[connection] - self.complete(connection))
            .sum();
        messages + incomplete
    }

    /// End of the last complete message of a connection.
    fn complete(&self, index: usize) -> u64 {
        self.next[index] - self.model.incomplete_bytes(index)
    }

    /// The model's rule: whole messages are reserved in order while they fit.
    fn reserve(&mut self, index: usize, until: u64) -> u64 {
        for position in 0..self.ends[index].len() {
            let end = self.ends[index][position];
            let reserved = self.reserved[index];
            // Messages that are reserved already, and those that begin after the segment.
            if end <= reserved || reserved >= until {
                continue;
            }
            // A stream is delivered in order: no later message can be accepted before this one.
            if self.occupied() + end - reserved > self.limit {
                break;
            }
            self.reserved[index] = end;
        }
        self.reserved[index].min(until)
    }

    fn segment(&mut self, index: usize, bytes: usize) {
        let from = self.next[index];
        let until = (self.streams[index].len() as u64).min(from + bytes as u64);
        if until == from {
            return;
        }
        let member = (index as u32, self.model.upstream_of[index]);
        let complete = self.complete(index);
        let ends = self.ends[index].iter().copied().filter(|&end| end > complete);
        let accepted = self.aggregator.admit(self.now, member, from..until, from, ends);
        assert_eq!(accepted, self.reserve(index, until), "accepted bytes of connection {index}");
        let payload = self.streams[index][from as usize..accepted as usize].to_vec();
        let mut end = complete;
        for size in self.model.accept(index, &payload) {
            end += size as u64;
            assert_eq!(self.aggregator.handle_message(self.now, member, end), size as u64);
        }
        self.next[index] = accepted;
        self.aggregator.handle_received(self.now, member, accepted);
    }

    fn send(&mut self, upstream: usize, bytes: u64) {
        self.sent[upstream] = (self.sent[upstream] + bytes).min(self.model.written(upstream));
        while let Some(departed) =
            self.aggregator.poll_departed(self.now, upstream, self.sent[upstream])
        {
            let (index, payload) = &self.model.queues[upstream][self.model.departed[upstream]];
            assert_eq!(departed.connection as usize, *index);
            assert_eq!(departed.bytes, payload.len() as u64);
            self.model.departed[upstream] += 1;
        }
        let departed = self.model.departed[upstream];
        let left = self.model.queues[upstream].len() - departed;
        let next = self.model.bytes_of_first(upstream, departed + left.min(1));
        assert!(left == 0 || next > self.sent[upstream], "a message that was sent is still held");
    }

    fn step(&mut self, step: &Step) {
        self.now += Duration::from_nanos(1);
        match *step {
            Step::Segment(index, bytes) => self.segment(index, bytes),
            Step::Send(upstream, bytes) if upstream < self.sent.len() => self.send(upstream, bytes),
            Step::Acknowledge(upstream, bytes) if upstream < self.sent.len() => {
                let acknowledged = &mut self.acknowledged[upstream];
                *acknowledged = (*acknowledged + bytes).min(self.sent[upstream]);
                self.aggregator.handle_acknowledged(self.now, upstream, *acknowledged);
            }
            Step::Send(..) | Step::Acknowledge(..) => {}
        }
        self.check();
    }

    fn check(&self) {
        let occupied = self.aggregator.occupied().1;
        assert_eq!(occupied, self.occupied(), "occupied space");
        assert!(occupied <= self.limit);
        for upstream in 0..self.model.upstreams() {
            let written = self.model.written(upstream);
            assert_eq!(self.aggregator.written(upstream), written);
            let incomplete = self.model.incomplete_of_upstream(upstream);
            assert_eq!(
                self.aggregator.bytes_at_risk(upstream).value(),
                incomplete + written - self.acknowledged[upstream],
                "bytes at risk of upstream connection {upstream}"
            );
        }
    }

    /// Every connection sends the rest of its stream, and everything is sent and acknowledged.
    fn drain(&mut self) {
        loop {
            let before = self.next.clone();
            for upstream in 0..self.model.upstreams() {
                // More than any stream has, and no overflow when positions are added.
                self.step(&Step::Send(upstream, u64::MAX / 2));
                self.step(&Step::Acknowledge(upstream, u64::MAX / 2));
            }
            for index in 0..CONNECTIONS {
                self.step(&Step::Segment(index, 250));
            }
            if self.next == before {
                return;
            }
        }
    }

    /// End of the part of a stream that can be forwarded: nothing after a message that exceeds the
    /// buffer.
    fn forwardable(&self, index: usize) -> u64 {
        let mut start = 0;
        for &end in &self.ends[index] {
            if end - start > self.limit {
                break;
            }
            start = end;
        }
        start
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn admission_by_segment_agrees_with_the_reference_model(
        case in cases(),
        // A small buffer is often full, and some messages exceed it.
        limit in prop_oneof![20..400_u64, 400..4_000_u64],
        steps in steps(),
    ) {
        let mut bench = Bench::new(case, limit);
        for step in &steps {
            bench.step(step);
        }
        bench.drain();
        prop_assert_eq!(bench.aggregator.occupied(), (0, 0));
        for index in 0..CONNECTIONS {
            let complete = bench.forwardable(index) as usize;
            prop_assert_eq!(&bench.model.messages_of(index), &bench.streams[index][..complete]);
        }
    }
}
