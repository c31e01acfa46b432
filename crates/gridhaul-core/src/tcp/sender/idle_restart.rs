//! Congestion window after an idle period.

use gridhaul_scenario::units::{Duration, Instant};

use super::Sender;
use crate::tcp::params::StackParams;
use crate::tcp::rules::IdleRestart;

impl Sender {
    /// Data is about to be sent and none is outstanding.
    pub(super) fn begin_flight(&mut self, now: Instant, params: &StackParams) {
        self.restart_after_idle(now, params);
        self.stop_persist_timer(params);
    }

    /// RFC 5681, section 4.1: slow start again after an idle period longer than the RTO.
    #[inline]
    pub(super) fn restart_after_idle(&mut self, now: Instant, params: &StackParams) {
        // In ns-2, SYN is a packet like any other: its acknowledgement starts the timer.
        let begun =
            self.next > 1 || params.policy.syn_counts_as_data && self.last_sent > Instant::ZERO;
        let idle = now.since(self.last_sent);
        let is_continuous = idle.is_zero() && !params.policy.timer_runs_while_idle;
        if !params.restart_after_idle || !begun || is_continuous {
            return;
        }
        let mut rto = self.rtt.rto(params);
        if idle > rto {
            match params.policy.idle_restart {
                IdleRestart::OneSegment => rto = self.restart_from_one_segment(now, rto, params),
                IdleRestart::Decay => self.decay_window(now, params),
                IdleRestart::InitialWindow => {
                    self.congestion.on_idle_restart(now, params.initial_window);
                }
            }
            self.refresh_window();
        }
        if params.policy.timer_runs_while_idle {
            self.rto_at = self.last_sent + rto;
        }
    }

    /// ns-2 (`slow_start_restart_`): the retransmission timer that the last acknowledgement started
    /// expires repeatedly although no data is outstanding. These timeouts are applied here, when
    /// the next data is sent. Slow start begins with one segment and the previous threshold. Vegas
    /// treats each expiration as a timeout: it reduces the threshold and backs off, and the segment
    /// that is sent now does not restart the timer, which therefore often expires before the
    /// acknowledgement can arrive (`VegasTcpAgent::timeout, output`).
    ///
    /// `rto` is the timeout. Returns the timeout afterwards.
    fn restart_from_one_segment(
        &mut self,
        now: Instant,
        rto: Duration,
        params: &StackParams,
    ) -> Duration {
        self.recovery.on_timeout(self.next);
        self.duplicates = 0;
        if !params.policy.timer_runs_while_idle {
            self.congestion.on_idle_restart(now, params.mss);
            return rto;
        }
        let begun = self.last_sent;
        let expirations = self.rtt.expire_during(now.since(begun), rto, params);
        self.last_sent = begun + expirations.elapsed;
        if expirations.count > 0 {
            self.reduce_for_timeout(begun + rto, params);
        }
        if expirations.count > 1 {
            // The second reduction leaves the minimum of window and threshold; further ones change
            // only the time of the reduction.
            self.reduce_for_timeout(self.last_sent, params);
        }
        expirations.next
    }
}
