//! Vegas (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet",
//! IEEE JSAC 13(8), 1995): compares the expected rate of the window with the actual rate once in a
//! round trip; the difference is the backlog in queues.
//!
//! The paper leaves details open. Where it does, this implementation follows ns-2.35, the most used
//! implementation in published results; each such place says "ns-2". Windows, positions and
//! thresholds of both count segments; here they are bytes, divided by the segment size where a
//! threshold is compared.
//!
//! Requirements: `Ack::rtt` is measured exactly (without clock ticks) for the newest segment of
//! *every* acknowledgement, if that segment was sent once, and is reported before the loss recovery
//! checks for expired segments ([`CongestionControl::on_rtt_sample`]); `Ack::in_flight` excludes
//! segments marked lost and not retransmitted; [`CongestionControl::on_loss`] is called for every
//! segment that is retransmitted after duplicate acknowledgements.

mod fine_timer;
mod progress;
mod round;

use std::sync::Arc;

use gridhaul_scenario::scenario::Recovery;
use gridhaul_scenario::units::{Duration, Instant};

use self::fine_timer::FineTimer;
use self::progress::Ns2Startup;
use self::round::{Round, RoundResult};
use super::{CongestionControl, EstimatorCounters, Window};
use crate::tcp::event::{Ack, Loss};
use crate::tcp::params::{StackParams, VegasParams};

/// Vegas.
#[derive(Debug, Clone)]
pub struct Vegas {
    window: Window,
    params: Arc<VegasParams>,
    round: Round,
    timer: FineTimer,
    /// Growth with each acknowledgement of this round trip, as a share of its credit.
    growth: f64,
    /// Time of the last reduction of the window; [`Instant::NEVER`] before the first.
    reduced_at: Instant,
}

impl CongestionControl for Vegas {
    type Storage = Box<Self>;
    const RECOVERY: Recovery = Recovery::Vegas;

    fn new(params: &StackParams) -> Self {
        let mut window = Window::new(params);
        let mut startup = Ns2Startup::Done;
        if params.policy.timer_runs_while_idle && !params.handshake {
            window.set_cwnd(window.mss());
            startup = Ns2Startup::FirstAck;
        }
        Self {
            window,
            params: Arc::clone(&params.vegas),
            round: Round::new(startup),
            timer: FineTimer::new(),
            growth: 0.0,
            reduced_at: Instant::NEVER,
        }
    }
    own_window!();

    #[inline]
    fn on_rtt_sample(&mut self, rtt: Duration) {
        if self.round.progress.startup() == Ns2Startup::FirstAck {
            self.timer.begin(rtt);
        } else {
            self.timer.measure(rtt);
        }
    }

