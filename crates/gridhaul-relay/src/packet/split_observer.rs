//! A connection that an earlier relay may have split.

use std::collections::VecDeque;

use gridhaul_core::pep::{Origin, Outgoing, Proxy, Side};
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_scenario::units::Instant;

use super::renumbering::Numbers;

/// Forwards the segments of a connection, and resets both hosts if they have the sequence numbers
/// of different connections: an earlier relay has split the connection, and its hosts cannot
/// understand each other.
#[derive(Debug, Clone, Default)]
pub(super) struct SplitObserver {
    /// By side: the numbers of its newest segment.
    numbers: [Option<Numbers>; 2],
    /// Segments in a row after which the hosts have different numbers.
    contradictions: u8,
    /// The hosts were reset, or have reset each other.
    is_over: bool,
    queue: VecDeque<Outgoing>,
}

/// Largest distance between the numbers of two hosts that have one connection: windows are smaller,
/// and so are losses. The numbers of a split connection are independent of each other (RFC 6528),
/// so that both directions are closer than this by chance in one case of a thousand.
const DISTANCE_MAX: u32 = 1 << 26;

/// Segments in a row that prove a split connection. A single one may be an old duplicate of another
/// connection, or forged by somebody who does not see the packets of the hosts.
const CONTRADICTIONS: u8 = 3;

impl SplitObserver {
    /// Whether the hosts have the numbers of different connections, by their newest segments.
    fn differ(&self) -> bool {
        let [Some(client), Some(server)] = self.numbers else { return false };
        let differ = |expected: u32, end: u32| {
            expected.wrapping_sub(end).cast_signed().unsigned_abs() > DISTANCE_MAX
        };
        differ(client.expected, server.end) || differ(server.expected, client.end)
    }

    fn reset(&mut self, to: Side) {
        let reset = self.numbers[to.index()].map(Numbers::reset);
        self.queue.extend(reset.map(|segment| Outgoing { to, segment, origin: Origin::Proxy }));
    }
}

impl Proxy for SplitObserver {
    fn boxed_clone(&self) -> Box<dyn Proxy> {
        Box::new(self.clone())
    }

    fn handle_segment(&mut self, _now: Instant, from: Side, segment: &Segment) {
        let is_reset = segment.flags.has(Flags::RST);
        if segment.flags.has(Flags::ACK) && !is_reset {
            self.numbers[from.index()] = Some(Numbers::of(segment));
        }
        if self.is_over && !is_reset {
            // The host has not received the reset, or another relay probes whether the other host
            // has.
            Side::BOTH.into_iter().for_each(|side| self.reset(side));
            return;
        }
        self.is_over |= is_reset;
        self.contradictions = if self.differ() { self.contradictions.saturating_add(1) } else { 0 };
        if !is_reset && self.contradictions >= CONTRADICTIONS {
            self.is_over = true;
            Side::BOTH.into_iter().for_each(|side| self.reset(side));
            return;
        }
        let (to, segment) = (from.other(), *segment);
        self.queue.push_back(Outgoing { to, segment, origin: Origin::Forwarded });
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        self.queue.pop_front()
    }

    fn is_finished(&self) -> bool {
        self.is_over && self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(seq: u32, ack: u32) -> Segment {
        Segment { seq, ack, len: 100, flags: Flags::ACK, ..Segment::default() }
    }

    fn sent(observer: &mut SplitObserver) -> Vec<(Side, bool)> {
        let sent = std::iter::from_fn(|| observer.poll_transmit(Instant::ZERO));
        sent.map(|outgoing| (outgoing.to, outgoing.segment.flags.has(Flags::RST))).collect()
    }

    #[test]
    fn hosts_with_the_numbers_of_different_connections_are_reset() {
        let mut observer = SplitObserver::default();
        observer.handle_segment(Instant::ZERO, Side::Client, &segment(1_000, 500_000_000));
        assert_eq!(sent(&mut observer), [(Side::Server, false)]);
        for _ in 1..CONTRADICTIONS {
            observer.handle_segment(Instant::ZERO, Side::Server, &segment(u32::MAX, 1_000));
            assert_eq!(sent(&mut observer), [(Side::Client, false)]);
        }
        observer.handle_segment(Instant::ZERO, Side::Client, &segment(1_000, 500_000_000));
        assert_eq!(sent(&mut observer), [(Side::Client, true), (Side::Server, true)]);
        assert!(observer.is_over());
        observer.handle_segment(Instant::ZERO, Side::Server, &segment(u32::MAX, 1_000));
        let both = [(Side::Client, true), (Side::Server, true)];
        assert_eq!(sent(&mut observer), both, "the first reset was lost");
    }

    #[test]
    fn a_segment_of_another_connection_resets_nobody() {
        let mut observer = SplitObserver::default();
        for round in 0..10 {
            observer.handle_segment(Instant::ZERO, Side::Client, &segment(100 * round, 7));
            observer.handle_segment(Instant::ZERO, Side::Server, &segment(7, 100 * round));
            observer.handle_segment(Instant::ZERO, Side::Client, &segment(1 << 30, 1 << 31));
            assert!(sent(&mut observer).iter().all(|(_, is_reset)| !is_reset), "{round}");
        }
    }

    #[test]
    fn hosts_of_one_connection_continue() {
        let mut observer = SplitObserver::default();
        for round in 0..100_000_u32 {
            let (client, server) =
                (round.wrapping_mul(100_000), 7_u32.wrapping_add(round.wrapping_mul(90_000)));
            observer.handle_segment(Instant::ZERO, Side::Client, &segment(client, server));
            observer.handle_segment(Instant::ZERO, Side::Server, &segment(server, client));
            assert_eq!(sent(&mut observer), [(Side::Server, false), (Side::Client, false)]);
        }
    }
}
