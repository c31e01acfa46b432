//! CUBIC (RFC 9438): after a loss the window returns to its previous value along a cubic function
//! of time, so that growth is independent of the round trip.
//!
//! The RFC counts windows in segments and time in seconds. Here windows are bytes: `C` appears as
//! `C * SMSS`, and "segments_acked / cwnd" as acknowledged bytes over the window in bytes, times
//! SMSS. Slow start is Reno's, or ends by HyStart where the stack has it (section 4.10 recommends
//! its successor HyStart++). `CubicRules` lists the differences of Linux from the RFC.

mod cube;
mod hystart;

use gridhaul_scenario::scenario::Recovery;
use gridhaul_scenario::units::{Duration, Instant};

use self::cube::cube_root;
use self::hystart::HyStart;
use super::{CongestionControl, Window};
use crate::coverage_mark::mark;
use crate::rounding::{floor, truncate};
use crate::tcp::event::{Ack, Loss};
use crate::tcp::params::StackParams;
use crate::tcp::rules::CubicRules;

/// Section 4.6, `β_cubic`: "CUBIC sets the multiplicative window decrease factor to 0.7".
const BETA: f64 = 0.7;
/// Section 5, `C`, in segments per cubed second: "SHOULD be set to 0.4".
const C: f64 = 0.4;
/// Section 4.3, `α_cubic` = 3 (1 - β) / (1 + β): additive increase with Reno's mean window.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Section 4.2: the target is at most one and a half windows, "not more than the increase of slow
/// start" would give with delayed acknowledgements.
const MAX_TARGET_RATIO: f64 = 1.5;
/// Linux: before the first loss, the window grows by a segment for at most twenty acknowledged.
const MAX_COUNT_BEFORE_LOSS: f64 = 20.0;

/// CUBIC.
#[derive(Debug, Clone)]
pub struct Cubic {
    window: Window,
    /// Section 4.1.2, `W_max`: window before the last reduction, in bytes; zero before the first.
    w_max: f64,
    /// Section 4.1.2, `cwnd_prior`: the same without fast convergence.
    cwnd_prior: f64,
    /// The current congestion avoidance stage.
    epoch: Option<Epoch>,
    /// Start of a period limited by the application or the receiver (section 5.8). Linux: time of
    /// the last transmission.
    idle_since: Option<Instant>,
    /// The minimum RTT since the start or the last timeout.
    min_rtt: Option<Duration>,
    hystart: Option<HyStart>,
    /// Linux: acknowledged segments that have not yet contributed to growth.
    credit: f64,
}

/// A congestion avoidance stage, from one loss to the next.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    /// `t_epoch`.
    start: Instant,
    /// `K`: seconds from the start to the plateau.
    k: f64,
    /// The plateau, in bytes.
    w_max: f64,
    /// `W_est`: the Reno-friendly window, in bytes.
    w_est: f64,
}

impl CongestionControl for Cubic {
    type Storage = Box<Self>;
    const RECOVERY: Recovery = Recovery::Sack;

    fn new(params: &StackParams) -> Self {
        Self {
            window: Window::new(params),
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            idle_since: None,
            min_rtt: None,
            hystart: params.hystart.then(HyStart::default),
            credit: 0.0,
        }
    }
    own_window!();

