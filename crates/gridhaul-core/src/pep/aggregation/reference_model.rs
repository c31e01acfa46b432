//! Both front ends compared with a specification that stores whole streams and queues in vectors.

use bytes::Bytes;
use gridhaul_scenario::units::{self, BufferLimit, Instant};
use proptest::prelude::*;

use super::framer::tests::{Kind, kinds, streams};
use super::*;

/// The specification. It has no limits: the front end under test decides what is accepted.
#[derive(Debug)]
struct Model {
    kind: Kind,
    /// Accepted bytes of each connection that are not in a complete message.
    incomplete: Vec<Vec<u8>>,
    /// Complete messages in order: connection and payload.
    messages: Vec<(usize, Vec<u8>)>,
    /// Number of messages that have left, from the beginning of `messages`.
    departed: usize,
}

impl Model {
    fn new(kind: Kind, connections: usize) -> Self {
        Self { kind, incomplete: vec![Vec::new(); connections], messages: Vec::new(), departed: 0 }
    }

    /// Returns the number of messages that become complete.
    fn accept(&mut self, connection: usize, bytes: &[u8]) -> u64 {
        let rest = &mut self.incomplete[connection];
        rest.extend(bytes);
        let (sizes, _) = self.kind.divide(rest);
        for &size in &sizes {
            self.messages.push((connection, rest.drain(..size).collect()));
        }
        sizes.len() as u64
    }

    /// Accepted bytes that have not left.
    fn at_risk(&self) -> u64 {
        let incomplete: usize = self.incomplete.iter().map(Vec::len).sum();
        let waiting: usize =
            self.messages[self.departed..].iter().map(|(_, bytes)| bytes.len()).sum();
        (incomplete + waiting) as u64
    }

    fn at_risk_of(&self, connection: usize) -> u64 {
        let waiting = self.messages[self.departed..].iter().filter(|(from, _)| *from == connection);
        let waiting: usize = waiting.map(|(_, bytes)| bytes.len()).sum();
        (self.incomplete[connection].len() + waiting) as u64
    }

    /// End of each message in the whole stream of a connection.
    fn ends(&self, stream: &[u8]) -> Vec<u64> {
        let (sizes, _) = self.kind.divide(stream);
        let mut end = 0;
        sizes
            .iter()
            .map(|&size| {
                end += size as u64;
                end
            })
            .collect()
    }

    /// All messages of a connection.
    fn of(&self, connection: usize) -> Vec<u8> {
        let own = self.messages.iter().filter(|(from, _)| *from == connection);
        own.flat_map(|(_, bytes)| bytes).copied().collect()
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// A connection offers this many more bytes.
    Offer(usize, usize),
    /// A connection ends, possibly before the end of its stream.
    End(usize),
    /// The next message is polled for transmission.
    Transmit,
    /// The upstream connection delivers this many more bytes.
    Deliver(u64),
    /// The upstream connection is reopened.
    Reopen,
    /// A connection that waited for space continues.
    Unblock,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..4_usize, prop_oneof![1..8_usize, 1..150_usize])
            .prop_map(|(connection, bytes)| Step::Offer(connection, bytes)),
        1 => (0..40_usize).prop_map(Step::End),
        4 => Just(Step::Transmit),
        3 => (1..150_u64).prop_map(Step::Deliver),
        1 => Just(Step::Reopen),
        2 => Just(Step::Unblock),
    ];
    prop::collection::vec(step, 0..150)
}

/// A framing with small messages, the streams of four connections, and limits.
fn cases() -> impl Strategy<Value = (Kind, Vec<Vec<u8>>, ByteLimits)> {
    let kinds =
        kinds().prop_filter("small messages", |kind| kind.framer().largest_message() <= 100);
    let limits = (0..150_u64, 0..150_u64);
    (kinds, prop::collection::vec(streams(400), 4), limits).prop_map(
        |(kind, streams, (own, more))| {
            let largest = kind.framer().largest_message();
            let limits = ByteLimits::new(largest + own + more, largest + own, largest).unwrap();
            (kind, streams, limits)
        },
    )
}

/// An aggregator that admits bytes, its connections, and the specification.
struct Bench {
    aggregator: ByteAggregator,
    limits: ByteLimits,
    model: Model,
    streams: Vec<Vec<u8>>,
    ids: Vec<ConnectionId>,
    offered: Vec<usize>,
    is_ended: Vec<bool>,
    /// Messages polled for transmission, and the upstream position after the last of them.
    transmitted: usize,
    transmitted_to: u64,
    delivered_to: u64,
}

impl Bench {
    fn new(kind: Kind, streams: Vec<Vec<u8>>, limits: ByteLimits) -> Self {
        let mut aggregator = ByteAggregator::new(limits, 1);
        let ids = streams.iter().map(|_| aggregator.open(0, kind.framer()).unwrap()).collect();
        let count = streams.len();
        Self {
            aggregator,
            limits,
            model: Model::new(kind, count),
            streams,
            ids,
            offered: vec![0; count],
            is_ended: vec![false; count],
            transmitted: 0,
            transmitted_to: 0,
            delivered_to: 0,
        }
    }

