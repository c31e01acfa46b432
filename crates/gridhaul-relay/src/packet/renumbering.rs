//! Two hosts that have the sequence numbers of different connections, because a proxy of mode
//! `split` has opened one with each of them.

use std::collections::VecDeque;

use gridhaul_core::pep::{Origin, Outgoing, Proxy, Side};
use gridhaul_core::tcp::{Flags, SackBlocks, Segment};
use gridhaul_scenario::units::Instant;

/// Forwards segments with the sequence numbers of their receiver. It takes the place of a proxy
/// whose hosts have all data that was acknowledged to them
/// ([`Proxy::is_end_to_end`]), and needs no state that changes with each segment.
#[derive(Debug, Clone)]
pub(super) struct Renumbering {
    /// Sequence number of a byte at its sender minus that at its receiver, by the sender.
    distances: [u32; 2],
    /// By side: the numbers of its newest segment, for a reset.
    numbers: [Option<Numbers>; 2],
    queue: VecDeque<Outgoing>,
}

/// Sequence numbers in a segment of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The number after the segment.
    pub(super) end: u32,
    /// The number that the host expects from the other one.
    pub(super) expected: u32,
}

impl Numbers {
    /// The numbers of a segment with an acknowledgement.
    pub(super) fn of(segment: &Segment) -> Self {
        let end = segment.seq.wrapping_add(segment.sequence_len());
        Self { end, expected: segment.ack }
    }

    /// A reset that the host accepts.
    pub(super) fn reset(self) -> Segment {
        let flags = Flags::RST.with(Flags::ACK);
        Segment { seq: self.expected, ack: self.end, flags, ..Segment::default() }
    }
}

impl Renumbering {
    pub(super) const fn new(distances: [u32; 2]) -> Self {
        Self { distances, numbers: [None; 2], queue: VecDeque::new() }
    }

    /// A segment of a side with the numbers of its receiver.
    fn translate(&self, from: Side, segment: &Segment) -> Segment {
        let own = self.distances[from.index()];
        let other = self.distances[from.other().index()];
        let mut translated = *segment;
        translated.seq = segment.seq.wrapping_sub(own);
        if segment.flags.has(Flags::ACK) {
            translated.ack = segment.ack.wrapping_add(other);
        }
        translated.sack = SackBlocks::default();
        for (left, right) in segment.sack.as_slice() {
            translated.sack.push(left.wrapping_add(other), right.wrapping_add(other));
        }
        translated
    }
}

impl Proxy for Renumbering {
    fn boxed_clone(&self) -> Box<dyn Proxy> {
        Box::new(self.clone())
    }

    fn handle_segment(&mut self, _now: Instant, from: Side, segment: &Segment) {
        if segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::RST) {
            self.numbers[from.index()] = Some(Numbers::of(segment));
        }
        let (to, segment) = (from.other(), self.translate(from, segment));
        self.queue.push_back(Outgoing { to, segment, origin: Origin::Proxy });
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        self.queue.pop_front()
    }

    /// The payload is forwarded from the store, because the receiver may accept shorter segments
    /// only.
    fn accepts(&self, _from: Side, segment: &Segment) -> Option<(u32, u32)> {
        let has_data = segment.len > 0 && !segment.flags.has(Flags::SYN);
        has_data.then_some((segment.seq, segment.len))
    }

    fn reset(&mut self) {
        for to in Side::BOTH {
            let reset = self.numbers[to.index()].map(Numbers::reset);
            self.queue.extend(reset.map(|segment| Outgoing { to, segment, origin: Origin::Proxy }));
        }
    }

    /// The hosts may retransmit FIN, or its acknowledgement, after both have closed.
    fn is_finished(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client has 1,000 where the server has 5, the server 7 where the client has 400.
    fn renumbering() -> Renumbering {
        Renumbering::new([995, 7_u32.wrapping_sub(400)])
    }

    fn sent(renumbering: &mut Renumbering) -> Vec<(Side, Segment)> {
        let sent = std::iter::from_fn(|| renumbering.poll_transmit(Instant::ZERO));
        sent.map(|outgoing| (outgoing.to, outgoing.segment)).collect()
    }

    #[test]
    fn sequence_numbers_acknowledgements_and_sack_blocks_are_translated() {
        let mut renumbering = renumbering();
        let mut sack = SackBlocks::default();
        sack.push(420, 440);
        let (seq, ack, flags) = (1_010, 410, Flags::ACK);
        let segment =
            Segment { seq, ack, len: 100, window: 9_000, flags, sack, ..Segment::default() };
        renumbering.handle_segment(Instant::ZERO, Side::Client, &segment);
        let mut expected = Segment { seq: 15, ack: 17, ..segment };
        expected.sack = SackBlocks::default();
        expected.sack.push(27, 47);
        assert_eq!(sent(&mut renumbering), [(Side::Server, expected)]);
        let (seq, ack) = (17, 115);
        renumbering.handle_segment(
            Instant::ZERO,
            Side::Server,
            &Segment { seq, ack, flags, ..Segment::default() },
        );
        let expected = Segment { seq: 410, ack: 1_110, flags, ..Segment::default() };
        assert_eq!(sent(&mut renumbering), [(Side::Client, expected)]);
    }

    #[test]
    fn a_reset_has_the_numbers_of_each_host() {
        let mut renumbering = renumbering();
        let flags = Flags::ACK;
        let segment = Segment { seq: 1_010, ack: 410, len: 5, flags, ..Segment::default() };
        renumbering.handle_segment(Instant::ZERO, Side::Client, &segment);
        sent(&mut renumbering);
        renumbering.reset();
        let resets = sent(&mut renumbering);
        let numbers: Vec<_> =
            resets.iter().map(|(to, reset)| (*to, reset.seq, reset.ack)).collect();
        assert_eq!(numbers, [(Side::Client, 410, 1_015)], "the server has sent nothing");
    }
}
