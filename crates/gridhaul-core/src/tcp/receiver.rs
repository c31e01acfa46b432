//! The receiving half: reassembly, delayed and selective acknowledgements, the offered window.

use gridhaul_scenario::units::Instant;

use super::params::StackParams;
use super::segment::SackBlocks;

/// The receiving half of a connection. Positions are 64-bit stream positions: 0 is SYN.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// Next byte expected.
    next: u64,
    /// Position after FIN, once it is known.
    end: Option<u64>,
    /// Data beyond a gap: ranges in order, apart from each other.
    beyond: Vec<(u64, u64)>,
    /// A position in each of the ranges that changed last, most recent first (RFC 2018, section 4).
    recent: [u64; SackBlocks::MAX],
    /// Bytes that the application has taken.
    consumed: u64,
    /// Right edge of the window that was offered last.
    offered: u64,
    /// Whether the application takes everything at once.
    eager: bool,
    ack_now: bool,
    unacknowledged: u32,
    quick_left: u32,
    ack_at: Instant,
    duplicates: u64,
}

impl Receiver {
    /// A receiver that expects SYN at position 0.
    #[must_use]
    pub fn new(params: &StackParams) -> Self {
        Self {
            next: 0,
            end: None,
            beyond: Vec::new(),
            recent: [u64::MAX; SackBlocks::MAX],
            consumed: 1,
            offered: 0,
            eager: true,
            ack_now: false,
            unacknowledged: 0,
            quick_left: params.quick_ack,
            ack_at: Instant::NEVER,
            duplicates: 0,
        }
    }

    /// Takes a segment that covers `start..end` of the stream. Returns whether data or FIN moved
    /// the cumulative acknowledgement forward.
    pub fn handle_data(
        &mut self,
        now: Instant,
        start: u64,
        end: u64,
        fin: bool,
        params: &StackParams,
    ) -> bool {
        if fin {
            self.end = Some(end);
        }
        if end <= self.next {
            // RFC 9293, 3.10.7.4: an old segment is answered at once with an acknowledgement.
            self.duplicates += 1;
            self.ack_now = true;
            return false;
        }
        if start > self.next {
            // RFC 5681, section 4.2: out of order data is acknowledged at once.
            self.insert(start, end);
            self.ack_now = true;
            return false;
        }
        self.next = end;
        let filled = !self.beyond.is_empty();
        if filled {
            self.absorb();
        }
        if self.eager {
            self.consumed = self.next;
        }
        // RFC 5681, section 4.2: a segment that fills all or part of a gap is acknowledged at once.
        self.schedule_ack(now, filled || fin, params);
        true
    }

    /// Notes SYN at position 0.
    pub(crate) fn handle_syn(&mut self) {
        self.next = 1;
        self.consumed = 1;
    }

    /// The application takes data only when it says so ([`Self::consume`]).
    pub fn set_lazy(&mut self) {
        self.eager = false;
    }

    /// The application takes `bytes`. Returns whether the window has opened so far that the other
    /// end is told.
    pub fn consume(&mut self, bytes: u64, params: &StackParams) -> bool {
        self.consumed = (self.consumed + bytes).min(self.next);
        let told = self.edge(params) > self.offered;
        self.ack_now |= told;
        told
    }