    /// Returns the number of accepted bytes.
    fn offer(&mut self, index: usize, bytes: usize) -> usize {
        let (id, from) = (self.ids[index], self.offered[index]);
        let until = self.streams[index].len().min(from + bytes);
        let acceptable = self.aggregator.acceptable(id).min((until - from) as u64) as usize;
        let piece = self.streams[index][from..until].to_vec();
        let earlier = self.model.incomplete[index].len() as u64;
        match self.aggregator.offer(Instant::ZERO, id, &Bytes::from(piece.clone())) {
            Ok(accepted) => {
                assert!(!self.is_ended[index]);
                assert_eq!(accepted.bytes, acceptable, "acceptable bytes are accepted");
                let messages = self.model.accept(index, &piece[..acceptable]);
                assert_eq!(accepted.messages, messages);
                let incomplete = self.model.incomplete[index].len() as u64;
                assert_eq!(accepted.incomplete, incomplete);
                self.offered[index] += acceptable;
                acceptable
            }
            Err(OfferError::Malformed { error, accepted, ended }) => {
                let messages = self.model.accept(index, &piece[..accepted.bytes]);
                assert_eq!(accepted.messages, messages);
                let lost = if messages > 0 { 0 } else { earlier };
                assert_eq!(ended.discarded, lost);
                assert_eq!(self.model.kind.divide(&self.streams[index]).1, Some(error));
                self.model.incomplete[index].clear();
                self.is_ended[index] = true;
                0
            }
            Err(OfferError::Ended | OfferError::UnknownConnection) => {
                assert!(self.is_ended[index]);
                0
            }
        }
    }

    fn end(&mut self, index: usize) {
        let lost = std::mem::take(&mut self.model.incomplete[index]).len() as u64;
        if let Some(ended) = self.aggregator.end(Instant::ZERO, self.ids[index]) {
            assert_eq!(ended.discarded, lost, "lost bytes are reported");
            assert_eq!(ended.undelivered, self.model.at_risk_of(index));
        }
        self.is_ended[index] = true;
    }

    fn transmit(&mut self) -> bool {
        let Some(message) = self.aggregator.poll_transmit(0) else {
            assert_eq!(self.transmitted, self.model.messages.len());
            return false;
        };
        let (index, payload) = &self.model.messages[self.transmitted];
        assert_eq!(message.number, self.transmitted as u64);
        assert_eq!(message.connection, self.ids[*index]);
        let read =
            self.aggregator.read(&message).expect("the message is stored until it is delivered");
        assert_eq!(&read.flatten().copied().collect::<Vec<u8>>(), payload);
        self.transmitted += 1;
        self.transmitted_to += payload.len() as u64;
        assert_eq!(message.upstream_end, self.transmitted_to);
        true
    }

    fn deliver(&mut self, bytes: u64) {
        self.delivered_to = (self.delivered_to + bytes).min(self.transmitted_to);
        while let Some(delivered) =
            self.aggregator.poll_delivered(Instant::ZERO, 0, self.delivered_to)
        {
            let (index, payload) = &self.model.messages[self.model.departed];
            assert_eq!(delivered.number, self.model.departed as u64);
            assert_eq!(delivered.connection, self.ids[*index]);
            assert_eq!(delivered.bytes, payload.len() as u64);
            self.model.departed += 1;
            let last = self.is_ended[*index] && self.model.at_risk_of(*index) == 0;
            assert_eq!(delivered.is_finished, last);
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Offer(index, bytes) => {
                self.offer(index, bytes);
            }
            Step::End(index) if index < self.ids.len() => self.end(index),
            Step::End(_) => {}
            Step::Transmit => {
                self.transmit();
            }
            Step::Deliver(bytes) => self.deliver(bytes),
            Step::Reopen => {
                self.aggregator.handle_upstream_reopened(0);
                self.transmitted = self.model.departed;
                let departed = &self.model.messages[..self.model.departed];
                self.transmitted_to = departed.iter().map(|(_, bytes)| bytes.len() as u64).sum();
                self.delivered_to = self.transmitted_to;
            }
            Step::Unblock => {
                if let Some(id) = self.aggregator.poll_unblocked() {
                    assert!(self.aggregator.acceptable(id) > 0);
                    let index = self.ids.iter().position(|&other| other == id).unwrap();
                    self.offer(index, 50);
                }
            }
        }
        self.check();
    }

