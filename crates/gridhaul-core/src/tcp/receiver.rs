//! The receiving half: reassembly, delayed and selective acknowledgements, the offered window.

mod delayed_ack_timer;
mod reassembly;

use gridhaul_scenario::units::{Duration, Instant};

use self::delayed_ack_timer::DelayedAckTimer;
use self::reassembly::ReassemblyQueue;
use super::params::StackParams;
use super::segment::SackBlocks;

/// The receiving half of a connection. Positions are 64-bit stream positions: 0 is SYN.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// Next byte expected.
    next: u64,
    /// Right edge of the last offered window.
    offered: u64,
    ack_at: Instant,
    /// Data received beyond a gap.
    out_of_order: Option<Box<ReassemblyQueue>>,
    /// Bytes that the application has not read yet.
    unread: u32,
    /// The adaptive delayed-ACK timer of Linux.
    delayed_ack_timer: DelayedAckTimer,
    unacknowledged: u16,
    quick_acks_left: u16,
    /// Whether the application reads all data at once.
    reads_at_once: bool,
    ack_now: bool,
    /// FIN and everything before it has arrived.
    finished: bool,
    /// Window scale of offered windows where segments are encoded; stored here to use a byte of padding.
    pub(super) window_shift: u8,
}

impl Receiver {
    /// A receiver that expects SYN at position 0.
    #[must_use]
    pub fn new(params: &StackParams) -> Self {
        Self {
            next: 0,
            offered: 0,
            ack_at: Instant::NEVER,
            out_of_order: None,
            window_shift: 0,
            unread: 0,
            delayed_ack_timer: DelayedAckTimer::default(),
            unacknowledged: 0,
            quick_acks_left: initial_quick_acks(params),
            reads_at_once: true,
            ack_now: false,
            finished: false,
        }
    }

    /// Handles a segment that covers `start..end` of the stream. Returns whether data or FIN advanced the
    /// cumulative acknowledgement.
    pub fn handle_data(
        &mut self,
        now: Instant,
        start: u64,
        end: u64,
        fin: bool,
        params: &StackParams,
    ) -> bool {
        if end <= self.next || self.finished {
            // RFC 9293, 3.10.7.4: an old segment is acknowledged at once. Data after FIN is ignored: "Ignore
            // the segment text."
            self.finished |= fin;
            let last = end == self.next && self.out_of_order.is_none();
            if params.policy.delays_ack_of_last_duplicate && last && !params.delayed_ack.is_zero() {
                self.delay_ack_of_duplicate(now, params);
                return false;
            }
            self.ack_now = true;
            if params.policy.adaptive_delayed_ack {
                self.enter_quick_ack_mode(params);
            }
            return false;
        }
        if start > self.next {
            // RFC 5681, section 4.2: out of order data is acknowledged at once.
            self.out_of_order.get_or_insert_with(ReassemblyQueue::new).insert(start, end, fin);
            self.ack_now = true;
            return false;
        }
        let before = self.next;
        self.next = end;
        self.finished |= fin;
        let filled = self.out_of_order.is_some();
        if fin {
            self.out_of_order = None;
        } else if filled {
            self.absorb();
        }
        if !self.reads_at_once {
            let received = u32::try_from(self.next - before).unwrap_or(u32::MAX);
            self.unread = self.unread.saturating_add(received);
        }
        // RFC 5681, section 4.2: a segment that fills all or part of a gap is acknowledged at once.
        self.schedule_ack(now, filled || fin, params);
        true
    }

    /// Notes SYN at position 0.
    pub(crate) fn handle_syn(&mut self) {
        self.next = 1;
    }

    /// From now on the application reads data only by [`Self::consume`].
    pub fn read_on_demand(&mut self) {
        self.reads_at_once = false;
    }

    /// The application reads `bytes`. Returns whether the window has opened far enough for a window update.
    pub fn consume(&mut self, bytes: u64, params: &StackParams) -> bool {
        self.unread = u64::from(self.unread).saturating_sub(bytes) as u32;
        let sends_update = self.edge(params) > self.offered;
        self.ack_now |= sends_update;
        sends_update
    }

