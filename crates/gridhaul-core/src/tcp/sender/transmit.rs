//! Selection of the data to send: lost segments first, then new data, as far as the windows allow.

use gridhaul_scenario::units::Instant;

use super::rack_timers::TailLossProbe;
use super::{Flag, SendRange, Sender};
use crate::coverage_mark::mark;
use crate::tcp::params::StackParams;
use crate::tcp::segment::FAST_OPEN_COOKIE;

impl Sender {
    /// The range to send now, if any: `None` until the state changes.
    #[inline]
    pub(crate) fn poll_range(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        if self.tail_loss_probe == TailLossProbe::Due {
            self.flags.set(Flag::WindowFilled, false);
            return self.send_tail_loss_probe(now, params);
        }
        if self.may_send_common_segment(params) {
            return Some(self.send_common_segment(now, params));
        }
        self.complete_restart(now, params);
        if self.queue.lost_bytes() == 0 && (self.next >= self.end() || self.is_full(now, params)) {
            return None;
        }
        self.poll_general(now, params)
    }

    /// Whether [`Self::poll_range`] would return nothing because all written data is sent and none
    /// is lost. Its effects then have taken place: the timer that an acknowledgement has restarted
    /// is set. Otherwise nothing has changed.
    #[inline]
    pub(crate) fn ends_event_when_all_sent(&mut self, now: Instant, params: &StackParams) -> bool {
        let is_all_sent = self.next >= self.end()
            && self.queue.lost_bytes() == 0
            && self.tail_loss_probe != TailLossProbe::Due
            && !self.flags.has(Flag::Closing);
        if is_all_sent {
            self.complete_restart(now, params);
        }
        is_all_sent
    }

    /// Whether polls between two events have no effect but that of the first one, whatever time has
    /// passed: neither pacing nor the validation of the congestion window depends on it.
    #[inline]
    pub(crate) fn ignores_further_polls(&self) -> bool {
        self.flags.has(Flag::CommonPath) && self.optional.cwnd_validation().is_none()
    }

    /// Sends SYN.
    pub(crate) fn send_syn(&mut self, now: Instant, params: &StackParams) {
        if self.next == 0 {
            self.note_sent(now, SendRange { start: 0, len: 1 }, params);
        }
    }

    /// Sends what has been written together with SYN, as far as it fits after the cookie (RFC
    /// 7413, section 4.2.2). Returns the number of bytes.
    #[cold]
    pub(crate) fn send_with_syn(&mut self, now: Instant, params: &StackParams) -> u32 {
        let payload_max = params.mss.saturating_sub(FAST_OPEN_COOKIE as u32);
        let len = (self.written - 1).min(u64::from(payload_max)) as u32;
        if len > 0 {
            self.note_sent(now, SendRange { start: 1, len }, params);
        }
        len
    }

    /// SYN, if it is to be retransmitted. Data that was sent with it waits for the handshake, and
    /// none waits for pacing.
    #[cold]
    pub(crate) fn poll_syn(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        let is_with_data = self.una == 0 && self.next > 1;
        if is_with_data && !self.queue.front().is_some_and(|syn| syn.lost) {
            if self.flags.has(Flag::Paced) {
                self.pace_until(Instant::ZERO);
            }
            return None;
        }
        self.poll_range(now, params).filter(|range| range.start == 0)
    }

    /// Whether the congestion window blocks a full segment of new data and no other condition has
    /// to be checked: the usual result of a poll of a sender that always has data and has no lost
    /// segments.
    #[inline]
    fn is_full(&mut self, now: Instant, params: &StackParams) -> bool {
        let (out, mss) = (self.next - self.una, u64::from(params.mss));
        let full = out > 0
            && out + mss > u64::from(self.window)
            && self.is_limited_by_outstanding_data()
            && self.queue.sacked_bytes() == 0
            && self.has_full_segment(params);
        if full {
            self.note_cwnd_usage(now, true, params);
        }
        full
    }

    /// Whether the congestion window limits the outstanding data, without pacing or an estimate of
    /// the loss recovery. Lost and sacked segments are not considered.
    #[inline]
    fn is_limited_by_outstanding_data(&self) -> bool {
        (!self.recovery_active || self.counts_duplicates_only()) && !self.flags.has(Flag::Paced)
    }

    #[inline(never)]
    fn poll_general(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        self.flags.set(Flag::WindowFilled, false);
        if self.queue.lost_bytes() > 0 {
            let range = if self.recovery.sends_new_data_first() {
                self.new_data_first(now, params)
            } else {
                self.retransmission(now, params)
            };
            if range.is_some() {
                return range;
            }
        }
        let mut range = self.new_data(now, params);
        if range.is_none() && self.recovery_active && self.fill_unproven_hole(params) {
            range = self.retransmission(now, params);
        }
        if self.flags.has(Flag::Paced) && range.is_none() && self.paced_until() <= now {
            // No data waits for pacing any more.
            self.pace_until(Instant::ZERO);
        }
        range
    }

