//! Timers of RACK-TLP (RFC 8985): the tail loss probe, which makes the other end say what is missing
//! at the end of a flight before the retransmission timer runs out, and the one for reordering.

use gridhaul_scenario::units::{Duration, Instant};

use super::{SendRange, Sender, loss_recovery_context};
use crate::tcp::params::StackParams;

/// RFC 8985, section 7.2: what is added for a single segment, whose acknowledgement may be delayed
/// (`TLP.max_ack_delay`; Linux takes the floor of its timeout for it), and for others, so that a
/// probe does not fall on the acknowledgement (Linux: two ticks). The reordering timer waits as much longer.
pub(in crate::tcp) const TIMEOUT_MIN: Duration = Duration::from_millis(2);

/// What the one timer of a sender stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TimerPurpose {
    /// The retransmission timer or, with nothing outstanding, the persist timer.
    #[default]
    Retransmission,
    /// The RACK reordering timer.
    Reordering,
    /// The timer of a tail loss probe.
    TailLossProbe,
}

/// A tail loss probe.
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
    /// Sets the retransmission timer, or the probe's if that comes first: with an acknowledgement
    /// (`since` is now) or when data is sent (`since` is when the first segment out was).
    pub(super) fn arm(&mut self, now: Instant, since: Instant, params: &StackParams) {
        // Linux (tcp_rearm_rto): what should have run out before now does so a tick later.
        let least = if since < now { now + TIMEOUT_MIN / 2 } else { now };
        self.rto_at = (since + self.rtt.rto(params)).max(least);
        self.timer_purpose = TimerPurpose::Retransmission;
        // Section 7.2: not in recovery, nor while data is out of order.
        if !self.recovery_rules().tail_loss_probe || self.recovery_active || self.una == 0 {
            return;
        }
        let Some(srtt) = self.rtt.srtt() else { return };
        // Section 7.2: PTO = 2 * SRTT, plus the delay of an acknowledgement for a single segment.
        let single = self.next - self.una <= u64::from(params.mss);
        let pto = srtt * 2 + if single { params.rto_min } else { TIMEOUT_MIN };
        let pto_at = self.rto_at.min(now + pto);
        if self.awaits_probe_ack() {
            // Section 7.3: one at a time. Linux finds that out when a second one is due, and counts the
            // timeout from when the first segment was sent (tcp_send_loss_probe, tcp_rearm_rto).
            let first = self.queue.front().map_or(now, |first| first.sent_at);
            self.rto_at = pto_at.max(first + self.rtt.rto(params));
            return;
        }
        self.rto_at = pto_at;
        self.timer_purpose = TimerPurpose::TailLossProbe;
    }

    /// New data was sent: a probe that was planned comes that much later.
    #[inline]
    pub(super) fn postpone_tail_loss_probe(&mut self, now: Instant, params: &StackParams) {
        if self.timer_purpose == TimerPurpose::TailLossProbe
            && let Some(first) = self.queue.front()
        {
            self.arm(now, first.sent_at, params);
        }
    }

    /// Whether a probe is out and unanswered.
    fn awaits_probe_ack(&self) -> bool {
        matches!(self.tail_loss_probe, TailLossProbe::NewData | TailLossProbe::Retransmission)
    }

    /// Sets the timer from when the first segment out was sent.
    pub(super) fn arm_from_first(&mut self, now: Instant, params: &StackParams) {
        let first = self.queue.front().map_or(now, |first| first.sent_at);
        self.arm(now, first, params);
    }

    /// The recovery wants to look again at that time, or no more.
    pub(super) fn set_reordering_timer(
        &mut self,
        now: Instant,
        at: Option<Instant>,
        params: &StackParams,
    ) {
        match at {
            Some(at) => (self.rto_at, self.timer_purpose) = (at, TimerPurpose::Reordering),
            None if self.timer_purpose == TimerPurpose::Reordering => {
                self.arm_from_first(now, params)
            }
            None => {}
        }
    }

    /// A timer other than the retransmission timer has run out.
    #[cold]
    pub(super) fn handle_rack_timer(&mut self, now: Instant, params: &StackParams) {
        let timer_purpose = std::mem::take(&mut self.timer_purpose);
        if timer_purpose == TimerPurpose::TailLossProbe {
            self.tail_loss_probe = TailLossProbe::Due;
            self.rto_at = now + self.rtt.rto(params);
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

    /// Section 7.3: a segment of new data, whatever the congestion window says, or the last one
    /// again.
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
        let len = (self.end() - self.next).min(u64::from(params.mss)) as u32;
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
        self.timed_end = self.next as u32;
        self.rto_at = now + self.rtt.rto(params);
        self.timer_purpose = TimerPurpose::Retransmission;
        Some(range)
    }

    /// Section 7.4: whether a repeated segment that was a probe has repaired a loss, which nothing
    /// else has found: an acknowledgement goes beyond it.
    pub(super) fn probe_repaired_loss(&mut self, ack: u64) -> bool {
        let beyond = (ack as u32).wrapping_sub(self.timed_end).cast_signed();
        if !self.awaits_probe_ack() || beyond < 0 {
            return false;
        }
        let repeat = self.tail_loss_probe == TailLossProbe::Retransmission;
        if !repeat || beyond > 0 {
            self.tail_loss_probe = TailLossProbe::None;
        }
        repeat && beyond > 0 && !self.in_recovery()
    }

    /// Section 7.4.2: an acknowledgement that says nothing new answers a needless probe.
    pub(super) fn end_tail_loss_probe(&mut self) {
        self.tail_loss_probe = TailLossProbe::None;
    }
}
