//! Veno (Fu and Liew, "TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks",
//! IEEE JSAC 21(2), 2003): Reno with Vegas' estimate of the backlog: the window grows more slowly
//! while the backlog is large, and a loss with a small backlog is classified as random. The
//! proactive counterpart of `medx`.

use gridhaul_scenario::scenario::Recovery;
use gridhaul_scenario::units::Duration;

use super::{CongestionControl, EstimatorCounters, LossClassifications, Window};
use crate::tcp::event::{Ack, Loss};
use crate::tcp::params::StackParams;
use crate::tcp::rules::AlgorithmRules;

/// Section III: "setting β to 3 segments gives good results".
const BETA: f64 = 3.0;

/// Veno.
#[derive(Debug, Clone)]
pub struct Veno {
    window: Window,
    /// "BaseRTT", in nanoseconds; 0 before the first measurement.
    base_rtt_ns: u64,
    /// Position whose acknowledgement ends the current round trip.
    round_end: u64,
    sum_ns: u64,
    samples: u32,
    /// The backlog `N` in segments, estimated in the last round trip.
    backlog: f64,
    /// With a large backlog every second acknowledgement grows the window; whether the current one
    /// does.
    grows: bool,
    updates: u32,
    evaluations: u32,
    loss_classifications: LossClassifications,
}

impl CongestionControl for Veno {
    type Storage = Box<Self>;
    const RECOVERY: Recovery = Recovery::NewReno;

    fn new(params: &StackParams) -> Self {
        Self {
            window: Window::new(params),
            base_rtt_ns: 0,
            round_end: 0,
            sum_ns: 0,
            samples: 0,
            backlog: 0.0,
            grows: true,
            updates: 0,
            evaluations: 0,
            loss_classifications: LossClassifications::default(),
        }
    }
    own_window!();

    fn on_rtt_sample(&mut self, rtt: Duration) {
        let rtt = rtt.as_nanos().max(1);
        self.base_rtt_ns = if self.base_rtt_ns == 0 { rtt } else { self.base_rtt_ns.min(rtt) };
        self.sum_ns = self.sum_ns.saturating_add(rtt);
        self.samples += 1;
        self.updates += 1;
    }

    fn on_delivered(&mut self, ack: &Ack) {
        if ack.una > self.round_end && self.samples > 0 {
            self.evaluate();
            self.round_end = ack.next;
        }
    }

    /// Section III-A: growth as in Reno below β; from β on, one segment in every other round trip.
    fn on_ack(&mut self, ack: &Ack) {
        if self.window.in_slow_start() || self.backlog < BETA {
            self.window.grow(ack);
            return;
        }
        self.grows = !self.grows;
        if self.grows {
            self.window.grow(ack);
        }
    }

    /// Section III-B: the window decreases by a fifth if the loss is "most likely to have occurred"
    /// at random.
    fn on_loss(&mut self, loss: &Loss) {
        self.forget_base_rtt();
        if self.backlog < BETA {
            self.loss_classifications.error += 1;
            let left = f64::from(loss.window) * 0.8;
            self.window.set_ssthresh(left);
            self.window.set_cwnd(left);
        } else {
            self.loss_classifications.congestion += 1;
            self.window.halve(loss);
        }
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.forget_base_rtt();
        self.window.collapse(loss);
    }

    /// Updates: every round-trip sample. Evaluations: the backlog once in each round trip.
    fn estimator_counters(&self) -> Option<EstimatorCounters> {
        let (updates, evaluations) = (Some(self.updates), self.evaluations);
        Some(EstimatorCounters {
            updates,
            evaluations,
            loss_classifications: Some(self.loss_classifications),
        })
    }
}

impl Veno {
    /// Section II: a loss, found by duplicates or a timeout, resets BaseRTT, because routes and
    /// rates change. Linux keeps the minimum of the connection.
    fn forget_base_rtt(&mut self) {
        if self.window.rules() == AlgorithmRules::Rfc {
            self.base_rtt_ns = 0;
        }
    }

