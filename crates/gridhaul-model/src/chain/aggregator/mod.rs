//! The Markov chain of an aggregator: a sender that always has data (the collector of paper
//! `sa-tcp`, section 4.3, figure 5).
//!
//! A state consists of a window, a phase and, in slow start and after a timeout, the
//! slow-start threshold. Congestion avoidance does not depend on the threshold. Where the paper is
//! not explicit, the assumption is stated at the transition. `ModelRules::Refined` differs from
//! `ModelRules::Paper` in three points, each marked in the code:
//!
//! - a timeout includes the back-off for lost retransmissions;
//! - the round of a fast retransmit sends the reduced window instead of nothing;
//! - Vegas' window never falls below two segments (ns-2; Brakmo and Peterson 1995, section 3.3).

use super::meter::Timer;
use super::{Chain, State};
use crate::model_rules::ModelRules;
use crate::queue::{Delay, Wait};

/// TCP parameters of an aggregator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AggregatorTcp {
    /// Congestion control.
    pub control: Control,
    /// Largest window W_M in segments.
    pub window: u32,
    /// The retransmission timer.
    pub timer: Timer,
}

/// Congestion control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Control {
    /// Loss-based.
    Reno {
        /// Whether several losses in one window are recovered without a timeout
        /// (NewReno, SACK).
        recovers_multiple_losses: bool,
    },
    /// Delay-based: keeps between α and β segments in the queue.
    Vegas {
        /// α, the paper's a.
        alpha: f64,
        /// β, the paper's b.
        beta: f64,
    },
}

/// Network conditions of an aggregator's connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WanConditions {
    /// Probability that a segment is lost.
    pub loss: f64,
    /// Mean round-trip time, in seconds.
    pub rtt: f64,
    /// Round-trip time without queueing, in seconds.
    pub base: f64,
    /// Distribution of the delay in the bottleneck queue.
    pub delay: Delay,
    /// Service time of that queue, in seconds.
    pub service: f64,
}

/// Lower bound of the loss probability, so that every state is reachable.
const LOSS_MIN: f64 = 1e-9;

/// The chain of an aggregator. State 0 is the timeout with the smallest threshold.
#[must_use]
pub fn aggregator(tcp: &AggregatorTcp, wan: &WanConditions, rules: ModelRules) -> Chain {
    let p = wan.loss.clamp(LOSS_MIN, 1.0 - LOSS_MIN);
    let top = tcp.window.max(1);
    let log = (-p).ln_1p();
    let all = (0..=top).map(|window| (f64::from(window) * log).exp()).collect();
    let mut builder = Builder {
        tcp: *tcp,
        wan: *wan,
        wait: wan.delay.wait(),
        refined: rules == ModelRules::Refined,
        printed: rules == ModelRules::Printed,
        p,
        mean_timeout: mean_timeout(&tcp.timer, wan.rtt, p),
        delta: 1.0 / wan.rtt,
        top,
        all,
        chain: Chain::with_capacity(8 * top as usize, 32 * top as usize),
        slow: Vec::new(),
        slow_at: vec![0; (top / 2 + 1).max(2) as usize * (top as usize + 1) * 2],
    };
    builder.states();
    builder.timeouts();
    builder.slow_start();
    builder.avoidance();
    builder.recovery();
    builder.chain
}

struct Builder {
    tcp: AggregatorTcp,
    wan: WanConditions,
    /// Waiting time in the bottleneck queue.
    wait: Wait,
    refined: bool,
    /// Whether N_b counts the own transmission (equation 11 as printed).
    printed: bool,
    p: f64,
    mean_timeout: f64,
    delta: f64,
    top: u32,
    /// q_w for each window.
    all: Vec<f64>,
    chain: Chain,
    /// Slow-start states: window, threshold, whether this round doubles the window, and index.
    slow: Vec<(u32, u32, bool, usize)>,
    /// The index by the three others; 0 if there is no such state.
    slow_at: Vec<u32>,
}

impl Builder {
    fn is_vegas(&self) -> bool {
        matches!(self.tcp.control, Control::Vegas { .. })
    }

    /// Smallest window.
    fn window_min(&self) -> u32 {
        if self.refined && self.is_vegas() { 2.min(self.top) } else { 1 }
    }

    fn thresholds(&self) -> u32 {
        (self.top / 2).max(1)
    }

