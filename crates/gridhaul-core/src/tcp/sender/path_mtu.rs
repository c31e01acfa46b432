//! Segments that are too big for the path: path-MTU discovery by reports of routers (RFC 1191) and
//! by timeouts (RFC 4821).

use gridhaul_scenario::units::Instant;

use super::rack_timers::{TailLossProbe, TimerPurpose};
use super::{Flag, Sender};
use crate::coverage_mark::mark;
use crate::tcp::params::StackParams;

/// RFC 4821, section 7.2, and Linux, `tcp_base_mss`: the segment size after the first failure.
const BASE_MSS: u32 = 1_024;

/// Linux, `tcp_mtu_probe_floor`.
const MSS_MIN: u32 = 48;

/// RFC 1122, section 4.2.3.5: a path has failed after three retransmissions (R1, `tcp_retries1`).
/// Linux converts them to time, `2 << R1 - 1` minimum timeouts (`tcp_model_timeout`).
const FAILURE_IN_MINIMUM_TIMEOUTS: u64 = 15;

impl Sender {
    /// The segment size with which the sender continues after a timeout that shows that the path
    /// has failed: larger packets may vanish without a report (RFC 4821, section 7.7; Linux,
    /// `tcp_mtu_probing`).
    pub(crate) fn mss_after_timeout(&self, now: Instant, params: &StackParams) -> Option<u32> {
        let has_data_outstanding = self.una > 0 && !self.queue.is_empty();
        let has_failed = || {
            let failure = params.rto_min * FAILURE_IN_MINIMUM_TIMEOUTS;
            self.rtt.since_first_retransmission(params) >= failure
        };
        if !has_data_outstanding || !self.is_timing_out(now) || !has_failed() {
            return None;
        }
        mark!(black_hole_lowers_mss);
        let mut mss = BASE_MSS;
        while mss >= params.mss && mss > MSS_MIN {
            mss = (mss / 2).max(MSS_MIN);
        }
        (mss < params.mss).then_some(mss)
    }

    /// The segment size was lowered to that of `params`: outstanding segments that are larger are
    /// lost, and are retransmitted in parts.
    pub(crate) fn divide_segments(&mut self, params: &StackParams) {
        self.congestion.on_mss_lowered(params.mss);
        self.recovery.on_mss_lowered(params.mss);
        let lost_before = self.queue.lost_bytes();
        let mut rate = self.optional.rate_mut();
        self.queue.divide_above(params.mss, |division| {
            if let Some(rate) = &mut rate {
                rate.on_divided(division);
            }
        });
        self.note_lost(lost_before);
        self.flags.set(Flag::WindowFilled, false);
        self.refresh_window();
    }

    /// A router has reported segments as too big, which [`Self::divide_segments`] has marked lost.
    /// They are retransmitted now, and the window stays: no congestion has dropped them (RFC 1191,
    /// section 6.4).
    pub(crate) fn retransmit_divided(&mut self, now: Instant, params: &StackParams) {
        if self.queue.lost_bytes() == 0 {
            return;
        }
        mark!(report_of_router_lowers_mss);
        self.recovery.on_segments_too_big(self.next);
        self.timed_at = Instant::NEVER;
        (self.duplicates, self.limited) = (0, 0);
        self.force_retransmit = false;
        self.recovery_active = self.recovery.in_recovery() || self.recovery.is_watching();
        self.tail_loss_probe = TailLossProbe::None;
        self.timer_purpose = TimerPurpose::Retransmission;
        self.set_timer(now, now + self.rtt.rto(params), params);
        self.refresh_window();
        self.check_invariants();
        if !params.policy.smaller_segments_fill_window
            && let Some(first) = self.queue.front()
        {
            // RFC 1191, section 6.4: "only one segment should be retransmitted until
            // acknowledgements begin to arrive again".
            let alone = self.in_flight() + u64::from(first.len);
            self.window = self.window.min(u32::try_from(alone).unwrap_or(u32::MAX));
        }
    }
}
