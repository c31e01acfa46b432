//! The retransmission timer (RFC 6298, section 5) and the persist timer (RFC 9293, 3.8.6.1).

use gridhaul_scenario::scenario::Recovery as Kind;
use gridhaul_scenario::units::{Duration, Instant};

use super::tail::{Purpose, Tail};
use super::{Sender, loss_recovery_context};
use crate::tcp::congestion::Loss;
use crate::tcp::params::StackParams;

/// Probes of a closed window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Probe {
    /// Times the persist timer has run out since the window closed.
    pub expired: u8,
    /// A probe is to be sent.
    pub due: bool,
    /// A byte beyond the window has been sent as a probe; it is not counted as sent.
    pub out: bool,
}

impl Sender {
    /// A deadline has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, params: &StackParams) {
        if self.rto_at > now {
            return;
        }
        if !self.is_timing_out(now) {
            self.handle_rack_timer(now, params);
            return;
        }
        self.purpose = Purpose::Timeout;
        if self.queue.is_empty() {
            self.probe.expired = (self.probe.expired + 1).min(16);
            self.probe.due = true;
            self.rto_at = now + self.persist_interval(params);
            return;
        }
        self.stats.timeouts += 1;
        self.reduce(now, params);
        let lost_before = self.queue.lost_bytes();
        // RFC 6298, 5.4 to 5.6: send the first segment again, double the timeout, start it anew.
        self.queue.mark_first_timed_out();
        if self.recovery_rules().timeout_spares_recent_segments {
            let latest = self.recovery.round_trip().or(self.rtt.srtt()).unwrap_or_default();
            self.queue.mark_timed_out(latest, now);
            // What was sent lately may still arrive: one segment more than that.
            self.congestion.inflate(u32::try_from(self.in_flight()).unwrap_or(u32::MAX));
        } else {
            self.queue.mark_all_lost(params.policy.timeout_forgets_sacks);
        }
        self.note_lost(lost_before);
        self.sack_ignored = params.policy.timeout_forgets_sacks;
        self.recovery.on_timeout(self.next);
        self.recovery_active = true;
        // Nothing was heard of the other end yet: this was SYN.
        let opens = self.una == 0 && self.peer_window_max == 0;
        if !opens || self.stats.timeouts > params.syn_linear {
            self.rtt.back_off(params);
        }
        self.timed_at = Instant::NEVER;
        if !(params.policy.timeout_keeps_duplicates && params.recovery == Kind::GoBackN) {
            // ns-2's Tahoe keeps its count of duplicates over a timeout.
            self.duplicates = 0;
        }
        self.limited = 0;
        self.tail = Tail::None;
        self.pace_until(now);
        self.rto_at = now + self.rtt.rto(params);
        self.refresh_window();
        if params.policy.timeout_sends_one_segment
            && let Some(first) = self.queue.front()
        {
            // `tcp_retransmit_timer` sends the first segment alone: whatever the window, more waits for an
            // acknowledgement.
            let alone = self.in_flight() + u64::from(first.len);
            self.window = self.window.min(u32::try_from(alone).unwrap_or(u32::MAX));
        }
    }

    /// Whether the retransmission timer or the persist timer expires now, and not one of RACK's.
    pub(crate) fn is_timing_out(&self, now: Instant) -> bool {
        self.rto_at <= now && (self.purpose == Purpose::Timeout || self.queue.is_empty())
    }

    /// The window after a timeout.
    pub(super) fn reduce(&mut self, now: Instant, params: &StackParams) {
        if self.una == 0 && !params.policy.syn_counts_as_data {
            // RFC 5681, section 3.1: a lost SYN says nothing about the window of the data, which
            // begins with one segment then; see `on_opened`.
            return;
        }
        // RFC 5681, section 3.1: if the segment was repeated by the timer before, ssthresh is held
        // constant. ns-2 cuts again.
        let repairing = self.recovery_rules().timeout_in_recovery_keeps_threshold
            && self.recovery.in_recovery();
        let again = repairing
            || self.queue.front().is_some_and(|sent| sent.timed_out)
                && !params.policy.repeated_timeout_reduces;
        let mut context = loss_recovery_context!(self, now, params);
        context.limited = 0;
        self.recovery.before_timeout(&context);
        let loss = Loss { again, ..context.loss() };
        self.congestion.on_timeout(&loss);
    }

    /// SYN, just sent, will not be acknowledged: it counts as if it were, and is not timed.
    pub(crate) fn assume_opened(&mut self) {
        self.una = 1;
        self.queue.acknowledge(1, |_| {});
        self.timed_at = Instant::NEVER;
        self.rto_at = Instant::NEVER;
    }

    /// SYN is acknowledged.
    pub(super) fn on_opened(&mut self, params: &StackParams) {
        if self.stats.timeouts > 0 && !params.policy.syn_counts_as_data {
            if self.stats.timeouts > params.syn_repeats {
                // RFC 5681, section 3.1: after the loss of a SYN the initial window is one segment.
                self.congestion.deflate(u32::MAX);
            }
            self.rtt.begin_anew();
        }
    }

    pub(super) fn persist_interval(&self, params: &StackParams) -> Duration {
        (self.rtt.rto(params) * (1 << self.probe.expired)).min(params.rto_max)
    }
}
