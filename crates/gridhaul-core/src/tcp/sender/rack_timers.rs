//! Timers of RACK-TLP (RFC 8985): the tail loss probe, which elicits an acknowledgement at the end
//! of a flight before the retransmission timer expires, and the reordering timer.

use gridhaul_scenario::units::Instant;

use super::{SendRange, Sender, loss_recovery_context};
use crate::coverage_mark::mark;
use crate::tcp::params::StackParams;
use crate::tcp::recovery::TIMEOUT_MIN;

/// Purpose of the sender's only timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TimerPurpose {
    /// The retransmission timer or, with nothing outstanding, the persist timer.
    #[default]
    Retransmission,
    /// The RACK reordering timer.
    Reordering,
    /// The timer of a tail loss probe.
    TailLossProbe,
    /// An acknowledgement has restarted the timer, and the next poll sets it: a segment that is
    /// sent with it would set it again. Due at once, so that nothing waits for the timer before.
    Restarting,
}

/// State of the tail loss probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TailLossProbe {
    #[default]
    None,
    /// A probe is to be sent.
    Due,
    /// A probe with new data is unacknowledged.
    NewData,
    /// A retransmission of the last segment is unacknowledged.
    Retransmission,
}

impl Sender {
    /// Sets the retransmission timer, or the probe timer if it expires first: with an
    /// acknowledgement (`since` is now) or when data is sent (`since` is the send time of the first
    /// outstanding segment).
    pub(super) fn arm(&mut self, now: Instant, since: Instant, params: &StackParams) {
        // Linux (tcp_rearm_rto): a timer that should have expired before now expires one tick
        // later.
        let earliest = if since < now { now + TIMEOUT_MIN / 2 } else { now };
        let rto_at = (since + self.rtt.rto(params)).max(earliest);
        self.timer_purpose = TimerPurpose::Retransmission;
        let at = self.probe_or_retransmit_at(now, rto_at, params);
        self.set_timer(now, at, params);
    }

    /// Restarts the timer with an acknowledgement that leaves data outstanding (RFC 6298, 5.3).
    #[inline]
    pub(super) fn restart_timer(&mut self, now: Instant, params: &StackParams) {
        // A congestion mark that arrives before the next poll would change the kind of the timer.
        let is_postponed = self.recovery_rules().tail_loss_probe && !params.ecn;
        if is_postponed {
            (self.rto_at, self.timer_purpose) = (now, TimerPurpose::Restarting);
        } else {
            self.arm(now, now, params);
        }
    }

    /// Sets the timer that [`Self::restart_timer`] has left to the next event.
    #[inline]
    pub(super) fn complete_restart(&mut self, now: Instant, params: &StackParams) {
        if self.timer_purpose == TimerPurpose::Restarting {
            self.arm(now, now, params);
        }
    }

    /// The time of the next tail loss probe, for which the timer then is, or else that of the
    /// retransmission.
    #[inline]
    fn probe_or_retransmit_at(
        &mut self,
        now: Instant,
        rto_at: Instant,
        params: &StackParams,
    ) -> Instant {
        // Section 7.2: neither in recovery nor while segments are sacked.
        if !self.recovery_rules().tail_loss_probe || self.recovery_active || self.una == 0 {
            return rto_at;
        }
        let Some(srtt) = self.rtt.srtt() else { return rto_at };
        // Section 7.2: PTO = 2 * SRTT, plus the delayed-ACK time for a single segment.
        let single = self.next - self.una <= u64::from(params.mss);
        let pto = srtt + srtt + if single { params.rto_min } else { TIMEOUT_MIN };
        let pto_at = rto_at.min(now + pto);
        if self.awaits_probe_ack() {
            // Section 7.3: one probe at a time. Linux checks that when a second probe is due, and
            // then counts the timeout from the send time of the first segment (tcp_send_loss_probe,
            // tcp_rearm_rto).
            let first = self.queue.front().map_or(now, |first| first.sent_at);
            return pto_at.max(first + self.rtt.rto(params));
        }
        self.timer_purpose = TimerPurpose::TailLossProbe;
        pto_at
    }

    /// New data was sent: postpones a scheduled probe.
    #[inline]
    pub(super) fn postpone_tail_loss_probe(&mut self, now: Instant, params: &StackParams) {
        let has_probe_timer =
            matches!(self.timer_purpose, TimerPurpose::TailLossProbe | TimerPurpose::Restarting);
        if has_probe_timer && let Some(first) = self.queue.front() {
            self.arm(now, first.sent_at, params);
        }
    }

    /// Whether a probe is unacknowledged.
    fn awaits_probe_ack(&self) -> bool {
        matches!(self.tail_loss_probe, TailLossProbe::NewData | TailLossProbe::Retransmission)
    }