    fn on_delivered(&mut self, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        // Shortly after a recovery, round trips still include queueing (Linux); the round trip of
        // SYN is ignored.
        let young = |epoch: Epoch| ack.now.since(epoch.start) < Duration::from_secs(1);
        if ack.una <= 1 || self.epoch.is_some_and(young) {
            return;
        }
        let min_rtt = self.min_rtt.map_or(rtt, |minimum| minimum.min(rtt));
        self.min_rtt = Some(min_rtt);
        if self.window.in_slow_start() {
            self.watch_slow_start(ack, rtt, min_rtt);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if !ack.window_limited {
            // Section 5.8: "cwnd SHOULD NOT be increased" while the application limits the sender.
            if !self.rules().idle_is_nothing_outstanding {
                self.idle_since.get_or_insert(ack.now);
            }
            return;
        }
        if !self.rules().idle_is_nothing_outstanding {
            self.end_idle(ack.now);
        }
        let mut acked = f64::from(ack.avoidance_credit);
        if self.window.in_slow_start() {
            self.epoch = None;
            acked = self.slow_start(ack);
            if !self.rules().slow_start_remainder_counts || acked <= 0.0 {
                return;
            }
        }
        self.congestion_avoidance(ack, acked);
    }

    /// Section 4.6: ssthresh = flight size (or the quantity that the stack reduces) * β, and cwnd =
    /// ssthresh, both at least two segments.
    fn on_loss(&mut self, loss: &Loss) {
        self.on_congestion_event();
        self.window.set_ssthresh(f64::from(loss.window) * BETA);
        self.window.set_cwnd(f64::from(self.window.ssthresh()));
    }

    /// Section 4.8: the window as in RFC 5681, "but sets ssthresh using β_cubic". The stage after
    /// the slow start has K = 0 and its plateau at its own beginning.
    fn on_timeout(&mut self, loss: &Loss) {
        self.on_congestion_event();
        self.w_max = 0.0;
        self.min_rtt = None;
        self.hystart = self.hystart.map(|_| HyStart::default());
        if !loss.timed_out_before {
            self.window.set_ssthresh(f64::from(loss.window) * BETA);
        }
        self.window.set_cwnd(self.window.mss());
    }

    /// Linux counts windows in segments, and leaves the stage as after a timeout: the repair of the
    /// lost data is that of `TCP_CA_Loss` (`cubictcp_state`).
    fn on_mss_lowered(&mut self, mss: u32) {
        self.window.lower_mss(mss);
        if self.rules().whole_segment_plateau {
            (self.w_max, self.cwnd_prior, self.credit) = (0.0, 0.0, 0.0);
            (self.epoch, self.idle_since, self.min_rtt) = (None, None, None);
            self.hystart = self.hystart.map(|_| HyStart::default());
        }
    }

    /// Linux: the flow is idle while no data is outstanding (`CA_EVENT_TX_START`).
    #[inline]
    fn on_sent(&mut self, now: Instant, _next: u64, in_flight: u64) {
        if self.rules().idle_is_nothing_outstanding {
            if in_flight as f64 <= self.window.mss() {
                self.end_idle(now);
            }
            self.idle_since = Some(now);
        }
    }

    /// RFC 5681, section 4.1. When the window is back at ssthresh, a new stage begins.
    fn on_idle_restart(&mut self, _now: Instant, initial_window: u32) {
        self.window.set_cwnd(self.window.cwnd_f64().min(f64::from(initial_window)));
        self.epoch = None;
        self.idle_since = None;
    }
}

impl Cubic {
    const fn rules(&self) -> &'static CubicRules {
        self.window.rules().cubic()
    }

    /// Section 4.2: t does not count "periods during which cwnd has not been updated due to
    /// application-limited behavior": the stage begins that much later.
    fn end_idle(&mut self, now: Instant) {
        if let (Some(since), Some(epoch)) = (self.idle_since.take(), &mut self.epoch) {
            epoch.start += now.since(since);
        }
    }

    /// A congestion event: stores the current window and ends the stage.
    fn on_congestion_event(&mut self) {
        let mss = self.window.mss();
        let mut cwnd = self.window.cwnd_f64();
        if self.rules().whole_segment_plateau {
            cwnd = floor(cwnd / mss) * mss;
        }
        mark!(cubic_fast_convergence if cwnd < self.w_max);
        // Section 4.7, fast convergence: a flow that did not reach its last plateau leaves
        // bandwidth to others: W_max = cwnd * (1 + β) / 2.
        self.w_max = if cwnd < self.w_max { cwnd * f64::midpoint(1.0, BETA) } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.idle_since = None;
        self.credit = 0.0;
    }

    /// HyStart may end slow start by the round trip `rtt`.
    #[inline(never)]
    fn watch_slow_start(&mut self, ack: &Ack, rtt: Duration, min_rtt: Duration) {
        if let Some(hystart) = &mut self.hystart
            && hystart.exits_slow_start(ack, rtt, min_rtt, self.window.cwnd_f64())
        {
            self.window.set_ssthresh(self.window.cwnd_f64());
        }
    }

    /// Section 4.10: slow start while cwnd is below ssthresh. An acknowledgement of many segments,
    /// as after a timeout, takes the window to ssthresh and no further (Linux: `tcp_slow_start`).
    /// Returns the unused credit.
    fn slow_start(&mut self, ack: &Ack) -> f64 {
        let (cwnd, mss) = (self.window.cwnd_f64(), self.window.mss());
        let to_ssthresh = (f64::from(self.window.ssthresh()) - cwnd).max(mss);
        let credit = f64::from(ack.slow_start_credit);
        self.window.set_cwnd(cwnd + credit.min(to_ssthresh));
        (credit - to_ssthresh).max(0.0)
    }

