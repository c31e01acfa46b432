//! BBR version 1 (Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion
//! Control", ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00, "the draft"):
//! sends at the measured bandwidth of the bottleneck and keeps about its bandwidth-delay product in
//! flight. Loss hardly enters.
//!
//! The draft counts the window in packets; here it is payload bytes. Left out, but in profile `linux`,
//! is the send quantum as a size of bursts: segments leave one by one, it only adds to the window.
//! Where Linux differs from the draft, [`Rules`] says how.
//!
//! The draft draws the first phase of the gain cycle at random. Here it is derived from the time at
//! which the cycle begins: no entropy, and flows that begin at different times still differ.

mod aggregation;
mod drain;
mod long_term;
mod min_rtt;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod round;
mod startup;
mod windowed_filter;

use gridhaul_scenario::scenario::Recovery as Kind;
use gridhaul_scenario::units::{Duration, Instant};

use self::aggregation::Aggregation;
use self::long_term::{LongTerm, Progress};
use self::min_rtt::MinRtt;
use self::probe_bw::ProbeBw;
use self::probe_rtt::ProbeRtt;
use self::recovery::Recovery;
use self::round::Round;
use self::startup::{FullPipe, HIGH_GAIN};
use self::windowed_filter::WindowedMax;
use super::{Ack, CongestionControl, Loss, Window};
use crate::tcp::params::{Rules, StackParams};
use crate::tcp::rate::RateSample;

/// Section 4.2.3.3, `BBRMinPipeCwnd`: four segments keep an acknowledgement of every second one
/// from starving the sender.
const MIN_PIPE_SEGMENTS: f64 = 4.0;
/// Linux, `bbr_pacing_margin_percent`: one per cent below the estimate, so that no queue is built by
/// chance.
const MARGIN: f64 = 0.99;

/// BBR.
#[derive(Debug, Clone)]
pub struct Bbr {
    window: Window,
    initial_window: f64,
    /// Bytes on the wire for each byte of payload in a full segment.
    wire_per_payload: f64,
    state: State,
    round: Round,
    /// `BtlBw`: largest delivery rate of the last ten rounds, in payload bytes per second. Boxed,
    /// or every connection of every variant would be larger by its ten numbers.
    bandwidth: Box<WindowedMax>,
    /// `RTprop`.
    min_rtt: MinRtt,
    full_pipe: FullPipe,
    recovery: Recovery,
    aggregation: Aggregation,
    long_term: LongTerm,
    /// With the last delivery.
    progress: Progress,
    /// Payload bytes per second.
    pacing_rate: f64,
    rtt_seen: bool,
    /// Sending began again from nothing in flight, and nothing was acknowledged since.
    idle_restart: bool,
    /// Range of `RateSample::prior_delivered` that the small window of `ProbeRtt` has limited.
    slowed: (u64, u64),
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
    type Held = Box<Self>;
    const RECOVERY: Kind = Kind::Sack;
    const PACED: bool = true;
    const SAMPLES_RATE: bool = true;

    fn new(params: &StackParams) -> Self {
        let initial_window = f64::from(params.initial_window);
        let mss = f64::from(params.mss.max(1));
        Self {
            window: Window::new(params),
            initial_window,
            wire_per_payload: (mss + f64::from(params.header)) / mss,
            state: State::Startup,
            round: Round::new(),
            bandwidth: Box::new(WindowedMax::new()),
            min_rtt: MinRtt::new(),
            full_pipe: FullPipe::new(),
            recovery: Recovery::new(),
            aggregation: Aggregation::new(),
            long_term: LongTerm::new(),
            progress: Progress { at: Instant::ZERO, delivered: 0, lost: 0 },
            // Section 4.2.1, `BBRInitPacingRate`: the initial window in a millisecond, as long as
            // no round trip is measured.
            pacing_rate: HIGH_GAIN * initial_window / 1e-3,
            rtt_seen: false,
            idle_restart: false,
            slowed: (0, 0),
        }
    }
    own_window!();

    /// The window grows in [`Self::on_delivered`], in recovery as well.
    #[inline]
    fn on_ack(&mut self, _ack: &Ack) {}