    /// Sets the timer relative to the send time of the first outstanding segment.
    pub(super) fn arm_from_first(&mut self, now: Instant, params: &StackParams) {
        let first = self.queue.front().map_or(now, |first| first.sent_at);
        self.arm(now, first, params);
    }

    /// Sets the reordering timer to `at`, or replaces it by the retransmission timer.
    pub(super) fn set_reordering_timer(
        &mut self,
        now: Instant,
        at: Option<Instant>,
        params: &StackParams,
    ) {
        match at {
            Some(at) => {
                self.timer_purpose = TimerPurpose::Reordering;
                self.set_timer(now, at, params);
            }
            None if self.timer_purpose == TimerPurpose::Reordering => {
                self.arm_from_first(now, params);
            }
            None => {}
        }
    }

    /// Handles an expired timer of RACK-TLP.
    #[cold]
    pub(super) fn handle_rack_timer(&mut self, now: Instant, params: &StackParams) {
        let timer_purpose = std::mem::take(&mut self.timer_purpose);
        if timer_purpose == TimerPurpose::TailLossProbe {
            self.tail_loss_probe = TailLossProbe::Due;
            self.set_timer(now, now + self.rtt.rto(params), params);
            return;
        }
        let lost_before = self.queue.lost_bytes();
        let mut context = loss_recovery_context!(self, now, params);
        let entered = self.recovery.on_reorder_timer(&mut context);
        let requests = context.requests;
        self.force_retransmit = requests.retransmit_now;
        self.note_lost(lost_before);
        self.stats.fast_retransmits += u32::from(entered);
        self.arm_from_first(now, params);
        self.set_reordering_timer(now, requests.reorder_at, params);
        self.refresh_window();
    }

    /// Section 7.3: sends a segment of new data regardless of the congestion window, or retransmits
    /// the last segment.
    #[cold]
    pub(super) fn send_tail_loss_probe(
        &mut self,
        now: Instant,
        params: &StackParams,
    ) -> Option<SendRange> {
        self.tail_loss_probe = TailLossProbe::None;
        if self.queue.is_empty() {
            return None;
        }
        let len = self.next_len(self.edge().saturating_sub(self.next), params);
        let range = if len > 0 && self.next + u64::from(len) <= self.edge() {
            let range = SendRange { start: self.next, len };
            self.note_sent(now, range, params);
            self.tail_loss_probe = TailLossProbe::NewData;
            range
        } else {
            let (index, last) = self.queue.last_mut()?;
            last.transmits = last.transmits.saturating_add(1);
            last.sent_at = now;
            let range = SendRange { start: last.start, len: last.len };
            if let Some(rate) = self.optional.rate_mut() {
                rate.on_retransmitted_at(now, index, false);
            }
            self.stats.retransmissions += u32::from(self.carries_data(range));
            self.after_sending(now, range, params);
            self.tail_loss_probe = TailLossProbe::Retransmission;
            range
        };
        self.set_tlp_end_seq();
        self.set_timer(now, now + self.rtt.rto(params), params);
        self.timer_purpose = TimerPurpose::Retransmission;
        Some(range)
    }

    /// Low half of TLP.end_seq (section 7.2): the position that was sent next at the time of the
    /// probe.
    fn tlp_end_seq(&self) -> u32 {
        self.timed_end
    }

    /// Stores TLP.end_seq in the place of the end of a timed segment: with probes, every segment is
    /// timed, and this place is free.
    fn set_tlp_end_seq(&mut self) {
        self.timed_end = self.next as u32;
    }

    /// Section 7.4: whether a retransmitted tail loss probe has repaired a loss that was not
    /// detected otherwise: an acknowledgement goes beyond it.
    pub(super) fn probe_repaired_loss(&mut self, ack: u64) -> bool {
        let beyond = (ack as u32).wrapping_sub(self.tlp_end_seq()).cast_signed();
        if !self.awaits_probe_ack() || beyond < 0 {
            return false;
        }
        let retransmitted = self.tail_loss_probe == TailLossProbe::Retransmission;
        mark!(tail_loss_probe_repaired_loss if retransmitted && beyond > 0 && !self.in_recovery());
        if !retransmitted || beyond > 0 {
            self.tail_loss_probe = TailLossProbe::None;
        }
        retransmitted && beyond > 0 && !self.in_recovery()
    }

    /// Whether the retransmission of a tail loss probe that is unacknowledged ends here.
    pub(super) fn is_probe_end(&self, position: u64) -> bool {
        self.tail_loss_probe == TailLossProbe::Retransmission
            && position as u32 == self.tlp_end_seq()
    }

    /// Section 7.4.2: an acknowledgement without new information answers a spurious probe.
    pub(super) fn end_tail_loss_probe(&mut self) {
        self.tail_loss_probe = TailLossProbe::None;
    }
}
