//! Admission by byte compared with the reference model.

use bytes::Bytes;
use gridhaul_scenario::units::Instant;
use proptest::prelude::*;

use super::super::{ByteAggregator, ByteLimits, ConnectionId, OfferError};
use super::byte_admission::Admission;
use super::{CONNECTIONS, Case, Model, cases};

#[derive(Debug, Clone)]
enum Step {
    /// A connection offers this many more bytes.
    Offer(usize, usize),
    /// A connection ends, possibly before the end of its stream.
    End(usize),
    /// The next message of an upstream connection is polled for transmission.
    Transmit(usize),
    /// An upstream connection delivers this many more bytes.
    Deliver(usize, u64),
    /// An upstream connection is reopened.
    Reopen(usize),
    /// A connection that waited for space continues.
    Unblock,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let upstream = 0..3_usize;
    let step = prop_oneof![
        8 => (0..CONNECTIONS, prop_oneof![1..8_usize, 1..150_usize, 100..900_usize])
            .prop_map(|(connection, bytes)| Step::Offer(connection, bytes)),
        1 => (0..40_usize).prop_map(Step::End),
        5 => upstream.clone().prop_map(Step::Transmit),
        4 => (upstream.clone(), prop_oneof![1..150_u64, 1..2_000_u64])
            .prop_map(|(upstream, bytes)| Step::Deliver(upstream, bytes)),
        1 => upstream.prop_map(Step::Reopen),
        2 => Just(Step::Unblock),
    ];
    prop::collection::vec(step, 0..150)
}

/// An aggregator that admits bytes, its connections, and the reference model.
pub(super) struct Bench {
    pub aggregator: ByteAggregator,
    admission: Admission,
    model: Model,
    streams: Vec<Vec<u8>>,
    pub ids: Vec<ConnectionId>,
    offered: Vec<usize>,
    is_ended: Vec<bool>,
    /// Messages of each upstream connection that were polled for transmission.
    transmitted: Vec<usize>,
    delivered_to: Vec<u64>,
}

impl Bench {
    pub(super) fn new(Case { kind, streams, upstream_of }: Case, limits: ByteLimits) -> Self {
        let model = Model::new(kind, &upstream_of);
        let (count, upstreams) = (streams.len(), model.upstreams());
        let mut aggregator = ByteAggregator::new(limits, upstreams);
        let open = |&upstream: &usize| aggregator.open(upstream, kind.framer()).unwrap();
        Self {
            ids: upstream_of.iter().map(open).collect(),
            aggregator,
            admission: Admission::new(limits, count),
            model,
            streams,
            offered: vec![0; count],
            is_ended: vec![false; count],
            transmitted: vec![0; upstreams],
            delivered_to: vec![0; upstreams],
        }
    }

    /// Accepts bytes in the model, message by message, because each message may free the reserve.
    fn accept(&mut self, index: usize, bytes: &[u8]) -> u64 {
        let mut messages = 0;
        let mut rest = bytes;
        while !rest.is_empty() {
            let have = self.model.incomplete[index].len();
            let whole = [self.model.incomplete[index].as_slice(), rest].concat();
            let (sizes, _) = self.model.kind.divide(&whole);
            let piece = sizes.first().map_or(rest.len(), |size| size - have);
            messages += self.model.accept(index, &rest[..piece]).len() as u64;
            rest = &rest[piece..];
            self.update_holder(index);
        }
        messages
    }

    fn update_holder(&mut self, index: usize) {
        let incomplete = self.model.incomplete.iter().map(|bytes| bytes.len() as u64).sum();
        self.admission.update_holder(index, incomplete);
    }

