//! The Markov chain of a meter: a source that is silent for most of the time and sends short
//! bursts, with a window of at most two segments (paper `sa-tcp`, section 4.4).
//!
//! There are two chains. [`paper`] is figure 6, reconstructed from the text of the paper.
//! [`refined`] models TCP implementations: the retransmission timeout differs from the round-trip
//! time, doubles with each loss, keeps running while the application is silent, and is the only
//! congestion response of such a sender.

mod paper;
mod refined;
pub(crate) mod timer_wait;

use super::{Elimination, Rates};
use crate::model_rules::ModelRules;
use crate::root_finding::{Evaluation, falling_root, secant_root};

pub use paper::paper;
pub use refined::refined;

/// TCP parameters of a meter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterTcp {
    /// Vegas instead of Reno.
    pub vegas: bool,
    /// Largest window in segments: 1 or 2.
    pub window: u32,
    /// The retransmission timer.
    pub timer: Timer,
    /// Behaviour after a silence longer than the timeout; not part of the paper's chain.
    pub restart: Restart,
}

/// Restart behaviour after a silence longer than the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// No change.
    #[default]
    Never,
    /// The window restarts at one segment until a window of two has been acknowledged (RFC 5681,
    /// section 4.1, with an initial window of one segment; ns-2's `slow_start_restart_`).
    OneSegment {
        /// Whether the silence is measured from the last acknowledgement (ns-2) instead of the last
        /// segment.
        from_ack: bool,
    },
    /// The timer keeps running and doubles whenever it fires, while the window stays at two
    /// segments; the next transmission does not restart the timer (ns-2's Vegas,
    /// `slow_start_restart_`).
    TimerRunsOn,
}

/// The retransmission timer (RFC 6298).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timer {
    /// Minimum timeout, in seconds.
    pub min: f64,
    /// Maximum timeout, in seconds.
    pub max: f64,
    /// Whether the minimum applies to the variance term instead of the sum (Linux).
    pub floor_on_variance: bool,
    /// Whether timestamps measure the round-trip time of retransmitted segments, so that their
    /// acknowledgement ends the back-off. Without timestamps, the back-off persists until a segment
    /// that was sent once is acknowledged (Karn's algorithm).
    pub timestamps: bool,
}

/// The traffic demand of a meter's application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// On-off source: while on, it always has data to send. The on and off periods are exponential
    /// with these means, in seconds.
    Greedy {
        /// Mean length of a burst.
        on: f64,
        /// Mean length of a silence.
        off: f64,
    },
    /// Messages at a given rate, independent of the connection.
    Messages {
        /// Messages per second.
        per_second: f64,
        /// Segments in each.
        segments: u32,
    },
}

/// Network conditions of a sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// Probability that a segment is lost.
    pub loss: f64,
    /// Mean round-trip time, in seconds.
    pub rtt: f64,
    /// Correlation of the losses of two segments that are sent together: 1 if no packet leaves the
    /// queue in between, so that the second is lost whenever the first is; 0 if their losses are
    /// independent.
    pub pairing: f64,
    /// ln E[e^(−r(R − E R))] for the round-trip time R and the relaxation rate r of the application
    /// ([`Demand::relaxation_rate`]): 0 if all round-trip times are equal.
    ///
    /// The probability that a burst continues after a round trip is a convex function of the
    /// round-trip time, so that varying round-trip times continue more bursts than their mean does.
    pub variation: f64,
    /// Mean time from the acknowledgement of a segment until the receive window opens again, in
    /// seconds; 0 for a receiver that always offers its window.
    pub window_closed: f64,
}

impl Demand {
    /// Relaxation rate of the on-off process, per second; 0 for messages, which do not depend on
    /// the round-trip time.
    #[must_use]
    pub fn relaxation_rate(&self) -> f64 {
        match self {
            Self::Greedy { on, off } => 1.0 / on + 1.0 / off,
            Self::Messages { .. } => 0.0,
        }
    }
}

/// The rates of a meter under given conditions, and whether they satisfy its application.
#[must_use]
pub fn sent(
    tcp: &MeterTcp,
    demand: &Demand,
    conditions: &Conditions,
    rules: ModelRules,
) -> MeterOutput {
    MeterSolver::default().sent(tcp, demand, conditions, rules)
}