    fn states(&mut self) {
        let (p, q) = (self.p, 1.0 - self.p);
        let sending = |phase, window: u32, mark| State {
            phase,
            segments: window,
            fresh: window,
            arriving: f64::from(window) * q,
            rounds: self.delta,
            mark,
        };
        let mut states = std::mem::take(&mut self.chain.states);
        let timeout_state = |threshold| {
            let mark = Some(("threshold", threshold));
            if self.refined {
                // Until a retransmission arrives: 1/(1 − p) retransmissions.
                let rounds = 1.0 / (q * self.mean_timeout);
                State {
                    segments: 1,
                    fresh: 0,
                    arriving: q,
                    rounds,
                    mark,
                    ..State::silent("timeout")
                }
            } else {
                State { mark, ..State::silent("timeout") }
            }
        };
        states.push(timeout_state(1));
        states.extend((1..=self.top).map(|window| sending("avoidance", window, None)));
        states.extend((1..=self.top).map(|window| {
            let phase = "recovery";
            if self.refined {
                // One retransmission, and new segments up to the reduced window.
                let left = self.reduced(window);
                State { fresh: left - 1, ..sending(phase, left, Some(("window", window))) }
            } else {
                State { mark: Some(("window", window)), ..State::silent(phase) }
            }
        }));
        states.extend((2..=self.thresholds()).map(timeout_state));
        let window_min = self.window_min();
        for threshold in 1..=self.thresholds() {
            let mut window = window_min;
            while window < threshold {
                // Vegas doubles the window every other round (section 4.2).
                let grows: &[bool] = if self.is_vegas() { &[false, true] } else { &[true] };
                for &grows in grows {
                    let mark = Some(("threshold", threshold));
                    let phase = if grows { "slow start" } else { "slow start, constant window" };
                    self.slow.push((window, threshold, grows, states.len()));
                    let slot = self.slot(window, threshold, grows);
                    self.slow_at[slot] = states.len() as u32;
                    states.push(sending(phase, window, mark));
                }
                window *= 2;
            }
        }
        debug_assert!(p > 0.0);
        self.chain.states = states;
    }

    fn timeouts(&mut self) {
        for threshold in 1..=self.thresholds() {
            let begin = self.window_min();
            let to = self.slow_start_state(begin, threshold, false);
            let (rate, text) = if self.refined {
                (
                    1.0 / self.mean_timeout,
                    "a retransmission arrives: 1/Σ pᵏ RTO(k) (RFC 6298, \
                    5.5)",
                )
            } else {
                (
                    1.0 / self.tcp.timer.after(0, self.wan.rtt),
                    "retransmitted after a timeout: 1/RTO (assumed)",
                )
            };
            self.chain.transition(self.timeout_state(threshold), to, rate, text);
        }
    }

    fn slow_start(&mut self) {
        let not_congested: Vec<f64> = match self.tcp.control {
            Control::Vegas { alpha, beta } => {
                let limit = f64::midpoint(alpha, beta);
                let maximum = self.slow.iter().map(|slow| slow.0).max().unwrap_or(0);
                let probability = |window: u32| {
                    // Only windows that occur in slow start.
                    let used = window >= self.window_min()
                        && (window / self.window_min()).is_power_of_two();
                    if used { self.queued_at_most(limit, window) } else { 1.0 }
                };
                (0..=maximum).map(probability).collect()
            }
            Control::Reno { .. } => vec![1.0; self.top as usize + 1],
        };
        for (window, threshold, grows, from) in self.slow.clone() {
            let all = self.all(window) * self.delta;
            if grows {
                let to = self.slow_start_state((2 * window).min(threshold), threshold, false);
                let not_congested = not_congested[window as usize];
                self.chain.transition(
                    from,
                    to,
                    not_congested * all,
                    "doubles: P(N_b ≤ (a+b)/2) q_w δ (section 4.3)",
                );
                if self.is_vegas() {
                    let to = self.avoidance_state((window + 1).min(self.top));
                    self.chain.transition(
                        from,
                        to,
                        (1.0 - not_congested) * all,
                        "leaves slow start with w + 1: P(N_b > (a+b)/2) q_w δ (section 4.3)",
                    );
                }
            } else {
                let to = self.slow_start_state(window, threshold, true);
                self.chain.transition(
                    from,
                    to,
                    all,
                    "the window is constant every other round \
                    (section 4.2)",
                );
            }
            self.add_loss_transitions(from, window);
        }
    }

