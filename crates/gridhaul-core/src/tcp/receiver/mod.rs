//! The receiving half: reassembly, delayed and selective acknowledgements, the offered window.

mod confirmation;
mod delayed_ack_timer;
mod reassembly;

use std::ops::Range;

use gridhaul_scenario::units::{Duration, Instant};

use self::delayed_ack_timer::DelayedAckTimer;
use self::reassembly::ReassemblyQueue;
use super::params::StackParams;
use super::segment::{Flags, SackBlocks};

/// The receiving half of a connection. Positions are 64-bit stream positions: 0 is SYN.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// Next byte expected.
    next: u64,
    /// Right edge of the last offered window.
    offered: u64,
    ack_at: Instant,
    /// Data received beyond a gap, or twice: the data for selective acknowledgements.
    out_of_order: Option<Box<ReassemblyQueue>>,
    /// Bytes that the application has not read yet, or has not confirmed.
    unread: u32,
    /// The adaptive delayed-ACK timer of Linux.
    delayed_ack_timer: DelayedAckTimer,
    unacknowledged: u8,
    quick_acks_left: u16,
    application: ReadingApplication,
    /// Data is answered with data ("pingpong mode" of Linux): acknowledgements wait for the answer.
    interactive: bool,
    ack_now: bool,
    /// FIN and everything before it has arrived.
    finished: bool,
    /// Window scale of offered windows where segments are encoded; stored here to use a byte of
    /// padding.
    pub(super) window_shift: u8,
}