    /// Section III: `N = (cwnd / BaseRTT - cwnd / RTT) * BaseRTT`, with the mean round trip since
    /// the last evaluation.
    fn evaluate(&mut self) {
        let rtt = self.sum_ns as f64 / f64::from(self.samples);
        let segments = self.window.cwnd_f64() / self.window.mss();
        self.backlog = segments * (1.0 - self.base_rtt_ns as f64 / rtt);
        (self.sum_ns, self.samples) = (0, 0);
        self.evaluations += 1;
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::CongestionControlAlgorithm;

    use super::super::samples;
    use super::*;

    const MSS: u32 = 1000;

    /// A window of twenty segments, a base of 100 ms, and one round trip of `rtt_ms`.
    fn veno(rtt_ms: u64) -> Veno {
        let stack = samples::stack(CongestionControlAlgorithm::Veno);
        let window = 20 * MSS;
        let mut veno = Veno::new(&StackParams {
            mss: MSS,
            initial_window: window,
            initial_ssthresh: window,
            ..StackParams::resolve(&stack)
        });
        for (una, rtt) in [(1, 100), (20_001, rtt_ms)] {
            veno.on_rtt_sample(Duration::from_millis(rtt));
            veno.on_delivered(&ack(una));
        }
        veno
    }

    fn ack(una: u64) -> Ack {
        Ack { una, next: una + 19_000, ..samples::ack(MSS) }
    }

    fn left_after_loss(mut veno: Veno) -> u32 {
        veno.on_loss(&samples::loss(MSS, 20));
        veno.window.cwnd() / MSS
    }

    #[test]
    fn the_backlog_determines_the_classification() {
        // 20 (1 - 100 / 110) = 1.8 segments queue: a random loss, 20 * 0.8.
        assert_eq!(left_after_loss(veno(110)), 16);
        // 20 (1 - 100 / 125) = 4 segments queue.
        assert_eq!(left_after_loss(veno(125)), 10);
    }

    /// The path has become 75 ms longer: after a loss, its round trip is the base.
    #[test]
    fn a_loss_resets_the_base_except_in_linux() {
        for (rules, backlog) in [(AlgorithmRules::Rfc, 0.0), (AlgorithmRules::Linux, 6.9)] {
            let stack = samples::stack(CongestionControlAlgorithm::Veno);
            let mut params = StackParams { mss: MSS, ..StackParams::resolve(&stack) };
            params.policy.algorithms = rules;
            for reduce in [Veno::on_loss, Veno::on_timeout] {
                let mut veno = Veno::new(&params);
                veno.on_rtt_sample(Duration::from_millis(100));
                veno.on_delivered(&ack(1));
                reduce(&mut veno, &samples::loss(MSS, 20));
                veno.window.set_cwnd(f64::from(16 * MSS));
                veno.on_rtt_sample(Duration::from_millis(175));
                veno.on_delivered(&ack(30_001));
                // 16 (1 - 100 / 175).
                assert!((veno.backlog - backlog).abs() < 0.05, "{rules:?} {}", veno.backlog);
            }
        }
    }

    #[test]
    fn a_large_backlog_halves_the_growth() {
        let grown = |rtt| {
            let mut veno = veno(rtt);
            (0..20).for_each(|_| veno.on_ack(&ack(30_001)));
            veno.window.cwnd_f64() / f64::from(MSS) - 20.0
        };
        // About one segment in a round trip (1/20 + 1/20.05 + ...), and half of it.
        assert!((grown(110) - 0.977).abs() < 0.01, "{}", grown(110));
        assert!((grown(125) - 0.494).abs() < 0.01, "{}", grown(125));
    }

    #[test]
    fn the_backlog_is_evaluated_once_in_each_round_trip_with_a_sample() {
        let mut veno = veno(110);
        veno.on_delivered(&ack(60_001));
        let counters = veno.estimator_counters().expect("counted");
        assert_eq!((counters.updates, counters.evaluations), (Some(2), 2));
    }
}
