//! BBR version 1 (Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion
//! Control", ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00, "the draft"):
//! sends at the estimated bandwidth of the bottleneck and keeps about its bandwidth-delay product
//! in flight. Loss has little influence.
//!
//! The draft counts the window in packets; here it is payload bytes. Except in profile `linux`, the
//! send quantum does not form bursts: segments are sent one by one, and the quantum only adds to
//! the window. `BbrRules` lists the differences of Linux from the draft.
//!
//! The draft chooses the first phase of the gain cycle at random. Here it is derived from the start
//! time of the cycle: no random numbers are needed, and flows that start at different times still
//! differ.

mod ack_aggregation;
mod cwnd;
mod drain;
mod long_term_bandwidth;
mod min_rtt;
mod model;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod round;
mod startup;
mod windowed_filter;

use gridhaul_scenario::scenario::Recovery as Kind;
use gridhaul_scenario::units::{Duration, Instant};

use self::ack_aggregation::AckAggregation;
use self::long_term_bandwidth::{LongTermBandwidth, Progress};
use self::min_rtt::MinRtt;
use self::probe_bw::ProbeBw;
use self::probe_rtt::ProbeRtt;
use self::recovery::Recovery;
use self::round::Round;
use self::startup::{FullPipe, HIGH_GAIN};
use self::windowed_filter::WindowedMax;
use super::{CongestionControl, Window};
use crate::coverage_mark::mark;
use crate::tcp::event::{Ack, Loss};
use crate::tcp::params::StackParams;
use crate::tcp::rules::BbrRules;

/// BBR.
#[derive(Debug, Clone)]
pub struct Bbr {
    window: Window,
    initial_window: f64,
    /// Packet bytes for each payload byte of a full segment.
    header_overhead: f64,
    state: State,
    round: Round,
    /// `BtlBw`: largest delivery rate of the last ten rounds, in payload bytes per second. Boxed to
    /// keep the state small.
    bandwidth: Box<WindowedMax>,
    /// `RTprop`.
    min_rtt: MinRtt,
    full_pipe: FullPipe,
    recovery: Recovery,
    aggregation: AckAggregation,
    long_term_bandwidth: LongTermBandwidth,
    /// Progress at the last delivery.
    progress: Progress,
    /// Payload bytes per second.
    pacing_rate: f64,
    rtt_seen: bool,
    /// Transmission resumed with no data in flight, and no acknowledgement has arrived since.
    idle_restart: bool,
    /// Range of `RateSample::prior_delivered` limited by the small window of `ProbeRtt`.
    probe_rtt_limited: (u64, u64),
}

/// Section 4.3.1.
#[derive(Debug, Clone, Copy)]
enum State {
    Startup,
    Drain,
    ProbeBw(ProbeBw),
    ProbeRtt(ProbeRtt),
}

impl CongestionControl for Bbr {
    type Storage = Box<Self>;
    const RECOVERY: Kind = Kind::Sack;
    const PACED: bool = true;
    const SAMPLES_RATE: bool = true;