    /// Next byte expected.
    #[inline]
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }
    /// Payload bytes received in order, without SYN and FIN.
    #[inline]
    #[must_use]
    pub fn delivered(&self) -> u64 {
        let fin = u64::from(self.finished());
        self.next.saturating_sub(1 + fin)
    }
    /// Whether FIN and everything before it has arrived.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }
    /// Segments that brought nothing new.
    #[must_use]
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// The window to offer, in bytes.
    #[inline]
    #[must_use]
    pub fn window(&self, params: &StackParams) -> u32 {
        self.edge(params).saturating_sub(self.next) as u32
    }

    /// Right edge of the window to offer. It moves in steps of at least a segment or half the
    /// buffer (RFC 9293, 3.8.6.2.2), and never to the left.
    #[inline]
    fn edge(&self, params: &StackParams) -> u64 {
        let edge = self.consumed + u64::from(params.receive_window);
        let step = u64::from(params.mss.min(params.receive_window / 2));
        if edge >= self.offered + step { edge } else { self.offered }
    }

    /// Whether an acknowledgement must go now.
    #[inline]
    #[must_use]
    pub fn ack_due(&self, now: Instant) -> bool {
        self.ack_now || self.ack_at <= now
    }
    /// When a delayed acknowledgement is due.
    #[inline]
    #[must_use]
    pub const fn ack_deadline(&self) -> Instant {
        self.ack_at
    }
    /// Asks for an acknowledgement at once.
    pub fn request_ack(&mut self) {
        self.ack_now = true;
    }
    /// A segment with an acknowledgement has been sent.
    #[inline]
    pub fn on_ack_sent(&mut self, params: &StackParams) {
        self.offered = self.edge(params);
        self.ack_now = false;
        self.unacknowledged = 0;
        self.ack_at = Instant::NEVER;
    }

    /// Ranges for the SACK option as numbers on the wire, most recent first.
    #[inline]
    #[must_use]
    pub fn sack_blocks(&self, isn: u32, max: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if !self.beyond.is_empty() {
            self.fill_blocks(&mut blocks, isn, max);
        }
        blocks
    }

    #[cold]
    fn fill_blocks(&self, blocks: &mut SackBlocks, isn: u32, max: usize) {
        for &position in &self.recent {
            let index = self.beyond.partition_point(|range| range.1 <= position);
            let Some(&(left, right)) = self.beyond.get(index) else { continue };
            let wire = (isn.wrapping_add(left as u32), isn.wrapping_add(right as u32));
            let known = position < left || blocks.as_slice().contains(&wire);
            if !known && blocks.as_slice().len() < max {
                blocks.push(wire.0, wire.1);
            }
        }
    }

    fn schedule_ack(&mut self, now: Instant, at_once: bool, params: &StackParams) {
        self.unacknowledged += 1;
        let quick = self.quick_left > 0;
        self.quick_left = self.quick_left.saturating_sub(1);
        if at_once
            || quick
            || self.unacknowledged >= params.ack_every
            || params.delayed_ack.is_zero()
        {
            self.ack_now = true;
        } else if self.ack_at == Instant::NEVER {
            self.ack_at = now + params.delayed_ack;
        }
    }

    /// Puts a range beyond a gap into its place and joins it with its neighbours.
    fn insert(&mut self, start: u64, end: u64) {
        let first = self.beyond.partition_point(|range| range.1 < start);
        let last = self.beyond.partition_point(|range| range.0 <= end);
        let (mut left, mut right) = (start, end);
        if first < last {
            left = left.min(self.beyond[first].0);
            right = right.max(self.beyond[last - 1].1);
            if (left, right) == self.beyond[first] && last == first + 1 {
                self.duplicates += 1;
            }
        }
        self.beyond.splice(first..last, [(left, right)]);
        self.touch(start);
    }

    /// Remembers that the range with this position changed last.
    fn touch(&mut self, position: u64) {
        let in_same_range = |other: u64| {
            self.beyond.iter().any(|&(left, right)| {
                (left..right).contains(&other) && (left..right).contains(&position)
            })
        };
        let known = self.recent.iter().position(|&other| in_same_range(other));
        let until = known.unwrap_or(SackBlocks::MAX - 1);
        self.recent.copy_within(0..until, 1);
        self.recent[0] = position;
    }

    /// Takes ranges that the cumulative acknowledgement has reached.
    fn absorb(&mut self) {
        let reached = self.beyond.partition_point(|range| range.0 <= self.next);
        for (_, right) in self.beyond.drain(..reached) {
            self.next = self.next.max(right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::scenario::Stack;

    fn receiver() -> (Receiver, StackParams) {
        let params = StackParams::resolve(&Stack::default());
        let mut receiver = Receiver::new(&params);
        receiver.handle_syn();
        (receiver, params)
    }

    fn data(receiver: &mut Receiver, params: &StackParams, start: u64, end: u64) -> bool {
        receiver.handle_data(Instant::ZERO, start, end, false, params)
    }

    #[test]
    fn first_sack_block_holds_the_segment_that_came_last() {
        // RFC 2018, section 4: the first block MUST hold the segment that triggered the ACK.
        let (mut receiver, params) = receiver();
        data(&mut receiver, &params, 101, 201);
        data(&mut receiver, &params, 301, 401);
        data(&mut receiver, &params, 501, 601);
        data(&mut receiver, &params, 201, 211);
        let blocks = receiver.sack_blocks(0, 3);
        assert_eq!(blocks.as_slice(), [(101, 211), (501, 601), (301, 401)]);
    }

    #[test]
    fn ranges_join_and_are_absorbed() {
        let (mut receiver, params) = receiver();
        data(&mut receiver, &params, 101, 201);
        data(&mut receiver, &params, 301, 401);
        data(&mut receiver, &params, 201, 301);
        assert_eq!(receiver.sack_blocks(0, 4).as_slice(), [(101, 401)]);
        assert!(data(&mut receiver, &params, 1, 101));
        assert_eq!((receiver.next(), receiver.delivered()), (401, 400));
        assert!(receiver.sack_blocks(0, 4).is_empty());
    }
}
