//! Properties of admission by segment under arbitrary schedules.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Bytes, Duration};
use proptest::prelude::*;

use super::super::{MessageSizes, window_share};
use super::*;

#[derive(Debug, Clone)]
enum Step {
    /// A connection sends a segment of `len` bytes, after a gap to the data in order.
    Segment { connection: usize, gap: u64, len: u64 },
    /// The upstream connection sends up to this many more bytes.
    Send(u64),
    /// The upstream receiver acknowledges up to this many more bytes.
    Acknowledge(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let segment = (0..4_usize, prop_oneof![3 => Just(0), 1 => 1..400_u64], 1..400_u64)
        .prop_map(|(connection, gap, len)| Step::Segment { connection, gap, len });
    let step = prop_oneof![
        4 => segment,
        1 => (1..600_u64).prop_map(Step::Send),
        1 => (1..600_u64).prop_map(Step::Acknowledge),
    ];
    prop::collection::vec(step, 0..200)
}

fn limits() -> impl Strategy<Value = BufferLimit> {
    prop_oneof![
        (1..12_u32).prop_map(BufferLimit::Messages),
        (300..3_000_u64).prop_map(|bytes| BufferLimit::Bytes(Bytes::new(bytes))),
    ]
}

fn messages() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(1..300_u64, 0..12), 4)
}

/// An aggregator with its connections and one upstream connection, and a model of its state.
struct Bench {
    now: Instant,
    aggregator: SegmentAggregator,
    limit: BufferLimit,
    streams: Vec<Stream>,
    /// Connection and size of each message, in the order of completion.
    complete: VecDeque<(usize, u64)>,
    sent: u64,
    acknowledged: u64,
}

/// The stream of a connection.
struct Stream {
    sizes: Vec<u64>,
    ends: Vec<u64>,
    /// Bytes that the aggregator has accepted, also those after gaps.
    accepted: Vec<bool>,
    next: u64,
    /// Numbers of complete messages and of those that have left the buffer.
    complete: usize,
    departed: usize,
}

impl Stream {
    fn new(sizes: Vec<u64>) -> Self {
        let mut end = 0;
        let ends: Vec<u64> = sizes
            .iter()
            .map(|size| {
                end += size;
                end
            })
            .collect();
        Self { sizes, ends, accepted: vec![false; end as usize], next: 0, complete: 0, departed: 0 }
    }
}

impl Bench {
    fn new(limit: BufferLimit, sizes: Vec<Vec<u64>>) -> Self {
        Self {
            now: Instant::ZERO,
            aggregator: SegmentAggregator::new(limit, 1),
            limit,
            streams: sizes.into_iter().map(Stream::new).collect(),
            complete: VecDeque::new(),
            sent: 0,
            acknowledged: 0,
        }
    }

    /// Returns whether the whole segment was accepted.
    fn segment(&mut self, index: usize, from: u64, until: u64) -> bool {
        let stream = &mut self.streams[index];
        let until = until.min(stream.accepted.len() as u64);
        if from >= until {
            return true;
        }
        let ends = stream.ends[stream.complete..].iter().copied();
        let wanted = until;
        let until =
            self.aggregator.admit(self.now, (index as u32, 0), from..until, stream.next, ends);
        assert!(until <= wanted);
        if until <= from {
            return false;
        }
        stream.accepted[from as usize..until as usize].fill(true);
        while stream.accepted.get(stream.next as usize) == Some(&true) {
            stream.next += 1;
        }
        while stream.ends.get(stream.complete).is_some_and(|&end| end <= stream.next) {
            let (size, end) = (stream.sizes[stream.complete], stream.ends[stream.complete]);
            stream.complete += 1;
            assert_eq!(self.aggregator.handle_message(self.now, (index as u32, 0), end), size);
            self.complete.push_back((index, size));
        }
        until == wanted
    }

    fn send(&mut self, bytes: u64) {
        self.sent = (self.sent + bytes).min(self.aggregator.written(0));
        while let Some(departed) = self.aggregator.poll_departed(self.now, 0, self.sent) {
            let (index, size) = self.complete.pop_front().expect("only complete messages leave");
            assert_eq!(
                (departed.connection as usize, departed.bytes),
                (index, size),
                "order, size"
            );
            let stream = &mut self.streams[index];
            assert_eq!(
                stream.sizes[stream.departed], size,
                "the messages of a connection keep their order"
            );
            stream.departed += 1;
        }
    }