    fn state(&self) -> Option<&'static str> {
        Some(match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::ProbeBw(_) => "probe_bw",
            State::ProbeRtt(_) => "probe_rtt",
        })
    }

    fn new(params: &StackParams) -> Self {
        let initial_window = f64::from(params.initial_window);
        let mss = f64::from(params.mss.max(1));
        Self {
            window: Window::new(params),
            initial_window,
            header_overhead: (mss + f64::from(params.header)) / mss,
            state: State::Startup,
            round: Round::new(),
            bandwidth: Box::new(WindowedMax::new()),
            min_rtt: MinRtt::new(),
            full_pipe: FullPipe::new(),
            recovery: Recovery::new(),
            aggregation: AckAggregation::new(),
            long_term_bandwidth: LongTermBandwidth::new(),
            progress: Progress { at: Instant::ZERO, delivered: 0, lost: 0 },
            // Section 4.2.1, `BBRInitPacingRate`: the initial window in a millisecond, as long as
            // no round trip is measured.
            pacing_rate: HIGH_GAIN * initial_window / 1e-3,
            rtt_seen: false,
            idle_restart: false,
            probe_rtt_limited: (0, 0),
        }
    }
    own_window!();

    fn on_mss_lowered(&mut self, mss: u32) {
        let header = self.window.mss() * (self.header_overhead - 1.0);
        self.window.lower_mss(mss);
        self.header_overhead = 1.0 + header / f64::from(mss.max(1));
    }

    /// The window grows in [`Self::on_delivered`], in recovery as well.
    #[inline]
    fn on_ack(&mut self, _ack: &Ack) {}

    /// Section 4.1, `BBRUpdateOnACK`: updates the model first, then the control parameters.
    fn on_delivered(&mut self, ack: &Ack) {
        self.progress =
            Progress { at: ack.now, delivered: ack.delivered_total, lost: ack.lost_total };
        self.update_bandwidth(ack);
        self.update_aggregation(ack);
        self.check_cycle(ack);
        self.check_full_pipe(ack);
        self.check_drain(ack);
        let expired = self.min_rtt.update(ack.now, ack.rtt);
        self.check_probe_rtt(ack, expired);
        self.set_pacing_rate(ack);
        self.set_window(ack);
    }

    /// Section 4.2.3.4: fast recovery begins.
    fn on_loss(&mut self, loss: &Loss) {
        self.recovery.enter(self.window.cwnd_f64(), self.probing_rtt());
        // Until the next acknowledgement updates the data in flight, the window does not exceed it.
        self.window.set_cwnd(self.window.cwnd_f64().min(loss.in_flight as f64));
    }

    /// Version 1 does not react to marks.
    fn on_congestion_mark(&mut self, _loss: &Loss) {}

    /// Section 4.2.3.4: restores the window from before the recovery.
    fn on_recovered(&mut self, _now: Instant) {
        self.leave_recovery();
    }

    /// Linux, `bbr_undo_cwnd`: also resets the estimates that depend on the loss.
    fn on_undo(&mut self, _cwnd: u32, _ssthresh: u32) {
        self.leave_recovery();
        self.full_pipe.reset_unless_full();
        self.long_term_bandwidth = LongTermBandwidth::new();
    }

    /// Section 4.2.3.4: one segment after a timeout, until all outstanding data is acknowledged. In
    /// Linux a timeout also ends a round and resets the estimate of the full pipe.
    fn on_timeout(&mut self, loss: &Loss) {
        self.recovery.enter_after_timeout(self.window.cwnd_f64(), self.probing_rtt(), loss.next);
        self.window.set_cwnd(self.window.mss());
        if self.rules().detects_policers {
            self.full_pipe.forget_bandwidth();
            let lost = self.progress.lost + loss.in_flight;
            let progress = Progress { lost, ..self.progress };
            self.sample_long_term_bandwidth(long_term_bandwidth::PathEvent {
                progress,
                lost: true,
                begins_round: true,
                app_limited: false,
                probing: self.is_probing(),
            });
        }
    }

    /// Section 4.3.4.4: after an idle period only pacing limits the sender; the window is
    /// unchanged.
    fn on_idle_restart(&mut self, _now: Instant, _initial_window: u32) {}
    fn on_cwnd_unused(&mut self, _cwnd: u32) {}

    /// Section 4.3.4.4, `BBRHandleRestartFromIdle`: at the estimated bandwidth, without gain.
    #[inline]
    fn on_sent(&mut self, _now: Instant, _next: u64, in_flight: u64) {
        if in_flight as f64 <= self.window.mss() && self.rtt_seen {
            self.idle_restart = true;
            if matches!(self.state, State::ProbeBw(_)) {
                self.set_rate(1.0);
            }
        }
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate * self.header_overhead)
    }

    #[inline]
    fn burst(&self) -> u32 {
        if self.rules().sends_bursts { self.quantum_segments() as u32 } else { 1 }
    }
}