/// How the application reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadingApplication {
    /// All data when it arrives.
    ReadsAtOnce,
    /// By [`Receiver::consume`].
    ReadsOnDemand {
        /// Data with PSH is not acknowledged yet.
        pushed: bool,
    },
    /// All data when it arrives. It is acknowledged after [`Receiver::confirm`].
    Confirms,
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
            window_shift: params.window_shift(),
            unread: 0,
            delayed_ack_timer: DelayedAckTimer::default(),
            unacknowledged: 0,
            quick_acks_left: initial_quick_acks(params),
            application: ReadingApplication::ReadsAtOnce,
            interactive: false,
            ack_now: false,
            finished: false,
        }
    }

    /// Handles a segment that covers `start..end` of the stream. Of its flags, FIN and PSH count.
    /// Returns whether data or FIN advanced the cumulative acknowledgement.
    #[inline]
    pub fn handle_data(
        &mut self,
        now: Instant,
        start: u64,
        end: u64,
        flags: Flags,
        params: &StackParams,
    ) -> bool {
        let is_common = start == self.next
            && start < end
            && self.out_of_order.is_none()
            && self.application != ReadingApplication::Confirms
            && !(self.finished || flags.has(Flags::FIN));
        if !is_common {
            return self.handle_data_general(now, start, end, flags, params);
        }
        self.next = end;
        self.note_unread(end - start);
        let is_read = self.note_push(flags, params);
        self.schedule_ack(now, is_read, params);
        true
    }

    /// [`Self::handle_data`] of any segment.
    #[inline(never)]
    fn handle_data_general(
        &mut self,
        now: Instant,
        start: u64,
        end: u64,
        flags: Flags,
        params: &StackParams,
    ) -> bool {
        let fin = flags.has(Flags::FIN);
        if end <= self.next || self.finished {
            self.handle_old(now, start, end, fin, params);
            return false;
        }
        if start > self.next {
            self.handle_out_of_order(start, end, fin, params);
            return false;
        }
        self.handle_in_order(now, start, end, flags, params);
        true
    }

    /// A segment without new data. RFC 9293, 3.10.7.4: it is acknowledged at once. Data after FIN
    /// is ignored: "Ignore the segment text."
    fn handle_old(&mut self, now: Instant, start: u64, end: u64, fin: bool, params: &StackParams) {
        self.finished |= fin;
        if self.is_withheld(end) {
            // The confirmation is followed by an acknowledgement.
            return;
        }
        self.note_duplicate(start..end.min(self.next), params);
        let last = end == self.next && !self.has_gap();
        if params.policy.delays_ack_of_last_duplicate && last && !params.delayed_ack.is_zero() {
            self.delay_ack_of_duplicate(now, params);
            return;
        }
        self.ack_now = true;
        if params.policy.adaptive_delayed_ack {
            self.interactive = false;
            self.enter_quick_ack_mode(params);
            self.use_quick_ack();
        }
    }

    /// A segment beyond a gap. RFC 5681, section 4.2: it is acknowledged at once.
    fn handle_out_of_order(&mut self, start: u64, end: u64, fin: bool, params: &StackParams) {
        let out_of_order = self.out_of_order.get_or_insert_with(ReassemblyQueue::new);
        let duplicate = out_of_order.overlap(start, end);
        out_of_order.insert(start, end, fin);
        self.note_duplicate(duplicate, params);
        self.acknowledge_gap();
        if params.policy.adaptive_delayed_ack {
            self.use_quick_ack();
        }
    }

    /// A segment with the next byte expected.
    fn handle_in_order(
        &mut self,
        now: Instant,
        start: u64,
        end: u64,
        flags: Flags,
        params: &StackParams,
    ) {
        let fin = flags.has(Flags::FIN);
        if start < self.next {
            self.note_duplicate(start..self.next, params);
        }
        let before = self.next;
        self.next = end;
        self.finished |= fin;
        let filled = self.has_gap();
        if fin {
            self.out_of_order = None;
        } else if filled {
            self.absorb();
        }
        assert!(self.next > before, "data in order advances the acknowledgement");
        self.note_unread(self.next - before);
        // RFC 9293, section 3.10.7.4, acknowledges FIN at once. Linux does not, because it expects
        // that the application closes as well, and that this FIN carries the acknowledgement.
        let is_answered = fin && params.policy.adaptive_delayed_ack;
        if is_answered && self.expect_answer_to_fin(now, self.next - before - 1, filled, params) {
            return;
        }
        let is_read = self.note_push(flags, params);
        // RFC 5681, section 4.2: a segment that fills all or part of a gap is acknowledged at once.
        let at_once = filled || is_read || fin && !is_answered;
        self.schedule_ack(now, at_once, params);
    }

    /// FIN has arrived in order, with `payload` bytes. Linux enters pingpong mode (`tcp_fin`),
    /// because an application usually answers FIN by closing as well: its FIN then carries the
    /// acknowledgement, and three segments close the connection. If the application stays open,
    /// the delayed-ACK timer sends it.
    ///
    /// Returns whether this schedules the acknowledgement. It does for FIN alone, which must not
    /// count as one of the segments of which every second one is acknowledged at once. FIN with
    /// data, FIN that fills a gap, and FIN that the application confirms are scheduled like data.
    #[cold]
    fn expect_answer_to_fin(
        &mut self,
        now: Instant,
        payload: u64,
        filled: bool,
        params: &StackParams,
    ) -> bool {
        self.interactive = true;
        let is_bare = payload == 0 && !filled && self.application != ReadingApplication::Confirms;
        if is_bare {
            self.delay_ack(now, params);
        }
        is_bare
    }

    /// `bytes` have arrived, which the application reads or confirms later unless it reads at once.
    #[inline]
    fn note_unread(&mut self, bytes: u64) {
        if self.application != ReadingApplication::ReadsAtOnce {
            let received = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.unread = self.unread.saturating_add(received);
        }
    }

    /// Notes SYN at position 0.
    pub(crate) fn handle_syn(&mut self) {
        self.next = 1;
    }

    /// From now on the application reads data only by [`Self::consume`].
    pub fn read_on_demand(&mut self) {
        self.application = ReadingApplication::ReadsOnDemand { pushed: false };
    }

    /// The application reads `bytes`. Returns whether the window has opened far enough for a window
    /// update.
    pub fn consume(&mut self, bytes: u64, params: &StackParams) -> bool {
        self.unread = u64::from(self.unread).saturating_sub(bytes) as u32;
        let sends_update = self.edge(params) > self.offered;
        let owes_ack = self.application == ReadingApplication::ReadsOnDemand { pushed: true };
        self.ack_now |= sends_update || owes_ack && self.unread == 0 && !self.interactive;
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

    /// The parts of a range of stream positions that have not been received yet.
    pub(crate) fn missing_within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let (mut start, mut missing) = (range.start.max(self.next), Vec::new());
        for &(left, right) in self.out_of_order.iter().flat_map(|queue| &queue.ranges) {
            let gap = start..left.min(range.end);
            missing.extend((!gap.is_empty()).then_some(gap));
            start = start.max(right);
        }
        let rest = start..range.end;
        missing.extend((!rest.is_empty()).then_some(rest));
        missing
    }

    /// The window to offer, in bytes.
    #[inline]
    #[must_use]
    pub fn window(&self, params: &StackParams) -> u32 {
        self.edge(params).saturating_sub(self.next) as u32
    }

    /// The free buffer space, and SYN while it is expected: [`Self::window`] is not larger.
    #[inline]
    pub(crate) const fn window_limit(&self, params: &StackParams) -> u32 {
        params.receive_window.saturating_sub(self.unread).saturating_add((self.next == 0) as u32)
    }

    /// The last offered window, relative to the next byte expected. SYN carries at most 65,535
    /// bytes, because its window is never scaled (RFC 7323, section 2.2).
    #[inline]
    pub(crate) fn offered_by_syn(&self, params: &StackParams) -> u32 {
        let window = self.offered.saturating_sub(self.next) as u32;
        if params.policy.one_way_open { window } else { window.min(u32::from(u16::MAX)) }
    }

    /// Whether a position is within the last offered window, and so within any later one.
    #[inline]
    pub(crate) const fn has_offered(&self, end: u64) -> bool {
        end <= self.offered
    }

    /// Whether data was received beyond a gap.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        self.out_of_order.as_ref().is_some_and(|queue| !queue.ranges.is_empty())
    }

    /// The last offered window in whole units of the window scale, as the peer decodes it (RFC
    /// 7323, section 2.3). It is rounded up, so that its right edge does not move to the left
    /// (section 2.4), or down where the buffer has no space for a whole unit. `acknowledged` is the
    /// position that the segment [acknowledges](Self::acknowledged).
    #[inline(always)]
    pub(crate) fn offer(&mut self, acknowledged: u64, params: &StackParams) -> u32 {
        let window = self.offered.saturating_sub(acknowledged) as u32;
        if self.window_shift == 0 {
            return window;
        }
        let down = window >> self.window_shift << self.window_shift;
        let up = down + (u32::from(down < window) << self.window_shift);
        // Bytes that are acknowledged and still in the buffer.
        let unread = u64::from(self.unread) - (self.next - acknowledged);
        if up > params.receive_window.saturating_sub(unread as u32) {
            // The peer may use what it was offered before; that part is accepted.
            return down;
        }
        self.offered = acknowledged + u64::from(up);
        up
    }

    /// Right edge of the window to offer.
    #[inline]
    fn edge(&self, params: &StackParams) -> u64 {
        // Before SYN, position 1 is where the data will begin.
        self.edge_from(self.next.max(1) - u64::from(self.unread), params)
    }

    /// Right edge of the window to offer if the buffer begins at this position. It moves in steps
    /// of at least a segment or half the buffer (RFC 9293, 3.8.6.2.2), and never to the left.
    #[inline]
    fn edge_from(&self, begin: u64, params: &StackParams) -> u64 {
        let edge = begin + u64::from(params.receive_window);
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
    /// Whether the delayed-ACK timer alone makes an acknowledgement due.
    pub(crate) fn is_delayed_ack_due(&self, now: Instant) -> bool {
        self.ack_at <= now && !self.ack_now
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
        self.offered = self.edge(params);
        self.stop_ack_timer(now);
        match &mut self.application {
            ReadingApplication::ReadsAtOnce => self.unacknowledged = 0,
            ReadingApplication::ReadsOnDemand { pushed } => {
                *pushed = false;
                self.unacknowledged = 0;
            }
            ReadingApplication::Confirms => self.repeat_for_gap(),
        }
    }

    /// [`Self::on_ack_sent`], [`Self::acknowledged`] and [`Self::offer`] of a segment: the position
    /// that it acknowledges, and the window that it offers.
    #[inline(always)]
    pub(crate) fn acknowledge(&mut self, now: Instant, params: &StackParams) -> (u64, u32) {
        let mut begin = self.next.max(1);
        match &mut self.application {
            // Nothing is unread.
            ReadingApplication::ReadsAtOnce => {}
            ReadingApplication::ReadsOnDemand { pushed } => {
                *pushed = false;
                begin -= u64::from(self.unread);
            }
            ReadingApplication::Confirms => {
                let acknowledged = self.acknowledged();
                self.on_ack_sent(now, params);
                return (acknowledged, self.offer(acknowledged, params));
            }
        }
        self.offered = self.edge_from(begin, params);
        self.stop_ack_timer(now);
        self.unacknowledged = 0;
        (self.next, self.offer(self.next, params))
    }

    /// An acknowledgement is sent, which the delayed-ACK timer may have made due.
    #[inline]
    fn stop_ack_timer(&mut self, now: Instant) {
        if self.is_delayed_ack_due(now) {
            self.delayed_ack_timer.on_expired(self.interactive);
            self.interactive = false;
        }
        self.ack_now = false;
        self.ack_at = Instant::NEVER;
    }

    /// A segment with data is sent, before [`Self::on_ack_sent`].
    #[inline]
    pub(crate) fn on_data_sent(&mut self, now: Instant, params: &StackParams) {
        if params.policy.acknowledges_when_read {
            self.interactive |= self.delayed_ack_timer.is_answer(now);
        }
    }

    /// Ranges for the SACK option as sequence numbers: data that has arrived twice since the last
    /// call (RFC 2883, section 4), then data beyond gaps, most recent first.
    #[inline]
    #[must_use]
    pub fn take_sack_blocks(&mut self, isn: u32, max: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let reports_gap = self.reports_gap();
        let Some(out_of_order) = &mut self.out_of_order else { return blocks };
        if let Some(duplicate) = out_of_order.duplicate.take() {
            let wire = |position: u64| isn.wrapping_add(position as u32);
            blocks.push(wire(duplicate.start), wire(duplicate.end));
        }
        if reports_gap {
            out_of_order.fill_blocks(&mut blocks, isn, max);
        }
        if out_of_order.ranges.is_empty() {
            self.out_of_order = None;
        }
        blocks
    }

    /// Whether the next acknowledgement has a SACK option, if the peer permits it.
    #[inline]
    pub(crate) fn has_sack_blocks(&self) -> bool {
        self.out_of_order.is_some()
    }

    /// Notes data that has arrived before.
    #[cold]
    fn note_duplicate(&mut self, data: Range<u64>, params: &StackParams) {
        // Position 0 is SYN.
        if params.policy.reports_duplicates && data.start > 0 && !data.is_empty() {
            let queue = self.out_of_order.get_or_insert_with(ReassemblyQueue::new);
            queue.duplicate = Some(data);
        }
    }

    #[inline(always)]
    fn schedule_ack(&mut self, now: Instant, at_once: bool, params: &StackParams) {
        if matches!(self.application, ReadingApplication::Confirms) {
            self.withhold();
            return;
        }
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        if params.policy.adaptive_delayed_ack && self.delayed_ack_timer.on_data(now) {
            self.enter_quick_ack_mode(params);
        }
        let quick_ack = self.quick_acks_left > 0 && !self.interactive;
        self.use_quick_ack();
        if at_once
            || quick_ack
            || u32::from(self.unacknowledged) >= params.ack_every
            || params.delayed_ack.is_zero()
        {
            self.ack_now = true;
        } else {
            self.delay_ack(now, params);
        }
    }

    /// Starts the delayed-ACK timer, unless it runs.
    #[inline(always)]
    fn delay_ack(&mut self, now: Instant, params: &StackParams) {
        if self.ack_at == Instant::NEVER {
            let wait = if params.policy.adaptive_delayed_ack {
                self.delayed_ack_timer.wait(params.delayed_ack_max)
            } else {
                params.delayed_ack
            };
            self.ack_at = now + wait;
        }
    }

    /// An acknowledgement is one of those that go at once. With Linux, those of data beyond a gap
    /// and of old data are as well (`tcp_dec_quickack_mode`).
    #[inline]
    const fn use_quick_ack(&mut self) {
        self.quick_acks_left = self.quick_acks_left.saturating_sub(1);
    }

    /// Linux acknowledges pushed data when the application has read everything, unless the
    /// connection is interactive (`__tcp_cleanup_rbuf`). Returns whether the application has read
    /// this data already.
    #[inline]
    fn note_push(&mut self, flags: Flags, params: &StackParams) -> bool {
        if !flags.has(Flags::PSH) || !params.policy.acknowledges_when_read {
            return false;
        }
        match &mut self.application {
            ReadingApplication::ReadsAtOnce => !self.interactive,
            ReadingApplication::ReadsOnDemand { pushed } => {
                *pushed = true;
                false
            }
            ReadingApplication::Confirms => false,
        }
    }

    /// The last in-order segment was received again. ns-2's `DelAckSink` delays its acknowledgement
    /// as for new data.
    #[cold]
    fn delay_ack_of_duplicate(&mut self, now: Instant, params: &StackParams) {
        if self.ack_at == Instant::NEVER {
            self.ack_at = now + params.delayed_ack;
            self.unacknowledged += 1;
        } else {
            self.ack_now = true;
        }
    }

    /// Data has arrived with the first congestion mark since the peer's last reduction. Linux
    /// acknowledges the next two segments at once, because the window of the peer may be small
    /// (`__tcp_ecn_check_ce`).
    pub(crate) fn on_first_mark(&mut self, params: &StackParams) {
        if params.policy.adaptive_delayed_ack {
            self.interactive = false;
            self.quick_acks_left = self.quick_acks_left.max(2);
        }
    }

    /// Linux after a pause and after an old segment: the peer may be in slow start and wait for
    /// acknowledgements (`tcp_enter_quickack_mode`).
    fn enter_quick_ack_mode(&mut self, params: &StackParams) {
        self.quick_acks_left = self.quick_acks_left.max(quick_acks(params));
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
        if self.finished {
            (out_of_order.ranges, out_of_order.end) = (Vec::new(), None);
        }
        if out_of_order.ranges.is_empty() && out_of_order.duplicate.is_none() {
            self.out_of_order = None;
        }
    }
}

/// Number of segments at the start of a connection that are acknowledged at once. With Linux, the
/// window grows with the first segments, which adds up to two (`tcp_grow_window`): of a window of
/// 8,000 B, kernel 6.18 acknowledges 4 segments of 1,448 B at once, of 30 kB 12, and of 64 kB 18.
fn initial_quick_acks(params: &StackParams) -> u16 {
    let configured = u16::try_from(params.quick_ack).unwrap_or(u16::MAX);
    if params.policy.adaptive_delayed_ack {
        configured.min(quick_acks(params).saturating_add(2))
    } else {
        configured
    }
}

/// Segments that Linux acknowledges at once when the peer may wait for acknowledgements: as many as
/// half of the window has, at least two and at most 16, which is one less than at the start of a
/// connection (`tcp_incr_quickack`).
fn quick_acks(params: &StackParams) -> u16 {
    let half = match params.receive_window / params.mss.saturating_mul(2).max(1) {
        0 => 2,
        segments => segments,
    };
    u16::try_from(half.min(params.quick_ack.saturating_sub(1))).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