    fn step(&mut self, step: &Step) {
        self.now += Duration::from_nanos(1);
        match *step {
            Step::Segment { connection, gap, len } => {
                let from = self.streams[connection].next + gap;
                self.segment(connection, from, from + len);
            }
            Step::Send(bytes) => self.send(bytes),
            Step::Acknowledge(bytes) => {
                self.acknowledged = (self.acknowledged + bytes).min(self.sent);
                self.aggregator.handle_acknowledged(self.now, 0, self.acknowledged);
            }
        }
        self.check();
    }

    fn check(&self) {
        let (messages, bytes) = self.aggregator.occupied();
        match self.limit {
            BufferLimit::Messages(limit) => assert!(messages <= u64::from(limit)),
            BufferLimit::Bytes(limit) => assert!(bytes <= limit.get()),
        }
        let accepted: u64 = self.streams.iter().map(|stream| stream.next).sum();
        let departed: u64 = self
            .streams
            .iter()
            .map(|stream| stream.departed.checked_sub(1).map_or(0, |last| stream.ends[last]))
            .sum();
        assert!(
            accepted - departed <= bytes,
            "accepted bytes exceed the reserved space: {} of {bytes}",
            accepted - departed
        );
        assert!(messages >= self.complete.len() as u64);
        assert_eq!(self.aggregator.waiting(0).value(), messages);
        let bytes_at_risk = self.aggregator.bytes_at_risk(0).value();
        assert_eq!(bytes_at_risk, self.aggregator.written(0) - self.acknowledged);
    }

    /// Connections send missing bytes in segments of 100 bytes, and upstream sends everything.
    /// Every round must make progress.
    fn drain(&mut self) {
        loop {
            let before: u64 = self.streams.iter().map(|stream| stream.next).sum();
            self.send(u64::MAX / 2);
            for index in 0..self.streams.len() {
                let from = self.streams[index].next;
                self.segment(index, from, from + 100);
                self.check();
            }
            let after: u64 = self.streams.iter().map(|stream| stream.next).sum();
            if self.streams.iter().all(|stream| stream.next == stream.accepted.len() as u64) {
                self.send(u64::MAX / 2);
                break;
            }
            assert!(after > before, "no progress: incomplete messages wait for each other");
        }
    }
}