    /// Section 4.1, `BBRUpdateOnACK`: first the model, then what follows from it.
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
        // Until the next acknowledgement counts what is in flight, nothing is added to it.
        self.window.set_cwnd(self.window.cwnd_f64().min(loss.in_flight as f64));
    }

    /// Section 4.2.3.4: the window from before the recovery comes back.
    fn on_recovered(&mut self, _now: Instant) {
        self.leave_recovery();
    }

    /// Linux, `bbr_undo_cwnd`: what the loss seemed to say of the path is forgotten as well.
    fn on_undone(&mut self, _cwnd: u32, _ssthresh: u32) {
        self.leave_recovery();
        self.full_pipe.begin_anew();
        self.long_term = LongTerm::new();
    }

    /// Section 4.2.3.4: one segment after a timeout, until all that was out is acknowledged. In Linux it
    /// also ends a round, and what the pipe held before says nothing any more.
    fn on_timeout(&mut self, loss: &Loss) {
        self.recovery.enter_after_timeout(self.window.cwnd_f64(), self.probing_rtt(), loss.next);
        self.window.set_cwnd(self.window.mss());
        if self.window.rules() == Rules::Linux {
            self.full_pipe.forget_bandwidth();
            let lost = self.progress.lost + loss.in_flight;
            let progress = Progress { lost, ..self.progress };
            self.look_for_policer(long_term::PathEvent {
                progress,
                lost: true,
                begins_round: true,
                app_limited: false,
                probing: self.is_probing(),
            });
        }
    }

    /// Section 4.3.4.4: pacing alone restrains what follows an idle time; the window stays.
    fn on_idle_restart(&mut self, _now: Instant, _initial_window: u32) {}
    fn on_unused(&mut self, _cwnd: u32) {}

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
        Some(self.pacing_rate * self.wire_per_payload)
    }

    #[inline]
    fn burst(&self) -> u32 {
        match self.window.rules() {
            Rules::Rfc => 1,
            Rules::Linux => self.quantum_segments() as u32,
        }
    }
}

impl Bbr {
    /// Section 4.1.1.5, `BBRUpdateBtlBw`: what the application has limited only ever raises it.
    #[inline]
    fn update_bandwidth(&mut self, ack: &Ack) {
        let Some(sample) = self.sample(ack) else {
            self.round.pass();
            return;
        };
        self.round.update(sample.prior_delivered, ack.delivered_total);
        if self.window.rules() == Rules::Linux {
            self.look_for_policer(long_term::PathEvent {
                progress: self.progress,
                lost: ack.lost > 0,
                begins_round: self.round.starts(),
                app_limited: self.is_limited(&sample),
                probing: self.is_probing(),
            });
        }
        let rate = sample.bytes_per_sec();
        if rate >= self.bandwidth.max() || !self.is_limited(&sample) {
            self.bandwidth.update(self.round.count(), rate);
        }
    }

    fn look_for_policer(&mut self, event: long_term::PathEvent) {
        if self.long_term.update(&event) {
            self.state = State::ProbeBw(ProbeBw::enter(event.progress.at));
        }
    }

    fn is_probing(&self) -> bool {
        matches!(self.state, State::ProbeBw(_))
    }

    /// The bandwidth to send with.
    #[inline]
    fn bandwidth(&self) -> f64 {
        self.long_term.rate().unwrap_or(self.bandwidth.max())
    }

    /// The delivery rate that an acknowledgement tells. Linux takes none over less than the least round
    /// trip: the first copy of a segment that was sent again has been acknowledged.
    #[inline]
    fn sample(&self, ack: &Ack) -> Option<RateSample> {
        let least =
            self.min_rtt.get().filter(|_| self.window.rules() == Rules::Linux).unwrap_or_default();
        ack.rate.filter(|sample| sample.interval >= least)
    }

    #[inline]
    fn update_aggregation(&mut self, ack: &Ack) {
        if self.window.rules() == Rules::Linux && self.sample(ack).is_some() {
            let (bandwidth, mss) = (self.bandwidth(), self.window.mss());
            let cwnd = self.window.cwnd_f64();
            let delivered = f64::from(ack.delivered);
            let starts = self.round.starts();
            let expected = |time| whole_segments(bandwidth, time, mss);
            self.aggregation.on_ack(ack.now, delivered, starts, cwnd, expected);
        }
    }