    /// Returns the number of accepted bytes.
    pub(super) fn offer(&mut self, index: usize, bytes: usize) -> usize {
        let (id, from) = (self.ids[index], self.offered[index]);
        let until = self.streams[index].len().min(from + bytes);
        let piece = self.streams[index][from..until].to_vec();
        let acceptable = self.admission.acceptable(&self.model, index).min(piece.len() as u64);
        let acceptable = acceptable as usize;
        let earlier = self.model.incomplete_bytes(index);
        match self.aggregator.offer(Instant::ZERO, id, &Bytes::from(piece.clone())) {
            Ok(accepted) => {
                assert!(!self.is_ended[index]);
                assert_eq!(accepted.bytes, acceptable, "acceptable bytes are accepted");
                assert_eq!(accepted.messages, self.accept(index, &piece[..acceptable]));
                assert_eq!(accepted.incomplete, self.model.incomplete_bytes(index));
                self.offered[index] += acceptable;
                if acceptable < piece.len() {
                    self.admission.wait(&self.model, index);
                } else {
                    self.admission.stop_waiting(index);
                }
                acceptable
            }
            Err(OfferError::Malformed { error, accepted, ended }) => {
                let messages = self.accept(index, &piece[..accepted.bytes]);
                assert_eq!(accepted.messages, messages);
                let lost = if messages > 0 { 0 } else { earlier };
                assert_eq!(ended.discarded, lost);
                assert_eq!(self.model.kind.divide(&self.streams[index]).1, Some(error));
                self.forget_incomplete(index);
                0
            }
            Err(OfferError::Ended | OfferError::UnknownConnection) => {
                assert!(self.is_ended[index]);
                0
            }
        }
    }

    /// A connection ends in the model. Returns the lost bytes.
    fn forget_incomplete(&mut self, index: usize) -> u64 {
        let lost = std::mem::take(&mut self.model.incomplete[index]).len() as u64;
        self.is_ended[index] = true;
        self.admission.stop_waiting(index);
        if lost > 0 {
            self.update_holder(index);
        }
        lost
    }

    fn end(&mut self, index: usize) {
        let lost = self.forget_incomplete(index);
        if let Some(ended) = self.aggregator.end(Instant::ZERO, self.ids[index]) {
            assert_eq!(ended.discarded, lost, "lost bytes are reported");
            assert_eq!(ended.undelivered, self.model.held_of(index));
        }
    }

    pub(super) fn transmit(&mut self, upstream: usize) -> bool {
        let (queue, transmitted) = (&self.model.queues[upstream], self.transmitted[upstream]);
        let Some(message) = self.aggregator.poll_transmit(upstream) else {
            assert_eq!(transmitted, queue.len());
            return false;
        };
        let (index, payload) = &queue[transmitted];
        assert_eq!(message.number, transmitted as u64);
        assert_eq!(message.connection, self.ids[*index]);
        let read =
            self.aggregator.read(&message).expect("the message is stored until it is delivered");
        assert_eq!(&read.flatten().copied().collect::<Vec<u8>>(), payload);
        self.transmitted[upstream] += 1;
        assert_eq!(message.upstream_end, self.model.bytes_of_first(upstream, transmitted + 1));
        true
    }

    pub(super) fn deliver(&mut self, upstream: usize, bytes: u64) {
        let transmitted = self.model.bytes_of_first(upstream, self.transmitted[upstream]);
        self.delivered_to[upstream] = (self.delivered_to[upstream] + bytes).min(transmitted);
        let position = self.delivered_to[upstream];
        while let Some(delivered) =
            self.aggregator.poll_delivered(Instant::ZERO, upstream, position)
        {
            let departed = self.model.departed[upstream];
            let (index, payload) = &self.model.queues[upstream][departed];
            let index = *index;
            assert_eq!(delivered.number, departed as u64);
            assert_eq!(delivered.connection, self.ids[index]);
            assert_eq!(delivered.bytes, payload.len() as u64);
            self.model.departed[upstream] += 1;
            let is_last = self.is_ended[index] && self.model.held_of(index) == 0;
            assert_eq!(delivered.is_finished, is_last);
            if self.admission.waits_for_own[index] {
                self.admission.enqueue(index);
            }
        }
    }

    fn reopen(&mut self, upstream: usize) {
        self.aggregator.handle_upstream_reopened(upstream);
        let departed = self.model.departed[upstream];
        self.transmitted[upstream] = departed;
        self.delivered_to[upstream] = self.model.bytes_of_first(upstream, departed);
    }

