//! The congestion window and the send quantum (sections 4.2.2 and 4.2.3).

use super::startup::HIGH_GAIN;
use super::{Bbr, State, whole_segments};
use crate::tcp::event::Ack;

/// Section 4.2.3.3, `BBRMinPipeCwnd`: with four segments, a receiver that acknowledges every second
/// segment does not stall the sender.
const MIN_PIPE_SEGMENTS: f64 = 4.0;

impl Bbr {
    /// Sections 4.2.3.4 to 4.2.3.6, `BBRSetCwnd`.
    pub(super) fn set_window(&mut self, ack: &Ack) {
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
            let target = self.target_cwnd();
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

    /// Section 4.2.3.3, `BBRUpdateTargetCwnd`; in Linux with an increase for aggregated
    /// acknowledgements, once the pipe is full.
    pub(super) fn target_cwnd(&self) -> f64 {
        if !self.rules().compensates_aggregation
            || !self.full_pipe.is_full()
            || self.min_rtt.get().is_none()
        {
            return self.inflight(self.window_gain());
        }
        let (bandwidth, mss) = (self.bandwidth(), self.window.mss());
        let extra_acked = self.aggregation.extra_acked(|time| whole_segments(bandwidth, time, mss));
        self.quantized(self.bdp_multiple(bandwidth, self.window_gain()) + extra_acked)
    }

    /// Section 4.2.3.2, `BBRInflight`: a multiple of the bandwidth-delay product, plus three send
    /// quanta for data buffered in hosts and between acknowledgements.
    pub(super) fn inflight(&self, gain: f64) -> f64 {
        if self.min_rtt.get().is_none() {
            return self.initial_window;
        }
        let product = self.bdp_multiple(self.bandwidth.max(), gain);
        if self.rules().quantises_window {
            self.quantized(product)
        } else {
            product + 3.0 * self.send_quantum()
        }
    }

    /// A multiple of the bandwidth-delay product in bytes.
    pub(super) fn bdp_multiple(&self, bandwidth: f64, gain: f64) -> f64 {
        gain * bandwidth * self.min_rtt.get().unwrap_or_default().as_secs_f64()
    }

    /// Linux, `bbr_quantization_budget`: whole segments plus three send quanta, an even number so
    /// that a receiver that acknowledges every second segment leaves no remainder, and two more
    /// while pacing probes for bandwidth.
    pub(super) fn quantized(&self, bytes: f64) -> f64 {
        let mss = self.window.mss();
        let segments = (bytes / mss).ceil() + 3.0 * self.quantum_segments();
        let even = 2.0 * (segments / 2.0).ceil();
        let probing = matches!(&self.state, State::ProbeBw(cycle) if cycle.gain() > 1.0);
        (even + if probing { 2.0 } else { 0.0 }) * mss
    }

    /// Section 4.2.2, `BBRSetSendQuantum`: one segment below 1.2 Mbit/s, two below 24 Mbit/s,
    /// otherwise the data of a millisecond, up to 64 kB.
    pub(super) fn send_quantum(&self) -> f64 {
        let bits_per_sec = self.pacing_rate * 8.0;
        if bits_per_sec < 1.2e6 {
            self.window.mss()
        } else if bits_per_sec < 24e6 {
            2.0 * self.window.mss()
        } else {
            (self.pacing_rate * 1e-3).min(64.0 * 1024.0)
        }
    }

    /// The send quantum of Linux: the whole segments of 1/1024 of a second, at least one or, from
    /// 1.2 Mbit/s on, two.
    pub(super) fn quantum_segments(&self) -> f64 {
        let minimum = if self.pacing_rate * 8.0 < 1.2e6 { 1.0 } else { 2.0 };
        let bytes = (self.pacing_rate / 1024.0).min(64.0 * 1024.0);
        (bytes / self.window.mss()).floor().clamp(minimum, 127.0)
    }

    /// `BBR.cwnd_gain`. In `ProbeBw` twice the bandwidth-delay product, so that delayed and
    /// aggregated acknowledgements do not stall the sender (section 4.3.4.2).
    pub(super) fn window_gain(&self) -> f64 {
        match &self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBw(_) => 2.0,
            State::ProbeRtt(_) => 1.0,
        }
    }

    pub(super) fn min_pipe(&self) -> f64 {
        MIN_PIPE_SEGMENTS * self.window.mss()
    }

    pub(super) fn leave_recovery(&mut self) {
        self.recovery.leave();
        self.restore_window();
    }

    /// `BBRRestoreCwnd`.
    pub(super) fn restore_window(&mut self) {
        self.window.set_cwnd(self.window.cwnd_f64().max(self.recovery.prior_cwnd()));
    }
}
