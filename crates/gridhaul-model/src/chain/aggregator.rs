//! The regional aggregator: a sender that always has data (paper `sa-tcp`, section 4.3, figure 5).
//!
//! A state is a window, a phase and, in slow start and after a timeout, the slow-start threshold;
//! in congestion avoidance the threshold plays no part and is left out. The figure is not in the
//! text; what the text leaves open stands at the rules. `ModelRules::Refined` differs from
//! `ModelRules::Paper` in three points, each marked in the code:
//!
//! - a timeout includes the back-off of repeats that are lost as well;
//! - the round of a fast retransmit sends the window that remains, and not nothing;
//! - Vegas' window never falls below two segments (ns-2; Brakmo and Peterson 1995, section 3.3).

use super::meter::Timer;
use super::{Chain, State};
use crate::model_rules::ModelRules;
use crate::queue::Delay;

/// How an aggregator's TCP behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AggregatorTcp {
    /// What the window follows.
    pub control: Control,
    /// Largest window W_M in segments.
    pub window: u32,
    /// The retransmission timer.
    pub timer: Timer,
}

/// What the window follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Control {
    /// Loss. Whether several losses of a window are repaired without the timer (NewReno, SACK).
    Reno {
        /// NewReno's or SACK's recovery.
        repairs_several: bool,
    },
    /// The queue, which is kept between α and β segments.
    Vegas {
        /// α, the paper's a.
        alpha: f64,
        /// β, the paper's b.
        beta: f64,
    },
}

/// What the network does to an aggregator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WanConditions {
    /// Probability that a segment is lost.
    pub loss: f64,
    /// Mean round trip, in seconds.
    pub rtt: f64,
    /// Round trip without waiting, in seconds.
    pub base: f64,
    /// Distribution of the time in the queue that counts.
    pub delay: Delay,
    /// Service time of that queue, in seconds.
    pub service: f64,
}

/// Loss below which none is computed with, so that every state can be reached.
const LEAST_LOSS: f64 = 1e-9;