    /// The next waiting connection continues with this many bytes; `None` if there is no space. No connection
    /// is served twice while another one waits, except for the rest of the message in the reserve.
    pub(super) fn unblock(&mut self, bytes: usize) -> Option<usize> {
        let holder = self.admission.holder;
        let expected = self.admission.poll_unblocked(&self.model);
        let unblocked = self.aggregator.poll_unblocked();
        let index = unblocked.map(|id| self.ids.iter().position(|&own| own == id).unwrap());
        assert_eq!(index, expected, "the connection that waits longest");
        let index = index?;
        assert!(self.aggregator.acceptable(self.ids[index]) > 0);
        if holder != Some(index) {
            for &other in &self.admission.waiting {
                let overtaken_by = &mut self.admission.overtaken_by[other];
                assert!(!overtaken_by.contains(&index), "{index} overtakes {other} twice");
                overtaken_by.push(index);
            }
        }
        self.offer(index, bytes);
        Some(index)
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Offer(index, bytes) => {
                self.offer(index, bytes);
            }
            Step::End(index) if index < self.ids.len() => self.end(index),
            Step::Transmit(upstream) if upstream < self.model.upstreams() => {
                self.transmit(upstream);
            }
            Step::Deliver(upstream, bytes) if upstream < self.model.upstreams() => {
                self.deliver(upstream, bytes);
            }
            Step::Reopen(upstream) if upstream < self.model.upstreams() => self.reopen(upstream),
            Step::Unblock => {
                self.unblock(50);
            }
            _ => {}
        }
        self.check();
    }

    pub(super) fn check(&self) {
        let held = (0..self.model.upstreams()).map(|upstream| {
            let held = self.model.held(upstream);
            assert_eq!(self.aggregator.upstream_at_risk(upstream).value(), held);
            held
        });
        let at_risk = self.aggregator.at_risk().value();
        assert_eq!(at_risk, held.sum::<u64>(), "incomplete messages are at risk too");
        let limits = self.admission.limits;
        assert!(at_risk <= limits.total(), "the limit is exceeded");
        let holder = self.admission.holder.map(|index| self.ids[index]);
        assert_eq!(self.aggregator.reserve_holder(), holder);
        for (index, &id) in self.ids.iter().enumerate() {
            let own = self.model.held_of(index);
            let Some(status) = self.aggregator.connection(id) else {
                assert!(self.is_ended[index] && own == 0);
                continue;
            };
            assert_eq!((status.at_risk, status.is_ended), (own, self.is_ended[index]));
            assert!(own <= limits.per_connection());
            assert_eq!(status.incomplete, self.model.incomplete_bytes(index));
            assert_eq!(status.accepted, status.delivered + status.at_risk + status.discarded);
        }
    }

    /// Upstream transmits and delivers everything.
    fn deliver_all(&mut self) {
        for upstream in 0..self.model.upstreams() {
            while self.transmit(upstream) {}
            self.deliver(upstream, u64::MAX / 2);
        }
    }

    /// Every connection sends the rest of its stream and ends, and upstream delivers everything. Each
    /// round must make progress.
    fn drain(&mut self) {
        while !self.is_ended.iter().all(|&is_ended| is_ended) {
            self.deliver_all();
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
        self.deliver_all();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn admission_by_byte_agrees_with_the_reference_model(
        case in cases(),
        (own, more) in (0..150_u64, 0..150_u64),
        steps in steps(),
    ) {
        // There is space for little more than one message, so that long messages wait for each other.
        let largest = case.kind.framer().largest_message();
        let limits = ByteLimits::new(largest + own + more, largest + own, largest).unwrap();
        let mut bench = Bench::new(case, limits);
        let mut ended_early = [false; CONNECTIONS];
        for step in &steps {
            if let Step::End(index) = *step && index < CONNECTIONS {
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
        for index in (0..CONNECTIONS).filter(|&index| !ended_early[index]) {
            let stream = &bench.streams[index];
            let complete = bench.model.ends(stream).last().map_or(0, |&end| end as usize);
            prop_assert_eq!(&bench.model.messages_of(index), &stream[..complete]);
        }
    }
}