proptest! {
    #[test]
    fn messages_are_delivered_once_whole_and_without_deadlock(
        limit in limits(),
        sizes in messages(),
        steps in steps(),
    ) {
        let mut bench = Bench::new(limit, sizes);
        for step in &steps {
            bench.step(step);
        }
        bench.drain();
        for stream in &bench.streams {
            prop_assert_eq!(stream.departed, stream.sizes.len());
        }
        prop_assert_eq!(bench.aggregator.occupied(), (0, 0));
        prop_assert!(bench.aggregator.incomplete.is_empty());
    }

    /// The null case: an unlimited buffer accepts all segments of a single connection.
    #[test]
    fn without_a_limit_everything_is_accepted(
        sizes in prop::collection::vec(1..300_u64, 0..30),
        steps in steps(),
    ) {
        let mut bench = Bench::new(BufferLimit::Messages(u32::MAX), vec![sizes]);
        for step in steps {
            if let Step::Segment { gap, len, .. } = step {
                let from = bench.streams[0].next + gap;
                prop_assert!(bench.segment(0, from, from + len));
            } else {
                bench.step(&step);
            }
        }
    }

    /// Segments within the window share are never rejected if the buffer has space for one message
    /// per connection.
    #[test]
    fn segments_within_the_window_share_are_accepted(
        limit in limits(),
        connections in 1..5_usize,
        size in 1..200_u64,
        order in prop::collection::vec((0..4_usize, any::<bool>()), 0..200),
    ) {
        let share = window_share(limit, connections as u64, MessageSizes { min: size, max: size });
        let enough = match limit {
            BufferLimit::Messages(limit) => u64::from(limit) >= connections as u64,
            BufferLimit::Bytes(limit) => limit.get() >= size * connections as u64,
        };
        prop_assume!(enough);
        let mut bench = Bench::new(limit, vec![vec![size; 20]; connections]);
        for (index, send) in order {
            let index = index % connections;
            let stream = &bench.streams[index];
            let edge = stream.departed as u64 * size + share;
            let (from, until) = (stream.next, edge.min(stream.next + size / 2 + 1));
            prop_assert!(bench.segment(index, from, until));
            if send {
                bench.send(size);
            }
        }
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[test]
fn space_is_reserved_for_a_whole_message() {
    // The buffer has space for two messages. The first byte of a message reserves all of it, so
    // that a third message must wait although only two bytes have arrived.
    let mut aggregator = SegmentAggregator::new(BufferLimit::Messages(2), 1);
    assert_eq!(aggregator.admit(at(0), (0, 0), 0..1, 0, [500]), 1);
    assert_eq!(aggregator.admit(at(0), (1, 0), 0..1, 0, [500]), 1);
    assert_eq!(aggregator.admit(at(0), (2, 0), 0..1, 0, [500]), 0);
    assert_eq!(aggregator.admit(at(0), (1, 0), 1..500, 1, [500]), 500);
    aggregator.handle_message(at(5), (1, 0), 500);
    assert_eq!(
        aggregator.admit(at(5), (2, 0), 0..1, 0, [500]),
        0,
        "space is released when the message is sent"
    );
    assert_eq!(aggregator.poll_departed(at(7), 0, 499), None);
    let departed = aggregator.poll_departed(at(9), 0, 500).unwrap();
    assert_eq!(departed, Departed { connection: 1, bytes: 500, waited: Duration::from_nanos(4) });
    assert_eq!(aggregator.admit(at(9), (2, 0), 0..1, 0, [500]), 1);
    // Two from 0 to 9 ns, then two again.
    assert_eq!(aggregator.waiting(0).integral_at(at(10)), 20);
    assert_eq!(aggregator.occupied(), (2, 1_000));
}

#[test]
fn data_beyond_a_gap_reserves_the_gap() {
    // The third message arrives first: it needs space together with the two messages before it.
    let ends = [100, 200, 300];
    let mut aggregator = SegmentAggregator::new(BufferLimit::Messages(2), 1);
    assert_eq!(aggregator.admit(at(0), (0, 0), 200..300, 0, ends), 0);
    assert_eq!(aggregator.occupied(), (0, 0));
    assert_eq!(aggregator.admit(at(0), (0, 0), 100..200, 0, ends), 200);
    assert_eq!(aggregator.admit(at(0), (1, 0), 0..10, 0, [10]), 0);
    assert_eq!(aggregator.admit(at(0), (0, 0), 0..100, 0, ends), 100);
}

#[test]
fn a_segment_is_truncated_where_the_space_ends() {
    // Five messages in one segment, space for two: if it were rejected as a whole, no
    // retransmission would ever be accepted.
    let mut aggregator = SegmentAggregator::new(BufferLimit::Bytes(Bytes::new(29)), 1);
    assert_eq!(aggregator.admit(at(0), (0, 0), 0..50, 0, [10, 20, 30, 40, 50]), 20);
    assert_eq!(aggregator.occupied(), (2, 20));
}

#[test]
fn upstream_connections_share_the_buffer_and_keep_their_order() {
    let mut aggregator = SegmentAggregator::new(BufferLimit::Bytes(Bytes::new(300)), 2);
    for (connection, upstream) in [(0, 0), (1, 1), (2, 0)] {
        assert_eq!(aggregator.admit(at(0), (connection, upstream), 0..100, 0, [100]), 100);
        aggregator.handle_message(at(0), (connection, upstream), 100);
    }
    assert_eq!(aggregator.admit(at(0), (3, 1), 0..100, 0, [100]), 0);
    assert_eq!((aggregator.written(0), aggregator.written(1)), (200, 100));
    assert_eq!(aggregator.poll_departed(at(0), 0, 200).unwrap().connection, 0);
    assert_eq!(aggregator.poll_departed(at(0), 0, 200).unwrap().connection, 2);
    assert_eq!(aggregator.poll_departed(at(0), 0, 200), None);
    assert_eq!((aggregator.waiting(0).value(), aggregator.waiting(1).value()), (0, 1));
}