    /// The next lost segment, if the window allows it.
    fn retransmission(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        let in_flight = self.in_flight();
        let (index, sent) = self.queue.next_lost()?;
        if !self.force_retransmit {
            let needed = in_flight + u64::from(sent.len.min(params.mss));
            let full = needed > u64::from(self.window) + self.fin_in_flight() && in_flight > 0;
            // A lost segment that waits for the congestion window counts as use of it, like new
            // data.
            self.window_limited |= full;
            if full
                || self.recovery_active && !self.recovery.may_send()
                || self.is_delayed_by_pacing(now)
            {
                return None;
            }
        }
        let sent = self.queue.segment_mut(index)?;
        sent.lost = false;
        sent.transmits = sent.transmits.saturating_add(1);
        sent.sent_at = now;
        if let Some(rate) = self.optional.rate_mut() {
            rate.on_retransmitted_at(now, index, in_flight == 0);
        }
        let range = SendRange { start: sent.start, len: sent.len };
        self.queue.on_retransmitted(range.len);
        self.recovery.on_retransmitted();
        if self.force_retransmit {
            // ns-2 does not count the first retransmission of a recovery; see
            // `recovery/ns2_sack1.rs`.
            self.force_retransmit = false;
        } else {
            self.recovery.on_sent(range.len);
        }
        self.stats.retransmissions += u32::from(self.carries_data(range));
        if index == 0 && self.recovery_rules().first_retransmission_restarts_timer {
            // The first outstanding segment has been retransmitted, and its timer restarts.
            self.arm(now, now, params);
        }
        self.after_sending(now, range, params);
        Some(range)
    }

    /// RFC 5682, section 3.1, step 2b: new data, as much as the window allows; lost segments follow
    /// with the next acknowledgement, or now if there is no new data.
    #[cold]
    fn new_data_first(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        let range = self.new_data(now, params);
        if range.is_none() && self.recovery.resumes_retransmission(self.next) {
            return self.retransmission(now, params);
        }
        range
    }

    #[inline(always)]
    fn new_data(&mut self, now: Instant, params: &StackParams) -> Option<SendRange> {
        let end = self.end();
        if self.next >= end {
            return None;
        }
        let free = self.edge().saturating_sub(self.next);
        let mut len = self.next_len(free, params);
        if u64::from(len) > free {
            len = self.len_in_limited_window(now, free, params)?;
        }
        if self.una == self.next {
            self.restart_after_idle(now, params);
        } else if len < params.mss && !self.closed && self.nagle_delays(params) {
            return None;
        }
        let in_flight = self.in_flight();
        let needed = in_flight + u64::from(len.min(params.mss));
        if needed > u64::from(self.window) && in_flight > 0 {
            self.note_cwnd_usage(now, true, params);
            return None;
        }
        if self.duplicates > 0 && self.sack && !params.limited_transmit && !self.in_recovery() {
            // Without limited transmit, duplicate acknowledgements do not release new data before
            // recovery.
            return None;
        }
        if self.recovery_active && !self.recovery.may_send() {
            return None;
        }
        if self.is_delayed_by_pacing(now) {
            return None;
        }
        let full = in_flight + 2 * u64::from(params.mss) > u64::from(self.window);
        let range = SendRange { start: self.next, len };
        self.note_sent(now, range, params);
        self.note_cwnd_usage(now, full, params);
        let limited =
            full && self.is_limited_by_outstanding_data() && self.has_full_segment(params);
        let filled = (limited || self.next >= end) && self.queue.has_no_sacked_or_lost();
        self.flags.set(Flag::WindowFilled, filled);
        if self.next >= end && self.optional.rate().is_some() {
            let in_flight = self.in_flight();
            if let Some(rate) = self.optional.rate_mut() {
                rate.on_app_limited(in_flight);
            }
        }
        Some(range)
    }

    /// Length of the next segment of new data in sequence space, if `free` of it may be used. The
    /// MSS limits the payload only (RFC 9293, 3.7.1), so that FIN fits into a full last segment, as
    /// in Linux (`tcp_send_fin`).
    #[inline(always)]
    pub(super) fn next_len(&self, free: u64, params: &StackParams) -> u32 {
        let left = self.end() - self.next;
        let with_fin = u64::from(params.mss) + 1;
        if self.closed && left == with_fin && with_fin <= free {
            return params.mss + 1;
        }
        left.min(u64::from(params.mss)) as u32
    }

    /// The sequence number of FIN, if it is sent: the congestion window limits payload, and FIN has
    /// none.
    #[inline]
    fn fin_in_flight(&self) -> u64 {
        u64::from(self.closed && self.next > self.written)
    }