/// The chain of an aggregator. State 0 is the timeout with the least threshold.
#[must_use]
pub fn aggregator(tcp: &AggregatorTcp, wan: &WanConditions, rules: ModelRules) -> Chain {
    let p = wan.loss.clamp(LEAST_LOSS, 1.0 - LEAST_LOSS);
    let top = tcp.window.max(1);
    let all = (0..=top).map(|window| (f64::from(window) * (-p).ln_1p()).exp()).collect();
    let mut builder = Builder {
        tcp: *tcp,
        wan: *wan,
        refined: rules == ModelRules::Refined,
        p,
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
    refined: bool,
    p: f64,
    delta: f64,
    top: u32,
    /// q_w for each window.
    all: Vec<f64>,
    chain: Chain,
    /// Slow start: window, threshold, whether this round grows, and index.
    slow: Vec<(u32, u32, bool, usize)>,
    /// The index by the three others; 0 where there is none.
    slow_at: Vec<u32>,
}

impl Builder {
    fn is_vegas(&self) -> bool {
        matches!(self.tcp.control, Control::Vegas { .. })
    }

    /// Least window.
    fn least(&self) -> u32 {
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
        let mut states = Vec::new();
        let timeout = |threshold| {
            let mark = Some(("threshold", threshold));
            if self.refined {
                // Of one timeout until a repeat arrives: 1/(1 − p) repeats.
                let rounds = 1.0 / (q * self.outage());
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
        states.push(timeout(1));
        states.extend((1..=self.top).map(|window| sending("avoidance", window, None)));
        states.extend((1..=self.top).map(|window| {
            let phase = "recovery";
            if self.refined {
                // One repeat, and new segments up to the window that remains.
                let left = self.reduced(window);
                State { fresh: left - 1, ..sending(phase, left, Some(("window", window))) }
            } else {
                State { mark: Some(("window", window)), ..State::silent(phase) }
            }
        }));
        states.extend((2..=self.thresholds()).map(timeout));
        let least = self.least();
        for threshold in 1..=self.thresholds() {
            let mut window = least;
            while window < threshold {
                // Vegas grows every other round (section 4.2).
                let grows: &[bool] = if self.is_vegas() { &[false, true] } else { &[true] };
                for &grows in grows {
                    let mark = Some(("threshold", threshold));
                    let phase = if grows { "slow start" } else { "slow start, steady" };
                    self.slow.push((window, threshold, grows, states.len()));
                    let place = self.place(window, threshold, grows);
                    self.slow_at[place] = states.len() as u32;
                    states.push(sending(phase, window, mark));
                }
                window *= 2;
            }
        }
        debug_assert!(p > 0.0);
        for state in states {
            self.chain.state(state);
        }
    }

    /// Mean time from a timeout's beginning until a repeat arrives: every repeat that is lost
    /// costs a timeout of twice the length (RFC 6298, 5.5), Σ pᵏ RTO(k).
    fn outage(&self) -> f64 {
        let timer = &self.tcp.timer;
        let last = timer.doublings(self.wan.rtt);
        let mut share = 1.0;
        let mut sum = 0.0;
        for doublings in 0..last {
            sum += share * timer.after(doublings, self.wan.rtt);
            share *= self.p;
        }
        // From there on a geometric series.
        sum + share * timer.after(last, self.wan.rtt) / (1.0 - self.p)
    }

    fn timeouts(&mut self) {
        for threshold in 1..=self.thresholds() {
            let begin = self.least();
            let to = self.growing(begin, threshold, false);
            let (rate, text) = if self.refined {
                (1.0 / self.outage(), "a repeat arrives: 1/Σ pᵏ RTO(k) (RFC 6298, 5.5)")
            } else {
                (
                    1.0 / self.tcp.timer.after(0, self.wan.rtt),
                    "sent again after a timeout: 1/RTO (assumed)",
                )
            };
            self.chain.transition(self.timeout(threshold), to, rate, text);
        }
    }

    fn slow_start(&mut self) {
        let calm: Vec<f64> = match self.tcp.control {
            Control::Vegas { alpha, beta } => {
                let limit = f64::midpoint(alpha, beta);
                let most = self.slow.iter().map(|slow| slow.0).max().unwrap_or(0);
                let known = |window: u32| {
                    // Only windows that slow start comes by.
                    let used = window >= self.least() && (window / self.least()).is_power_of_two();
                    if used { self.queued_at_most(limit, window) } else { 1.0 }
                };
                (0..=most).map(known).collect()
            }
            Control::Reno { .. } => vec![1.0; self.top as usize + 1],
        };
        for (window, threshold, grows, from) in self.slow.clone() {
            let all = self.all(window) * self.delta;
            if grows {
                let to = self.growing((2 * window).min(threshold), threshold, false);
                let calm = calm[window as usize];
                self.chain.transition(
                    from,
                    to,
                    calm * all,
                    "doubles: P(N_b ≤ (a+b)/2) q_w δ (section 4.3)",
                );
                if self.is_vegas() {
                    let to = self.steady((window + 1).min(self.top));
                    self.chain.transition(
                        from,
                        to,
                        (1.0 - calm) * all,
                        "leaves slow start with w + 1: P(N_b > (a+b)/2) q_w δ (section 4.3)",
                    );
                }
            } else {
                let to = self.growing(window, threshold, true);
                self.chain.transition(from, to, all, "every other round is steady (section 4.2)");
            }
            self.losses(from, window);
        }
    }

    fn avoidance(&mut self) {
        for window in 1..=self.top {
            let from = self.steady(window);
            let all = self.all(window) * self.delta;
            let (up, down) = match self.tcp.control {
                Control::Vegas { alpha, beta } => {
                    (self.queued_at_most(alpha, window), 1.0 - self.queued_at_most(beta, window))
                }
                Control::Reno { .. } => (1.0, 0.0),
            };
            let larger = self.steady((window + 1).min(self.top));
            let smaller = self.steady((window - 1).max(self.least()));
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
            self.losses(from, window);
        }
    }

    fn recovery(&mut self) {
        for window in 1..=self.top {
            let to = self.steady(self.reduced(window));
            let text = "recovered after a round trip, with 3/4 (Vegas) or 1/2 (Reno) of the window";
            self.chain.transition(self.recovering(window), to, self.delta, text);
        }
    }

    fn losses(&mut self, from: usize, window: u32) {
        let none = self.all(window);
        let w = f64::from(window);
        let one = w * self.p * self.all(window.saturating_sub(1));
        let timeout = self.timeout((window / 2).clamp(1, self.thresholds()));
        // Three duplicates need three segments behind the lost one.
        let repaired = match self.tcp.control {
            _ if window < 4 => 0.0,
            Control::Reno { repairs_several: true } => {
                // At least three of the window must arrive.
                1.0 - none - self.p.powf(w) - w * (1.0 - self.p) * self.p.powf(w - 1.0)
            }
            _ => one,
        };
        let repaired = repaired.clamp(0.0, 1.0 - none);
        let recovering = self.recovering(window);
        self.chain.transition(
            from,
            recovering,
            repaired * self.delta,
            "one lost, w ≥ 4: δ P₁ʷ (section 4.3)",
        );
        self.chain.transition(
            from,
            timeout,
            (1.0 - none - repaired) * self.delta,
            "lost: δ(1 − q_w) for w < 4, δ(1 − q_w − P₁ʷ) above (section 4.3)",
        );
    }

    /// q_w: all of a window arrive.
    fn all(&self, window: u32) -> f64 {
        self.all[window as usize]
    }

    /// What a fast retransmit leaves of a window (section 4.2; RFC 5681, equation 4).
    fn reduced(&self, window: u32) -> u32 {
        let left = if self.is_vegas() { window - window / 4 } else { window / 2 };
        left.max(self.least())
    }

    /// P(N_b ≤ limit): the wait is at most limit · T_p/(w − limit) (equation 12; equation 13 prints
    /// T_q for T_p). A window up to the limit cannot have more than that in the queue.
    fn queued_at_most(&self, limit: f64, window: u32) -> f64 {
        let room = f64::from(window) - limit;
        if room <= 0.0 {
            return 1.0;
        }
        self.wan.delay.waits_within(limit * self.wan.base / room / self.wan.service).clamp(0.0, 1.0)
    }

    /// Slow start at this window, or avoidance from the threshold on.
    fn growing(&self, window: u32, threshold: u32, grows: bool) -> usize {
        let place = self.place(window, threshold, grows || !self.is_vegas());
        match self.slow_at[place] {
            0 => self.steady(window.min(self.top)),
            index => index as usize,
        }
    }

    fn place(&self, window: u32, threshold: u32, grows: bool) -> usize {
        let windows = self.top as usize + 1;
        (threshold as usize * windows + window.min(self.top) as usize) * 2 + usize::from(grows)
    }

    fn timeout(&self, threshold: u32) -> usize {
        if threshold <= 1 { 0 } else { 2 * self.top as usize + threshold as usize - 1 }
    }

    fn steady(&self, window: u32) -> usize {
        window.max(1) as usize
    }

    fn recovering(&self, window: u32) -> usize {
        (self.top + window) as usize
    }
}

#[cfg(test)]
mod tests;