    /// During a recovery of several acknowledgements (NewReno, SACK) the window is not adjusted:
    /// each acknowledgement restarts the round trip. Reno's recovery ends with its first
    /// acknowledgement, as in ns-2's Vegas.
    #[inline]
    fn on_delivered(&mut self, ack: &Ack) {
        if ack.in_recovery {
            self.round.restart(ack);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let startup = self.round.progress.startup();
        match startup {
            Ns2Startup::FirstAck => self.round.progress.set_startup(Ns2Startup::SecondAck),
            Ns2Startup::SecondAck => {
                self.window.set_cwnd(f64::from(self.params.initial_window));
                self.round.progress.set_startup(Ns2Startup::Done);
            }
            Ns2Startup::Done => {}
        }
        if let Some(result) = self.round.on_ack(ack) {
            self.adjust_window(result);
        }
        self.grow(ack);
        // ns-2: a sample belongs to the round that it starts, not to the one that it ends.
        if let Some(rtt) = ack.rtt.filter(|_| startup != Ns2Startup::FirstAck) {
            self.round.measure(rtt);
        }
    }

    /// Section 3.1: the window is reduced "only if the retransmitted segment was previously sent
    /// after the last decrease". The amount follows ns-2: a quarter, half if the segment was sent
    /// more than once, and to two segments from three or fewer, all in whole segments.
    fn on_loss(&mut self, loss: &Loss) {
        let retransmitted = loss.transmits > 1;
        self.timer.back_off(retransmitted);
        if self.reduced_at != Instant::NEVER && self.reduced_at >= loss.sent_at {
            return;
        }
        let segments = loss.window / loss.mss.max(1);
        let left = match segments {
            0..=3 => 2,
            _ if retransmitted => segments / 2,
            _ => segments - segments / 4,
        };
        self.window.set_cwnd(f64::from(left) * self.window.mss());
        self.reduced_at = loss.now;
    }

    /// No segment is lost whose age could be compared: half of the window, as Reno (Linux,
    /// `tcp_reno_ssthresh`).
    fn on_congestion_mark(&mut self, loss: &Loss) {
        self.window.halve(loss);
        self.reduced_at = loss.now;
    }

    /// ns-2: with the first new acknowledgement slow start is over until a timeout.
    fn on_recovered(&mut self, _now: Instant) {
        self.leave_slow_start();
    }

    /// Half of the window, in whole segments, becomes the threshold; slow start begins with two
    /// segments (ns-2: `v_slowstart_`; section 3.3 starts no lower either). In ns-2 the current
    /// round trip continues, and if the window does not grow in it, all outstanding segments are
    /// retransmitted two at a time. Linux (`gh_vegas`) starts a new round trip in which the window
    /// grows.
    fn on_timeout(&mut self, loss: &Loss) {
        let mss = self.window.mss();
        let segments = loss.window / loss.mss.max(1);
        self.window.set_ssthresh(f64::from(segments / 2) * mss);
        self.window.set_cwnd(2.0 * mss);
        self.reduced_at = loss.now;
        if self.window.rules().vegas().timeout_begins_round {
            self.round.restart_after_timeout();
            self.growth = 1.0;
        }
    }

    #[inline]
    fn on_sent(&mut self, now: Instant, _next: u64, _in_flight: u64) {
        self.round.begin(now);
    }

    /// Updates: the round trip of every acknowledgement. Evaluations: the comparison at the end of
    /// each round trip.
    fn estimator_counters(&self) -> Option<EstimatorCounters> {
        Some(EstimatorCounters {
            updates: None,
            evaluations: self.round.progress.rounds(),
            loss_classifications: None,
        })
    }

    /// Section 3.1: a duplicate acknowledgement, or the first or second new one after a
    /// retransmission, proves the loss of a segment that is older than the fine-grained timeout.
    fn expired(&self, now: Instant, sent_at: Instant) -> bool {
        self.timer.expired(now, sent_at)
    }
}

impl Vegas {
    /// Adjusts the window by the result of a round trip.
    fn adjust_window(&mut self, result: RoundResult) {
        let [alpha, beta, gamma] = self.params.thresholds();
        let mss = self.window.mss();
        let queued = result.queued_segments(mss);
        if self.window.in_slow_start() {
            // Section 3.3: "Vegas allows exponential growth only every other RTT. In between, the
            // congestion window stays fixed so that a valid comparison [...] can be made."
            let grows = !self.round.progress.grows();
            self.round.progress.set_grows(grows);
            let too_fast = queued > gamma;
            self.growth = if grows && !too_fast { 1.0 } else { 0.0 };
            if grows && too_fast {
                // ns-2: an eighth less, at least two segments, and the end of slow start.
                self.leave_slow_start();
                self.window.set_cwnd((self.window.cwnd_f64() * 7.0 / 8.0).max(2.0 * mss));
            }
        } else if queued > beta {
            // Section 3.2: linear decrease during the next round trip; ns-2: at once, by one
            // segment, to at least two.
            self.window.set_cwnd((self.window.cwnd_f64() - mss).max(2.0 * mss));
            self.growth = 0.0;
        } else if queued < alpha {
            // Section 3.2: linear increase during the next round trip.
            self.growth = mss / self.window.cwnd_f64();
        } else {
            self.growth = 0.0;
        }
    }

    /// Growth with one acknowledgement while the window is used: in ns-2 up to two segments may be
    /// unused (its count of outstanding segments includes the segment just acknowledged); Linux has
    /// one rule for all algorithms.
    #[inline]
    fn grow(&mut self, ack: &Ack) {
        let slow_start = self.window.in_slow_start();
        if self.growth >= 1.0 && !slow_start {
            // Slow start has exceeded its threshold within the round trip.
            self.growth = 0.0;
        }
        if self.growth <= 0.0 {
            return;
        }
        let (cwnd, mss) = (self.window.cwnd_f64(), self.window.mss());
        let used = if self.window.rules().vegas().shares_use_of_window {
            ack.window_limited
        } else {
            cwnd - (ack.in_flight as f64 + mss) <= 2.0 * mss
        };
        if used {
            let credit = if slow_start { ack.slow_start_credit } else { ack.avoidance_credit };
            self.window.set_cwnd(cwnd + self.growth * f64::from(credit));
        }
    }

    fn leave_slow_start(&mut self) {
        self.window.set_ssthresh(2.0 * self.window.mss());
    }
}

#[cfg(test)]
mod tests;
