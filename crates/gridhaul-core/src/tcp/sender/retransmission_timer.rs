//! The retransmission timer (RFC 6298, section 5) and the persist timer (RFC 9293, 3.8.6.1).

use gridhaul_scenario::scenario::Recovery as Kind;
use gridhaul_scenario::units::{Duration, Instant};

use super::rack_timers::{TailLossProbe, TimerPurpose};
use super::{Sender, loss_recovery_context};
use crate::tcp::event::Loss;
use crate::tcp::params::StackParams;

/// State of the probes of a closed window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowProbe {
    /// Expirations of the persist timer since the window closed.
    pub expired: u8,
    /// A probe is due.
    pub due: bool,
    /// A probe byte beyond the window is unacknowledged; it does not count as sent.
    pub outstanding: bool,
}

impl Sender {
    /// Handles an expired timer.
    pub(crate) fn handle_timeout(&mut self, now: Instant, params: &StackParams) {
        self.complete_restart(now, params);
        if self.rto_at > now {
            return;
        }
        if !self.is_timing_out(now) {
            self.handle_rack_timer(now, params);
            return;
        }
        self.timer_purpose = TimerPurpose::Retransmission;
        if self.queue.is_empty() {
            self.window_probe.expired = (self.window_probe.expired + 1).min(16);
            self.window_probe.due = true;
            self.set_timer(now, now + self.persist_interval(params), params);
            return;
        }
        self.stats.timeouts += 1;
        self.reduce_for_timeout(now, params);
        let lost_before = self.queue.lost_bytes();
        // RFC 6298, 5.4 to 5.6: retransmit the first segment, double the timeout, restart the
        // timer.
        self.queue.mark_first_timed_out();
        if self.recovery_rules().timeout_spares_recent_segments {
            let latest = self.recovery.round_trip().or(self.rtt.srtt()).unwrap_or_default();
            self.queue.mark_timed_out(latest, now);
            // Recently sent segments may still arrive: allow one segment in addition to them.
            self.congestion.inflate(u32::try_from(self.in_flight()).unwrap_or(u32::MAX));
        } else {
            self.queue.mark_all_lost(params.policy.timeout_forgets_sacks);
        }
        self.note_lost(lost_before);
        self.sack_ignored = params.policy.timeout_forgets_sacks;
        self.recovery.on_timeout(self.next);
        // Before the first segment from the peer, the expired segment is SYN.
        let is_syn = self.una == 0 && self.peer_window_max == 0;
        if !is_syn || self.stats.timeouts > params.syn_linear_timeouts {
            self.rtt.back_off(params);
        }
        self.timed_at = Instant::NEVER;
        if !(params.policy.timeout_keeps_duplicates && params.recovery == Kind::GoBackN) {
            // ns-2's Tahoe keeps its count of duplicate acknowledgements after a timeout.
            self.duplicates = 0;
        }
        self.limited = 0;
        self.recovery_active = self.recovery_needs_acks();
        self.tail_loss_probe = TailLossProbe::None;
        self.pace_until(now);
        self.set_timer(now, now + self.rtt.rto(params), params);
        self.refresh_window();
        self.check_invariants();
        if params.policy.timeout_sends_one_segment
            && let Some(first) = self.queue.front()
        {
            // `tcp_retransmit_timer` sends the first segment only: independent of the window,
            // further segments wait for an acknowledgement.
            let alone = self.in_flight() + u64::from(first.len);
            self.window = self.window.min(u32::try_from(alone).unwrap_or(u32::MAX));
        }
    }

    /// Whether the retransmission timer or the persist timer expires now, rather than a timer of
    /// RACK-TLP.
    pub(crate) fn is_timing_out(&self, now: Instant) -> bool {
        self.rto_at <= now
            && (self.timer_purpose == TimerPurpose::Retransmission || self.queue.is_empty())
    }

    /// Whether the loss recovery processes the acknowledgements that follow a timeout. Most only
    /// wait for duplicates, so that the retransmissions take the common path.
    fn recovery_needs_acks(&self) -> bool {
        self.recovery.in_recovery()
            || self.recovery.is_watching()
            || self.duplicates > 0
            || self.force_retransmit
            || self.queue.sacked_bytes() > 0
            || self.optional.cwnd_validation().is_some()
    }

    /// The window after a timeout.
    pub(super) fn reduce_for_timeout(&mut self, now: Instant, params: &StackParams) {
        if self.una == 0 && !params.policy.syn_counts_as_data {
            // RFC 5681, section 3.1: a lost SYN does not affect the window for data, which then
            // starts with one segment; see `on_opened`.
            return;
        }
        // RFC 5681, section 3.1: if the segment has timed out before, ssthresh is held constant.
        // ns-2 reduces it again.
        let in_recovery = self.recovery_rules().timeout_in_recovery_keeps_threshold
            && self.recovery.in_recovery();
        let timed_out_before = in_recovery
            || self.queue.front().is_some_and(|sent| sent.timed_out)
                && !params.policy.repeated_timeout_reduces;
        let mut context = loss_recovery_context!(self, now, params);
        context.limited = 0;
        self.recovery.before_timeout(&context);
        let loss = Loss { timed_out_before, ..context.loss() };
        self.congestion.on_timeout(&loss);
        self.note_reduction(false);
    }

    /// Treats the SYN-ACK just sent as acknowledged, because ns-2 never acknowledges it; it gives
    /// no RTT sample.
    pub(crate) fn assume_opened(&mut self) {
        self.una = 1;
        self.queue.acknowledge(1, |_| {});
        self.timed_at = Instant::NEVER;
        self.rto_at = Instant::NEVER;
    }

    /// SYN is acknowledged.
    pub(super) fn on_opened(&mut self, params: &StackParams) {
        if self.stats.timeouts > 0 && !params.policy.syn_counts_as_data {
            if self.stats.timeouts > params.syn_retransmissions_keeping_window {
                // RFC 5681, section 3.1: after a lost SYN the initial window is one segment.
                self.congestion.deflate(u32::MAX);
            }
            self.rtt.restart_after_syn_loss();
        }
    }

    pub(super) fn persist_interval(&self, params: &StackParams) -> Duration {
        (self.rtt.rto(params) * (1 << self.window_probe.expired)).min(params.rto_max)
    }
}
