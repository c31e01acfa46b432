//! Congestion window after an idle period.

use gridhaul_scenario::units::Instant;

use super::Sender;
use crate::tcp::params::StackParams;
use crate::tcp::rules::IdleRestart;

impl Sender {
    /// RFC 5681, section 4.1: slow start again after an idle period longer than the RTO.
    #[inline]
    pub(super) fn restart_after_idle(&mut self, now: Instant, params: &StackParams) {
        // In ns-2, SYN is a packet like any other: its acknowledgement starts the timer.
        let begun =
            self.next > 1 || params.policy.syn_counts_as_data && self.last_sent > Instant::ZERO;
        let idle = params.restart_after_idle && begun;
        if idle && now.since(self.last_sent) > self.rtt.rto(params) {
            match params.policy.idle_restart {
                IdleRestart::OneSegment => self.restart_from_one_segment(now, params),
                IdleRestart::Decay => self.decay_window(now, params),
                IdleRestart::InitialWindow => {
                    self.congestion.on_idle_restart(now, params.initial_window);
                }
            }
            self.refresh_window();
        }
        if params.policy.timer_runs_while_idle && idle {
            self.rto_at = self.last_sent + self.rtt.rto(params);
        }
    }

    /// ns-2 (`slow_start_restart_`): the retransmission timer that the last acknowledgement started
    /// expires repeatedly although no data is outstanding. These timeouts are applied here, when
    /// the next data is sent. Slow start begins with one segment and the previous threshold. Vegas
    /// treats each expiration as a timeout: it reduces the threshold and backs off, and the segment
    /// that is sent now does not restart the timer, which therefore often expires before the
    /// acknowledgement can arrive (`VegasTcpAgent::timeout, output`).
    #[cold]
    fn restart_from_one_segment(&mut self, now: Instant, params: &StackParams) {
        self.recovery.on_timeout(self.next);
        self.duplicates = 0;
        if !params.policy.timer_runs_while_idle {
            self.congestion.on_idle_restart(now, params.mss);
            return;
        }
        while self.last_sent + self.rtt.rto(params) <= now {
            self.last_sent += self.rtt.rto(params);
            self.reduce_for_timeout(self.last_sent, params);
            self.rtt.back_off(params);
        }
    }
}