impl Bbr {
    #[inline]
    const fn rules(&self) -> &'static BbrRules {
        self.window.rules().bbr()
    }

    /// Section 4.3.4.3, `BBRCheckCyclePhase`.
    #[inline]
    fn check_cycle(&mut self, ack: &Ack) {
        if let State::ProbeBw(cycle) = self.state {
            let gain = self.pacing_gain();
            let conditions = probe_bw::CycleConditions {
                now: ack.now,
                gain,
                min_rtt: self.min_rtt.get().unwrap_or_default(),
                lost: ack.lost > 0,
                prior_in_flight: self.in_flight_at_next_departure(ack, ack.prior_in_flight, gain),
                at_gain: self.inflight(gain),
                at_one: self.inflight(1.0),
            };
            self.state = State::ProbeBw(cycle.next(&conditions));
        }
    }

    /// Linux, `bbr_packets_in_net_at_edt`: the data in the network when pacing allows the next
    /// burst; includes that burst while the rate probes upwards.
    #[inline]
    fn in_flight_at_next_departure(&self, ack: &Ack, in_flight: u64, gain: f64) -> f64 {
        let in_flight = in_flight as f64;
        if !self.rules().predicts_departure {
            return in_flight;
        }
        let mss = self.window.mss();
        let burst = if gain > 1.0 { self.quantum_segments() * mss } else { 0.0 };
        let until = ack.paced_until.since(ack.now);
        let arrived = whole_segments(self.bandwidth(), until, mss);
        (in_flight + burst - arrived).max(0.0)
    }

    /// Section 4.3.2.2, `BBRCheckFullPipe`.
    #[inline]
    fn check_full_pipe(&mut self, ack: &Ack) {
        let limited = self.sample(ack).is_none_or(|sample| self.is_limited(&sample));
        if self.round.starts() && !limited {
            self.full_pipe.on_round(self.bandwidth.max());
        }
    }

    /// Section 4.3.3, `BBRCheckDrain`.
    #[inline]
    fn check_drain(&mut self, ack: &Ack) {
        if matches!(self.state, State::Startup) && self.full_pipe.is_full() {
            mark!(bbr_drain);
            self.state = State::Drain;
        }
        if matches!(self.state, State::Drain)
            && self.in_flight_at_next_departure(ack, ack.in_flight, drain::GAIN)
                <= self.inflight(1.0)
        {
            mark!(bbr_probe_bw);
            self.state = State::ProbeBw(ProbeBw::enter(ack.now));
        }
    }

    /// Section 4.3.5, `BBRCheckProbeRTT`.
    fn check_probe_rtt(&mut self, ack: &Ack, min_rtt_expired: bool) {
        if !self.probing_rtt() && min_rtt_expired && !self.idle_restart {
            self.recovery.save(self.window.cwnd_f64(), false);
            mark!(bbr_probe_rtt);
            self.state = State::ProbeRtt(ProbeRtt::enter());
            self.probe_rtt_limited.0 = ack.delivered_total;
        }
        if let State::ProbeRtt(mut probe) = self.state {
            self.probe_rtt_limited.1 = (ack.delivered_total + ack.in_flight).max(1);
            let at_min_cwnd = ack.in_flight as f64 <= self.min_pipe();
            if probe.on_ack(ack.now, at_min_cwnd, ack.delivered_total, &mut self.round) {
                mark!(bbr_probe_rtt_ends);
                self.min_rtt.refresh(ack.now);
                self.restore_window();
                self.state = if self.full_pipe.is_full() {
                    State::ProbeBw(ProbeBw::enter(ack.now))
                } else {
                    State::Startup
                };
            } else {
                self.state = State::ProbeRtt(probe);
            }
        }
        self.idle_restart = false;
    }

    /// Section 4.2.1, `BBRSetPacingRate`. With the first round trip, the initial window in that
    /// time replaces the initial guess; otherwise start-up would not be paced (Linux: tcp_bbr.c).
    #[inline]
    fn set_pacing_rate(&mut self, ack: &Ack) {
        if !self.rtt_seen && !ack.srtt.is_zero() {
            self.rtt_seen = true;
            let rate = HIGH_GAIN * self.initial_window / ack.srtt.as_secs_f64();
            self.pacing_rate = rate * self.rules().pacing_margin;
        }
        self.set_rate(self.pacing_gain());
    }

    #[inline]
    fn set_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth() * self.rules().pacing_margin;
        // Until the pipe is full the estimate is unreliable: the rate does not decrease with it.
        if rate > 0.0 && (self.full_pipe.is_full() || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    fn pacing_gain(&self) -> f64 {
        match &self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => drain::GAIN,
            // A policer would drop any excess.
            State::ProbeBw(_) if self.long_term_bandwidth.rate().is_some() => 1.0,
            State::ProbeBw(cycle) => cycle.gain(),
            State::ProbeRtt(_) => 1.0,
        }
    }

    fn probing_rtt(&self) -> bool {
        matches!(self.state, State::ProbeRtt(_))
    }
}

/// Data delivered at a bandwidth in a time, in bytes of whole segments (Linux).
#[inline]
fn whole_segments(bandwidth: f64, time: Duration, mss: f64) -> f64 {
    (bandwidth * time.as_secs_f64() / mss).floor() * mss
}

#[cfg(test)]
mod tests;