    /// Whether Nagle's algorithm delays a small segment while data is outstanding (RFC 9293,
    /// 3.7.4). In Linux only earlier small segments delay it (`tcp_minshall_check`). SYN, which is
    /// outstanding at a server with Fast Open, is no data.
    pub(super) fn nagle_delays(&self, params: &StackParams) -> bool {
        params.nagle
            && self.una > 0
            && (!params.policy.nagle_by_minshall || self.queue.has_shorter_than(params.mss))
    }

    /// RFC 6675, `NextSeg`, rule 3: if no segment counts as lost and the peer's window blocks new
    /// data, a hole that is not yet marked lost is next. Returns whether there is one: section 5,
    /// step C, sends it with the same acknowledgement, as far as the pipe allows.
    #[cold]
    fn fill_unproven_hole(&mut self, params: &StackParams) -> bool {
        let is_permitted = self.sack && self.recovery_rules().fills_unproven_holes;
        if !is_permitted || !self.in_recovery() || self.queue.lost_bytes() > 0 {
            return false;
        }
        let free = self.edge().saturating_sub(self.next);
        if self.next >= self.end() || u64::from(self.next_len(free, params)) <= free {
            return false;
        }
        mark!(sack_fills_unproven_holes);
        let boundary = self.queue.highest_sacked();
        self.queue.mark_lost_until(boundary, self.last_sent) > 0
    }

    /// The peer's window is too small for the next segment. Returns the number of bytes that may be
    /// sent regardless; with no data outstanding, the persist timer decides.
    #[cold]
    fn len_in_limited_window(
        &mut self,
        now: Instant,
        free: u64,
        params: &StackParams,
    ) -> Option<u32> {
        if self.una < self.next {
            return None;
        }
        // RFC 9293, 3.8.6.2.1 (3): a segment is sent if half of the largest window so far is free.
        let enough = free > 0 && free >= u64::from(self.peer_window_max / 2);
        if enough || self.window_probe.due && free > 0 {
            self.window_probe.due = false;
            return Some(free as u32);
        }
        if self.rto_at == Instant::NEVER {
            self.set_timer(now, now + self.persist_interval(params), params);
        }
        None
    }

    /// A probe of a closed window, if one is due: a byte beyond the window, which does not count as
    /// sent until it is acknowledged.
    #[inline]
    pub(crate) fn poll_window_probe(&mut self) -> Option<SendRange> {
        if !self.window_probe.due || self.una < self.next || self.next >= self.end() {
            return None;
        }
        self.window_probe.due = false;
        self.window_probe.outstanding = true;
        let range = SendRange { start: self.next, len: 1 };
        self.stats.segments += u64::from(self.carries_data(range));
        Some(range)
    }

    #[inline(always)]
    pub(super) fn note_sent(&mut self, now: Instant, range: SendRange, params: &StackParams) {
        let nothing_out = self.una == self.next;
        if nothing_out {
            self.stop_persist_timer(params);
        }
        if let Some(rate) = self.optional.rate_mut() {
            rate.on_sent(now, nothing_out);
        }
        self.queue.push_sent(range.start, range.len, now);
        self.next += u64::from(range.len);
        self.start_timing(now, params);
        if self.recovery_active {
            self.recovery.on_sent(range.len);
            if self.duplicates > 0 && !self.recovery.in_recovery() {
                self.limited = self.limited.saturating_add(range.len);
            }
        }
        let in_flight = self.in_flight();
        self.congestion.on_sent(now, self.next, in_flight);
        self.after_sending(now, range, params);
        self.postpone_tail_loss_probe(now, params);
    }

    /// A timer that still runs when data is sent and none is outstanding is the persist timer of a
    /// window that has opened since.
    #[inline]
    pub(super) const fn stop_persist_timer(&mut self, params: &StackParams) {
        if !params.policy.timer_runs_while_idle {
            self.rto_at = Instant::NEVER;
        }
    }

    /// Starts to time the segment just sent, where one segment at a time is timed and none is in
    /// progress.
    #[inline]
    pub(super) fn start_timing(&mut self, now: Instant, params: &StackParams) {
        if !params.time_every_segment && self.timed_at == Instant::NEVER {
            (self.timed_end, self.timed_at) = (self.next as u32, now);
        }
    }

    /// Whether the segment of this range carries data: SYN and FIN alone do not.
    #[inline]
    pub(super) const fn carries_data(&self, range: SendRange) -> bool {
        let first = if range.start == 0 { 1 } else { range.start };
        let end = range.start + range.len as u64;
        let last = if end < self.written { end } else { self.written };
        first < last
    }

    #[inline]
    pub(super) fn after_sending(&mut self, now: Instant, range: SendRange, params: &StackParams) {
        self.stats.segments += u64::from(self.carries_data(range));
        self.last_sent = now;
        if self.rto_at == Instant::NEVER {
            // RFC 6298, 5.1.
            self.arm(now, now, params);
        }
        self.pace(now, range, params);
    }
}
