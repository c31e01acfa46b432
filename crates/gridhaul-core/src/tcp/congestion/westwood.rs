//! Westwood+ (Mascolo, Casetti, Gerla, Sanadidi and Wang, MobiCom 2001; Grieco and Mascolo,
//! "Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion
//! Control", ACM CCR 34(2), 2004): a loss sets the window to the product of the estimated bandwidth
//! and the minimum RTT, whatever the cause of the loss. The window grows as in Reno.

use gridhaul_scenario::scenario::Recovery;
use gridhaul_scenario::units::{Duration, Instant};

use super::{CongestionControl, EstimatorCounters, Window};
use crate::tcp::event::{Ack, Loss};
use crate::tcp::params::StackParams;

/// Grieco and Mascolo, section 2: the weight of the past in the filter, "α = 0.9".
const FILTER_WEIGHT: f64 = 0.9;

/// Westwood+.
#[derive(Debug, Clone)]
pub struct Westwood {
    window: Window,
    /// Estimated bandwidth in bytes per second; zero before the first sample.
    bandwidth: f64,
    /// `RTTmin`.
    rtt_min: Duration,
    /// Bytes acknowledged in the current round trip, its start time, and the position that ends it.
    acked: u64,
    round_began: Instant,
    round_end: u64,
    updates: u32,
    evaluations: u32,
}

impl CongestionControl for Westwood {
    type Storage = Box<Self>;
    const RECOVERY: Recovery = Recovery::NewReno;

    fn new(params: &StackParams) -> Self {
        Self {
            window: Window::new(params),
            bandwidth: 0.0,
            rtt_min: Duration::ZERO,
            acked: 0,
            round_began: Instant::ZERO,
            round_end: 0,
            updates: 0,
            evaluations: 0,
        }
    }
    own_window!();

    fn on_rtt_sample(&mut self, rtt: Duration) {
        if self.rtt_min.is_zero() || rtt < self.rtt_min {
            self.rtt_min = rtt;
        }
    }

    fn on_delivered(&mut self, ack: &Ack) {
        self.acked += u64::from(ack.delivered);
        self.updates += 1;
        if ack.una > self.round_end {
            self.sample(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.reduce(loss);
        let ssthresh = f64::from(self.window.ssthresh());
        // Section 2: "cwnd = ssthresh" if it was larger.
        self.window.set_cwnd(self.window.cwnd_f64().min(ssthresh));
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.reduce(loss);
        self.window.set_cwnd(self.window.mss());
    }

    /// Updates: bytes are counted with every acknowledgement. Evaluations: a bandwidth in every
    /// round trip and a window at every loss.
    fn estimator_counters(&self) -> Option<EstimatorCounters> {
        Some(EstimatorCounters {
            updates: Some(self.updates),
            evaluations: self.evaluations,
            loss_classifications: None,
        })
    }
}

impl Westwood {
    /// The bandwidth of a round trip, `d_k / Δ_k`, and the filter
    /// `b̂_k = α b̂_(k-1) + (1 - α) b_k`.
    fn sample(&mut self, ack: &Ack) {
        let elapsed = ack.now.since(self.round_began);
        // A round trip is not shorter than the minimum RTT: acknowledgements that arrive together
        // after a gap was filled do not measure the bandwidth of the path.
        if self.round_end > 0 && !elapsed.is_zero() && elapsed >= self.rtt_min {
            let sample = self.acked as f64 / elapsed.as_secs_f64();
            self.bandwidth = if self.bandwidth > 0.0 {
                FILTER_WEIGHT * self.bandwidth + (1.0 - FILTER_WEIGHT) * sample
            } else {
                sample
            };
            self.evaluations += 1;
        }
        (self.acked, self.round_began, self.round_end) = (0, ack.now, ack.next);
    }

    /// `ssthresh = max(2, B̂ RTTmin / seg_size)`; half the window before the first measurement.
    fn reduce(&mut self, loss: &Loss) {
        self.evaluations += 1;
        if self.bandwidth > 0.0 && !self.rtt_min.is_zero() {
            self.window.set_ssthresh(self.bandwidth * self.rtt_min.as_secs_f64());
        } else {
            self.window.set_ssthresh(f64::from(loss.window) / 2.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::CongestionControlAlgorithm;

    use super::super::samples;
    use super::*;

    const MSS: u32 = 1000;

    /// A window of forty segments; ten are acknowledged in every round trip of 100 ms, with a
    /// minimum RTT of 50 ms.
    fn westwood(rounds: u64) -> Westwood {
        let stack = samples::stack(CongestionControlAlgorithm::Westwood);
        let mut westwood = Westwood::new(&StackParams {
            mss: MSS,
            initial_window: 40 * MSS,
            initial_ssthresh: 40 * MSS,
            ..StackParams::resolve(&stack)
        });
        westwood.on_rtt_sample(Duration::from_millis(50));
        for round in 0..=rounds {
            westwood.on_delivered(&ack(round));
        }
        westwood
    }

    fn ack(round: u64) -> Ack {
        Ack {
            now: Instant::from_nanos(round * 100_000_000),
            delivered: 10 * MSS,
            una: 10_000 * round + 1,
            next: 10_000 * (round + 1),
            ..samples::ack(MSS)
        }
    }

    fn loss() -> Loss {
        samples::loss(MSS, 40)
    }

    #[test]
    fn a_loss_sets_the_window_to_the_bandwidth_delay_product() {
        let mut before = westwood(0);
        before.on_loss(&loss());
        assert_eq!(before.window.cwnd(), 20 * MSS, "half without a measurement");
        let mut after = westwood(5);
        // Six acknowledgements begin and end five round trips.
        let counted = |westwood: &Westwood| {
            let counters = westwood.estimator_counters().expect("counted");
            (counters.updates, counters.evaluations)
        };
        assert_eq!(counted(&after), (Some(6), 5));
        // 10 segments in 100 ms, with a minimum RTT of 50 ms: five segments.
        after.on_loss(&loss());
        assert_eq!((after.window.cwnd(), after.window.ssthresh()), (5 * MSS, 5 * MSS));
        after.on_timeout(&loss());
        assert_eq!((after.window.cwnd(), after.window.ssthresh()), (MSS, 5 * MSS));
    }

    #[test]
    fn the_filter_weights_a_new_sample_by_a_tenth() {
        let mut westwood = westwood(5);
        let mut fast = ack(6);
        fast.delivered = 20 * MSS;
        westwood.on_delivered(&fast);
        // 0.9 * 100 kB/s + 0.1 * 200 kB/s.
        assert!((westwood.bandwidth - 110_000.0).abs() < 1e-6, "{}", westwood.bandwidth);
    }
}