    /// Whether something else than the path has limited a sample.
    #[inline]
    fn is_limited(&self, sample: &RateSample) -> bool {
        let (from, until) = self.slowed;
        sample.app_limited || (from..until).contains(&sample.prior_delivered)
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
                prior_in_flight: self.when_next_leaves(ack, ack.prior_in_flight, gain),
                at_gain: self.inflight(gain),
                at_one: self.inflight(1.0),
            };
            self.state = State::ProbeBw(cycle.next(&conditions));
        }
    }

    /// Linux, `bbr_packets_in_net_at_edt`: what will be in the network when pacing lets the next burst
    /// leave; with that burst, where the rate probes upwards.
    #[inline]
    fn when_next_leaves(&self, ack: &Ack, in_flight: u64, gain: f64) -> f64 {
        let in_flight = in_flight as f64;
        if self.window.rules() == Rules::Rfc {
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
            self.state = State::Drain;
        }
        if matches!(self.state, State::Drain)
            && self.when_next_leaves(ack, ack.in_flight, drain::GAIN) <= self.inflight(1.0)
        {
            self.state = State::ProbeBw(ProbeBw::enter(ack.now));
        }
    }

    /// Section 4.3.5, `BBRCheckProbeRTT`.
    fn check_probe_rtt(&mut self, ack: &Ack, min_rtt_expired: bool) {
        if !self.probing_rtt() && min_rtt_expired && !self.idle_restart {
            self.recovery.save(self.window.cwnd_f64(), false);
            self.state = State::ProbeRtt(ProbeRtt::enter());
            self.slowed.0 = ack.delivered_total;
        }
        if let State::ProbeRtt(mut probe) = self.state {
            self.slowed.1 = (ack.delivered_total + ack.in_flight).max(1);
            let few = ack.in_flight as f64 <= self.min_pipe();
            if probe.on_ack(ack.now, few, ack.delivered_total, &mut self.round) {
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
    /// time replaces the initial guess, or start-up would not be paced at all (Linux: tcp_bbr.c).
    #[inline]
    fn set_pacing_rate(&mut self, ack: &Ack) {
        if !self.rtt_seen && !ack.srtt.is_zero() {
            self.rtt_seen = true;
            let rate = HIGH_GAIN * self.initial_window / ack.srtt.as_secs_f64();
            self.pacing_rate = rate * self.margin();
        }
        self.set_rate(self.pacing_gain());
    }

    #[inline]
    fn set_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth() * self.margin();
        // Until the pipe is full the estimate is young: the rate does not fall with it.
        if rate > 0.0 && (self.full_pipe.is_full() || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    #[inline]
    const fn margin(&self) -> f64 {
        match self.window.rules() {
            Rules::Rfc => 1.0,
            Rules::Linux => MARGIN,
        }
    }

    /// Sections 4.2.3.4 to 4.2.3.6, `BBRSetCwnd`.
    fn set_window(&mut self, ack: &Ack) {
        if self.recovery.ended_by(ack.una) {
            self.leave_recovery();
        }
        let mss = self.window.mss();
        let delivered = f64::from(ack.delivered);
        let in_flight = ack.in_flight as f64;
        let mut cwnd = self.window.cwnd_f64();
        if self.recovery.take_entry() {
            cwnd = in_flight + delivered.max(mss);
            self.round.restart(ack.delivered_total);
        } else {
            if self.round.starts() {
                self.recovery.on_round();
            }
            cwnd = (cwnd - ack.lost as f64).max(mss);
        }
        if self.recovery.conserves() {
            cwnd = cwnd.max(in_flight + delivered);
        } else {
            let target = self.target();
            if self.full_pipe.is_full() {
                cwnd = (cwnd + delivered).min(target);
            } else if cwnd < target || (ack.delivered_total as f64) < self.initial_window {
                cwnd += delivered;
            }
            cwnd = cwnd.max(self.min_pipe());
        }
        if self.probing_rtt() {
            // Section 4.2.3.5.
            cwnd = cwnd.min(self.min_pipe());
        }
        self.window.set_cwnd(cwnd);
    }

    /// Section 4.2.3.3, `BBRUpdateTargetCwnd`; in Linux with room for acknowledgements in bursts, once
    /// the pipe is full.
    fn target(&self) -> f64 {
        if self.window.rules() == Rules::Rfc
            || !self.full_pipe.is_full()
            || self.min_rtt.get().is_none()
        {
            return self.inflight(self.window_gain());
        }
        let (bandwidth, mss) = (self.bandwidth(), self.window.mss());
        let room = self.aggregation.room(|time| whole_segments(bandwidth, time, mss));
        self.rounded(self.product(bandwidth, self.window_gain()) + room)
    }

    /// Section 4.2.3.2, `BBRInflight`: a multiple of the bandwidth-delay product, with three send
    /// quanta for what waits in hosts and between acknowledgements.
    fn inflight(&self, gain: f64) -> f64 {
        match self.window.rules() {
            _ if self.min_rtt.get().is_none() => self.initial_window,
            Rules::Rfc => self.product(self.bandwidth.max(), gain) + 3.0 * self.send_quantum(),
            Rules::Linux => self.rounded(self.product(self.bandwidth.max(), gain)),
        }
    }

    /// A multiple of the bandwidth-delay product in bytes.
    fn product(&self, bandwidth: f64, gain: f64) -> f64 {
        gain * bandwidth * self.min_rtt.get().unwrap_or_default().as_secs_f64()
    }

    /// Linux, `bbr_quantization_budget`: whole segments with three send quanta, an even number of them
    /// so that a receiver that acknowledges every second one leaves none over, and two more while the
    /// pacing probes for bandwidth.
    fn rounded(&self, bytes: f64) -> f64 {
        let mss = self.window.mss();
        let segments = (bytes / mss).ceil() + 3.0 * self.quantum_segments();
        let even = 2.0 * (segments / 2.0).ceil();
        let probing = matches!(&self.state, State::ProbeBw(cycle) if cycle.gain() > 1.0);
        (even + if probing { 2.0 } else { 0.0 }) * mss
    }

    /// Section 4.2.2, `BBRSetSendQuantum`: one segment below 1.2 Mbit/s, two below 24 Mbit/s, else
    /// a millisecond, up to 64 kB.
    fn send_quantum(&self) -> f64 {
        let bits_per_sec = self.pacing_rate * 8.0;
        if bits_per_sec < 1.2e6 {
            self.window.mss()
        } else if bits_per_sec < 24e6 {
            2.0 * self.window.mss()
        } else {
            (self.pacing_rate * 1e-3).min(64.0 * 1024.0)
        }
    }

    /// The same in Linux: whole segments of 1/1024 of a second, at least one or, from 1.2 Mbit/s on,
    /// two.
    fn quantum_segments(&self) -> f64 {
        let least = if self.pacing_rate * 8.0 < 1.2e6 { 1.0 } else { 2.0 };
        let bytes = (self.pacing_rate / 1024.0).min(64.0 * 1024.0);
        (bytes / self.window.mss()).floor().clamp(least, 127.0)
    }

    fn pacing_gain(&self) -> f64 {
        match &self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => drain::GAIN,
            // A policer would only take what is more.
            State::ProbeBw(_) if self.long_term.rate().is_some() => 1.0,
            State::ProbeBw(cycle) => cycle.gain(),
            State::ProbeRtt(_) => 1.0,
        }
    }

    /// `BBR.cwnd_gain`. In `ProbeBw` two products, so that delayed and merged acknowledgements do
    /// not stop the sender (section 4.3.4.2).
    fn window_gain(&self) -> f64 {
        match &self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBw(_) => 2.0,
            State::ProbeRtt(_) => 1.0,
        }
    }

    fn min_pipe(&self) -> f64 {
        MIN_PIPE_SEGMENTS * self.window.mss()
    }

    fn probing_rtt(&self) -> bool {
        matches!(self.state, State::ProbeRtt(_))
    }

    fn leave_recovery(&mut self) {
        self.recovery.leave();
        self.restore_window();
    }

    /// `BBRRestoreCwnd`.
    fn restore_window(&mut self) {
        self.window.set_cwnd(self.window.cwnd_f64().max(self.recovery.saved()));
    }
}

/// What a bandwidth brings in a time, in bytes of whole segments (as Linux counts).
#[inline]
fn whole_segments(bandwidth: f64, time: Duration, mss: f64) -> f64 {
    (bandwidth * time.as_secs_f64() / mss).floor() * mss
}

#[cfg(test)]
mod tests;