    /// Congestion avoidance: section 4.2 on each acknowledgement, of `acked` bytes.
    fn congestion_avoidance(&mut self, ack: &Ack, acked: f64) {
        let (cwnd, mss) = (self.window.cwnd_f64(), self.window.mss());
        let (rules, w_max) = (self.rules(), self.w_max);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(ack.now, cwnd, w_max, mss));
        let elapsed = ack.now.since(epoch.start);
        // Section 4.2: segments_acked / cwnd, here bytes over bytes.
        let share = acked / cwnd;
        // Section 4.3, figure 4: W_est += α * segments_acked / cwnd, times SMSS; "once W_est has
        // grown to reach cwnd_prior, [...] α_cubic to 1".
        let reno = rules.friendly_growth_as_reno && epoch.w_est >= self.cwnd_prior;
        let alpha = if reno { 1.0 } else { ALPHA };
        // An acknowledgement of two segments counts as two here, while the curve below follows
        // acknowledgements.
        let counted = if rules.counts_segments { acked } else { f64::from(ack.delivered) };
        epoch.w_est += alpha * counted / cwnd * mss;
        let epoch = *epoch;

        if rules.counts_segments {
            let ahead = self.min_rtt.unwrap_or(ack.srtt);
            let segments = epoch.acks_per_segment(elapsed + ahead, cwnd, mss, w_max == 0.0);
            self.grow_per_count(acked / mss, segments);
        } else if epoch.window_at(elapsed, mss) < epoch.w_est {
            mark!(cubic_reno_friendly_region);
            // Section 4.3: in the Reno-friendly region cwnd is W_est. A window that is already
            // larger stays: the region must not shrink it.
            self.window.set_cwnd(epoch.w_est.max(cwnd));
        } else {
            mark!(cubic_curve_region);
            // Section 4.2: target = W_cubic(t + RTT), within [cwnd, 1.5 cwnd]; sections 4.4, 4.5:
            // cwnd += (target - cwnd) / cwnd for each segment acknowledged.
            let target =
                epoch.window_at(elapsed + ack.srtt, mss).clamp(cwnd, MAX_TARGET_RATIO * cwnd);
            self.window.set_cwnd(cwnd + (target - cwnd) * share);
        }
    }
}

impl Cubic {
    /// Linux, `tcp_cong_avoid_ai`: one segment for each `count` that are acknowledged. Credit
    /// accumulated while the count was higher is worth one segment at once when the count falls, so
    /// that the window follows its target without delay.
    fn grow_per_count(&mut self, acked: f64, count: f64) {
        let mut more = 0.0;
        if self.credit >= count {
            (self.credit, more) = (0.0, 1.0);
        }
        self.credit += acked;
        let segments = floor(self.credit / count);
        self.credit -= segments * count;
        self.window.set_cwnd(self.window.cwnd_f64() + (more + segments) * self.window.mss());
    }
}

impl Epoch {
    /// Starts a stage with the window `cwnd`.
    #[cold]
    fn begin(now: Instant, cwnd: f64, w_max: f64, mss: f64) -> Self {
        // Section 4.2, figure 2: K = cubic_root((W_max - cwnd_epoch) / C), with bytes C * SMSS.
        // Without a plateau above (after slow start or a timeout, section 4.8) K is 0 and the
        // window grows along the convex part from here.
        let w_max = w_max.max(cwnd);
        let k = cube_root((w_max - cwnd) / (C * mss));
        // Section 4.3: "W_est is set equal to cwnd_epoch at the start".
        Self { start: now, k, w_max, w_est: cwnd }
    }

    /// Linux counts windows in whole segments, which matters for small windows: the number of
    /// acknowledged segments for which the window of `cwnd` bytes grows by one.
    fn acks_per_segment(&self, at: Duration, cwnd: f64, mss: f64, no_plateau: bool) -> f64 {
        let cwnd = floor(cwnd / mss);
        let from_plateau = at.as_secs_f64() - self.k;
        let offset = truncate(C * from_plateau * from_plateau * from_plateau);
        let target = floor(self.w_max / mss) + offset;
        // Without a higher target, a hundred windows.
        let mut count = if target > cwnd { floor(cwnd / (target - cwnd)) } else { 100.0 * cwnd };
        if no_plateau {
            count = count.min(MAX_COUNT_BEFORE_LOSS);
        }
        // Section 4.3: at least as fast as the Reno-friendly window.
        let ahead = floor(self.w_est / mss) - cwnd;
        if ahead > 0.0 {
            count = count.min(floor(cwnd / ahead));
        }
        // Section 4.2: at most one and a half windows in a round trip.
        count.max(2.0)
    }

    /// Section 4.2, figure 1: W_cubic(t) = C * (t - K)^3 + W_max, in bytes.
    #[inline]
    fn window_at(&self, elapsed: Duration, mss: f64) -> f64 {
        let from_plateau = elapsed.as_secs_f64() - self.k;
        C * mss * from_plateau * from_plateau * from_plateau + self.w_max
    }
}

#[cfg(test)]
mod tests;