    fn check(&self) {
        let at_risk = self.aggregator.at_risk().value();
        assert_eq!(at_risk, self.model.at_risk());
        assert_eq!(at_risk, self.aggregator.upstream_at_risk(0).value());
        assert!(at_risk <= self.limits.total(), "the limit is exceeded");
        for (index, &id) in self.ids.iter().enumerate() {
            let own = self.model.at_risk_of(index);
            let Some(status) = self.aggregator.connection(id) else {
                assert!(self.is_ended[index] && own == 0);
                continue;
            };
            assert_eq!((status.at_risk, status.is_ended), (own, self.is_ended[index]));
            assert!(own <= self.limits.per_connection());
            assert_eq!(status.incomplete, self.model.incomplete[index].len() as u64);
            assert_eq!(status.accepted, status.delivered + status.at_risk + status.discarded);
        }
    }

    /// Every connection sends the rest of its stream and ends, and upstream delivers everything. Each
    /// round must make progress.
    fn drain(&mut self) {
        while !self.is_ended.iter().all(|&is_ended| is_ended) {
            while self.transmit() {}
            self.deliver(u64::MAX / 2);
            let mut progress = false;
            for index in 0..self.ids.len() {
                if self.is_ended[index] {
                    continue;
                }
                progress |= self.offer(index, 70) > 0;
                if self.offered[index] == self.streams[index].len() && !self.is_ended[index] {
                    self.end(index);
                }
                progress |= self.is_ended[index];
                self.check();
            }
            assert!(progress, "incomplete messages wait for each other");
        }
        while self.transmit() {}
        self.deliver(u64::MAX / 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn admission_by_byte_agrees_with_the_specification(
        (kind, streams, limits) in cases(),
        steps in steps(),
    ) {
        let mut bench = Bench::new(kind, streams, limits);
        let mut ended_early = [false; 4];
        for step in &steps {
            if let Step::End(index) = *step && index < 4 {
                ended_early[index] = true;
            }
            bench.step(step);
        }
        bench.drain();
        bench.check();
        prop_assert_eq!(bench.aggregator.at_risk().value(), 0);
        prop_assert!(bench.aggregator.poll_unblocked().is_none());
        prop_assert_eq!(bench.aggregator.reserve_holder(), None);
        // The messages do not depend on how the stream was divided.
        for index in (0..4).filter(|&index| !ended_early[index]) {
            let stream = &bench.streams[index];
            let complete = bench.model.ends(stream).last().map_or(0, |&end| end as usize);
            prop_assert_eq!(&bench.model.of(index), &stream[..complete]);
        }
    }

    #[test]
    fn admission_by_segment_agrees_with_the_specification(
        (kind, streams, limits) in cases(),
        steps in steps(),
    ) {
        // With no framing a stream is a single message, which may exceed the buffer.
        prop_assume!(!matches!(kind, Kind::Whole));
        let limit = BufferLimit::Bytes(units::Bytes::new(limits.total()));
        let mut aggregator = SegmentAggregator::new(limit, 1);
        let mut model = Model::new(kind, 4);
        let (mut next, mut complete_count, mut sent) = ([0_usize; 4], [0_usize; 4], 0_u64);
        let ends: Vec<Vec<u64>> = streams.iter().map(|stream| model.ends(stream)).collect();
        let rest = (0..1_600).flat_map(|i| [Step::Offer(i % 4, 60), Step::Deliver(u64::MAX / 2)]);
        for step in steps.into_iter().chain(rest) {
            if let Step::Offer(index, bytes) = step {
                let (connection, from) = ((index as u32, 0), next[index] as u64);
                let until = streams[index].len().min(next[index] + bytes) as u64;
                if until == from {
                    continue;
                }
                let remaining = ends[index][complete_count[index]..].iter().copied();
                let to = aggregator.admit(Instant::ZERO, connection, from..until, from, remaining);
                let to = to.max(from) as usize;
                let messages = model.accept(index, &streams[index][next[index]..to]);
                next[index] = to;
                for _ in 0..messages {
                    let end = ends[index][complete_count[index]];
                    aggregator.handle_message(Instant::ZERO, connection, end);
                    complete_count[index] += 1;
                }
            } else if let Step::Deliver(bytes) = step {
                sent = (sent + bytes).min(aggregator.written(0));
                while let Some(departed) = aggregator.poll_departed(Instant::ZERO, 0, sent) {
                    let (index, payload) = &model.messages[model.departed];
                    prop_assert_eq!(departed.connection as usize, *index);
                    prop_assert_eq!(departed.bytes, payload.len() as u64);
                    model.departed += 1;
                }
                aggregator.handle_acknowledged(Instant::ZERO, 0, sent);
            }
            prop_assert!(aggregator.occupied().1 <= limits.total());
            let reserved = aggregator.occupied().1;
            prop_assert!(model.at_risk() <= reserved, "accepted bytes exceed the reserved space");
        }
        prop_assert_eq!(aggregator.occupied(), (0, 0));
        for (index, stream) in streams.iter().enumerate() {
            let complete = ends[index].last().map_or(0, |&end| end as usize);
            prop_assert_eq!(&model.of(index), &stream[..complete]);
        }
    }
}