    /// Like [`Self::consume`], but without a separate window update.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.unread = u64::from(self.unread).saturating_sub(bytes) as u32;
    }

    /// Payload bytes beyond gaps.
    #[inline]
    pub(crate) fn out_of_order_bytes(&self) -> u64 {
        self.out_of_order.as_ref().map_or(0, |out_of_order| out_of_order.payload())
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
    pub const fn delivered(&self) -> u64 {
        self.next.saturating_sub(1 + self.finished as u64)
    }
    /// Whether FIN and everything before it has arrived.
    #[inline]
    #[must_use]
    pub const fn finished(&self) -> bool {
        self.finished
    }

    /// The window to offer, in bytes.
    #[inline]
    #[must_use]
    pub fn window(&self, params: &StackParams) -> u32 {
        self.edge(params).saturating_sub(self.next) as u32
    }

    /// The last offered window, relative to the next byte expected.
    #[inline]
    pub(crate) const fn offered_window(&self) -> u32 {
        self.offered.saturating_sub(self.next) as u32
    }

    /// Whether a position is within the last offered window, and so within any later one.
    #[inline]
    pub(crate) const fn has_offered(&self, end: u64) -> bool {
        end <= self.offered
    }

    /// Whether data was received beyond a gap.
    #[inline]
    pub(crate) const fn has_gap(&self) -> bool {
        self.out_of_order.is_some()
    }

    /// Rounds the offered window down to whole units of the window scale: the value that the peer decodes
    /// (RFC 7323, section 2.3).
    #[inline]
    pub(crate) fn round_offer(&mut self) {
        if self.window_shift > 0 {
            let window = self.offered.saturating_sub(self.next);
            self.offered = self.next + (window >> self.window_shift << self.window_shift);
        }
    }

    /// Right edge of the window to offer. It moves in steps of at least a segment or half the
    /// buffer (RFC 9293, 3.8.6.2.2), and never to the left.
    #[inline]
    fn edge(&self, params: &StackParams) -> u64 {
        // Before SYN, position 1 is where the data will begin.
        let taken = self.next.max(1) - u64::from(self.unread);
        let edge = taken + u64::from(params.receive_window);
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
    /// Requests an immediate acknowledgement.
    pub fn request_ack(&mut self) {
        self.ack_now = true;
    }
    /// Notes the round trip of SYN and SYN-ACK, where it was measured.
    pub(crate) fn note_handshake_rtt(&mut self, rtt: Duration) {
        self.delayed_ack_timer.note_handshake_rtt(rtt);
    }
    /// A segment with an acknowledgement has been sent.
    #[inline]
    pub fn on_ack_sent(&mut self, now: Instant, params: &StackParams) {
        if self.ack_at <= now && !self.ack_now {
            self.delayed_ack_timer.on_expired();
        }
        self.offered = self.edge(params);
        self.ack_now = false;
        self.unacknowledged = 0;
        self.ack_at = Instant::NEVER;
    }

    /// Ranges for the SACK option as sequence numbers, most recent first.
    #[inline]
    #[must_use]
    pub fn sack_blocks(&self, isn: u32, max: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some(out_of_order) = &self.out_of_order {
            out_of_order.fill_blocks(&mut blocks, isn, max);
        }
        blocks
    }

    fn schedule_ack(&mut self, now: Instant, at_once: bool, params: &StackParams) {
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        if params.policy.adaptive_delayed_ack && self.delayed_ack_timer.on_data(now) {
            self.enter_quick_ack_mode(params);
        }
        let initial_quick_acks = self.quick_acks_left > 0;
        self.quick_acks_left = self.quick_acks_left.saturating_sub(1);
        if at_once
            || initial_quick_acks
            || u32::from(self.unacknowledged) >= params.ack_every
            || params.delayed_ack.is_zero()
        {
            self.ack_now = true;
        } else if self.ack_at == Instant::NEVER {
            let wait = if params.policy.adaptive_delayed_ack {
                self.delayed_ack_timer.wait(params.delayed_ack_max)
            } else {
                params.delayed_ack
            };
            self.ack_at = now + wait;
        }
    }

    /// The last in-order segment was received again. ns-2's `DelAckSink` delays its acknowledgement as for
    /// new data.
    #[cold]
    fn delay_ack_of_duplicate(&mut self, now: Instant, params: &StackParams) {
        if self.ack_at == Instant::NEVER {
            self.ack_at = now + params.delayed_ack;
            self.unacknowledged += 1;
        } else {
            self.ack_now = true;
        }
    }

    /// Linux after a pause and after an old segment: the peer may be in slow start and wait for
    /// acknowledgements (`tcp_enter_quickack_mode`). The number is 16, one less than at the start of a
    /// connection.
    fn enter_quick_ack_mode(&mut self, params: &StackParams) {
        self.quick_acks_left =
            self.quick_acks_left.max(initial_quick_acks(params).saturating_sub(1));
    }

    /// Advances the cumulative acknowledgement over ranges that it has reached.
    fn absorb(&mut self) {
        let Some(out_of_order) = &mut self.out_of_order else { return };
        self.next = out_of_order.absorb(self.next);
        if let Some(end) = out_of_order.end
            && self.next >= end
        {
            self.next = end;
            self.finished = true;
        }
        if out_of_order.ranges.is_empty() || self.finished {
            self.out_of_order = None;
        }
    }
}

/// Number of segments that are acknowledged at once.
fn initial_quick_acks(params: &StackParams) -> u16 {
    u16::try_from(params.quick_ack).unwrap_or(u16::MAX)
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
    fn the_first_sack_block_contains_the_segment_received_last() {
        // RFC 2018, section 4: the first block MUST contain the segment that triggered the ACK.
        let (mut receiver, params) = receiver();
        data(&mut receiver, &params, 101, 201);
        data(&mut receiver, &params, 301, 401);
        data(&mut receiver, &params, 501, 601);
        data(&mut receiver, &params, 201, 211);
        let blocks = receiver.sack_blocks(0, 3);
        assert_eq!(blocks.as_slice(), [(101, 211), (501, 601), (301, 401)]);
    }

    #[test]
    fn an_updated_range_displaces_no_other_sack_block() {
        // RFC 2018, section 4: the blocks that were reported most recently are repeated.
        let (mut receiver, params) = receiver();
        for start in [101, 301, 501, 701] {
            data(&mut receiver, &params, start, start + 100);
        }
        data(&mut receiver, &params, 601, 611);
        let blocks = receiver.sack_blocks(0, 4);
        assert_eq!(blocks.as_slice(), [(501, 611), (701, 801), (301, 401), (101, 201)]);
    }

    #[test]
    fn a_buffer_below_one_segment_is_offered_in_halves() {
        // RFC 9293, 3.8.6.2.2: min(Fr * RCV.BUFF, Eff.snd.MSS), with Fr of a half.
        let (mut receiver, params) = receiver();
        let params = StackParams { mss: 1_000, receive_window: 600, ..params };
        receiver.read_on_demand();
        receiver.on_ack_sent(Instant::ZERO, &params);
        data(&mut receiver, &params, 1, 601);
        assert_eq!((receiver.window(&params), receiver.consume(299, &params)), (0, false));
        assert!(receiver.consume(1, &params));
        assert_eq!(receiver.window(&params), 300);
    }

    #[test]
    fn data_after_fin_is_ignored() {
        let (mut receiver, params) = receiver();
        data(&mut receiver, &params, 301, 401);
        receiver.handle_data(Instant::ZERO, 101, 201, true, &params);
        data(&mut receiver, &params, 201, 301);
        data(&mut receiver, &params, 1, 101);
        data(&mut receiver, &params, 401, 501);
        // FIN occupies the last position.
        assert!(receiver.finished());
        assert_eq!((receiver.next(), receiver.delivered()), (201, 199));
        assert!(receiver.sack_blocks(0, 4).is_empty());
    }

    #[test]
    fn adjacent_ranges_merge_and_are_delivered_in_order() {
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