    fn avoidance(&mut self) {
        for window in 1..=self.top {
            let from = self.avoidance_state(window);
            let all = self.all(window) * self.delta;
            let (up, down) = match self.tcp.control {
                Control::Vegas { alpha, beta } => {
                    (self.queued_at_most(alpha, window), 1.0 - self.queued_at_most(beta, window))
                }
                Control::Reno { .. } => (1.0, 0.0),
            };
            let larger = self.avoidance_state((window + 1).min(self.top));
            let smaller = self.avoidance_state((window - 1).max(self.window_min()));
            self.chain.transition(
                from,
                larger,
                up * all,
                "w + 1: P(N_b < a) q_w δ; Reno: q_w δ (section 4.3)",
            );
            self.chain.transition(
                from,
                smaller,
                down * all,
                "w − 1: P(N_b > b) q_w δ (section 4.3)",
            );
            self.add_loss_transitions(from, window);
        }
    }

    fn recovery(&mut self) {
        for window in 1..=self.top {
            let to = self.avoidance_state(self.reduced(window));
            let text = "recovery ends after a round trip, with 3/4 (Vegas) or 1/2 (Reno) of the \
                window";
            self.chain.transition(self.recovery_state(window), to, self.delta, text);
        }
    }

    fn add_loss_transitions(&mut self, from: usize, window: u32) {
        let none = self.all(window);
        let w = f64::from(window);
        let one = w * self.p * self.all(window.saturating_sub(1));
        let timeout_state = self.timeout_state((window / 2).clamp(1, self.thresholds()));
        // Three duplicate acknowledgements need three segments after the lost one.
        let repaired = match self.tcp.control {
            _ if window < 4 => 0.0,
            Control::Reno { recovers_multiple_losses: true } => {
                // At least three segments of the window must arrive.
                1.0 - none - self.p.powf(w) - w * (1.0 - self.p) * self.p.powf(w - 1.0)
            }
            _ => one,
        };
        let repaired = repaired.clamp(0.0, 1.0 - none);
        let recovery_state = self.recovery_state(window);
        self.chain.transition(
            from,
            recovery_state,
            repaired * self.delta,
            "one segment lost, w ≥ 4: δ P₁ʷ (section 4.3)",
        );
        self.chain.transition(
            from,
            timeout_state,
            (1.0 - none - repaired) * self.delta,
            "timeout: δ(1 − q_w) for w < 4, δ(1 − q_w − P₁ʷ) above (section 4.3)",
        );
    }

    /// q_w: probability that all segments of a window arrive.
    fn all(&self, window: u32) -> f64 {
        self.all[window as usize]
    }

    /// The window after a fast retransmit (section 4.2; RFC 5681, equation 4).
    fn reduced(&self, window: u32) -> u32 {
        let left = if self.is_vegas() { window - window / 4 } else { window / 2 };
        left.max(self.window_min())
    }

    /// P(N_b ≤ limit): the waiting time is at most limit · T_p/(w − limit) (equation 12; equation
    /// 13 prints T_q for T_p). A window up to the limit never exceeds it in the queue.
    fn queued_at_most(&self, limit: f64, window: u32) -> f64 {
        let in_flight = f64::from(window) - limit;
        if in_flight <= 0.0 {
            return 1.0;
        }
        let services = limit * self.wan.base / in_flight / self.wan.service;
        let share =
            if self.printed { self.wan.delay.within(services) } else { self.wait.within(services) };
        share.clamp(0.0, 1.0)
    }

    /// The state of slow start at this window, or of congestion avoidance from the threshold on.
    fn slow_start_state(&self, window: u32, threshold: u32, grows: bool) -> usize {
        let slot = self.slot(window, threshold, grows || !self.is_vegas());
        match self.slow_at[slot] {
            0 => self.avoidance_state(window.min(self.top)),
            index => index as usize,
        }
    }

    fn slot(&self, window: u32, threshold: u32, grows: bool) -> usize {
        let windows = self.top as usize + 1;
        (threshold as usize * windows + window.min(self.top) as usize) * 2 + usize::from(grows)
    }

    fn timeout_state(&self, threshold: u32) -> usize {
        if threshold <= 1 { 0 } else { 2 * self.top as usize + threshold as usize - 1 }
    }

    fn avoidance_state(&self, window: u32) -> usize {
        window.max(1) as usize
    }

    fn recovery_state(&self, window: u32) -> usize {
        (self.top + window) as usize
    }
}

/// Mean time from the start of a timeout until a retransmission arrives: each lost retransmission
/// adds a timeout of twice the length (RFC 6298, 5.5), Σ pᵏ RTO(k).
fn mean_timeout(timer: &Timer, rtt: f64, p: f64) -> f64 {
    let last = timer.doublings(rtt);
    let mut share = 1.0;
    let mut sum = 0.0;
    for doublings in 0..last {
        sum += share * timer.after(doublings, rtt);
        share *= p;
    }
    // The rest is a geometric series.
    sum + share * timer.after(last, rtt) / (1.0 - p)
}

#[cfg(test)]
mod tests;