/// [`sent`] with cached state: the elimination plan, the last result, and the end point of the last
/// search.
#[derive(Debug, Clone, Default)]
pub struct MeterSolver {
    elimination: Elimination,
    last: Option<(MeterInput, MeterOutput)>,
    /// −ln(1 − more) of the last search.
    last_search: f64,
}

/// −ln(1 − more) for the largest `more`: always below 1, since the chain is solved from the idle
/// state.
const SEARCH_MAX: f64 = 27.6;

type MeterInput = (MeterTcp, Demand, Conditions, ModelRules);

impl MeterSolver {
    /// As [`sent`].
    pub fn sent(
        &mut self,
        tcp: &MeterTcp,
        demand: &Demand,
        conditions: &Conditions,
        rules: ModelRules,
    ) -> MeterOutput {
        let input = (*tcp, *demand, *conditions, rules);
        match self.last {
            Some((last_input, sent)) if last_input == input => sent,
            _ => {
                let sent = self.search(&input);
                self.last = Some((input, sent));
                sent
            }
        }
    }

    fn search(&mut self, (tcp, demand, conditions, rules): &MeterInput) -> MeterOutput {
        let mut solve = |more: f64| {
            let chain = match rules {
                ModelRules::Paper | ModelRules::Printed => paper(tcp, demand, conditions, more),
                ModelRules::Refined => refined(tcp, demand, conditions, more),
            };
            chain.rates(self.elimination.shares(&chain))
        };
        let Demand::Messages { per_second, segments } = *demand else {
            return MeterOutput { rates: solve(0.0), backlog: false, more: 0.0 };
        };
        // Messages arrive at a fixed rate: either all are sent or the backlog grows without bound.
        // `more`, the share of rounds after which another segment waits, is the value at which both
        // rates are equal.
        let offered = per_second * f64::from(segments);
        // The rate of new segments grows about as 1/(1 − more), so that secant steps in its
        // logarithm converge fast from the end point of the last search.
        let share = |x: f64| -(-x.clamp(0.0, SEARCH_MAX)).exp_m1();
        let mut slope = -1.0;
        let excess = |x: f64| (offered / solve(share(x)).fresh).ln();
        if let Some(x) = secant_root(excess, self.last_search, &mut slope, 1e-11)
            && (0.0..SEARCH_MAX).contains(&x)
        {
            self.last_search = x;
            let more = share(x);
            return MeterOutput { rates: solve(more), backlog: false, more };
        }
        let (low, high) = (0.0, share(SEARCH_MAX));
        let maximum = solve(high);
        if maximum.fresh <= offered {
            return MeterOutput { rates: maximum, backlog: true, more: high };
        }
        let minimum = solve(low);
        if minimum.fresh >= offered {
            return MeterOutput { rates: minimum, backlog: false, more: low };
        }
        let lower = Evaluation { at: low, value: offered - minimum.fresh };
        let upper = Evaluation { at: high, value: offered - maximum.fresh };
        let root = falling_root(|more| offered - solve(more).fresh, lower, upper, 1e-15);
        MeterOutput { rates: solve(root.at), backlog: false, more: root.at }
    }
}

/// The output of a meter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterOutput {
    /// Segments per second.
    pub rates: Rates,
    /// Whether the application offers more than the connection can carry.
    pub backlog: bool,
    /// For messages: share of rounds after which another segment waits.
    pub more: f64,
}

impl Timer {
    /// The timeout after this many doublings, in seconds, at a constant round-trip time.
    ///
    /// RFC 6298, 2.3 and 2.4, with a variance that has decayed to zero: max(RTT, minimum); Linux:
    /// RTT + minimum. 5.5: doubled for each timeout up to the maximum.
    #[must_use]
    pub fn after(&self, doublings: u32, rtt: f64) -> f64 {
        let base = if self.floor_on_variance { rtt + self.min } else { rtt.max(self.min) };
        (base * f64::from(1_u32 << doublings.min(31))).min(self.max.max(rtt))
    }

    /// Doublings after which the timeout is at its maximum; at most 16, as in the simulator.
    #[must_use]
    pub fn doublings(&self, rtt: f64) -> u32 {
        let limit = self.max.max(rtt);
        (0..16).find(|&doublings| self.after(doublings, rtt) >= limit).unwrap_or(16)
    }
}
