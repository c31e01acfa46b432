//! The meter: a source that is silent for most of the time and then sends a little, with a window
//! of at most two segments (paper `sa-tcp`, section 4.4).
//!
//! There are two sets of rules. [`paper`] is figure 6, reconstructed from the text, since the
//! figure itself is not in it. [`refined`] is what a TCP does: its timer is not a round trip, is
//! doubled with each loss, keeps running when the application falls silent, and is the only brake
//! that such a sender has.

mod paper;
mod refined;
pub(crate) mod timer_wait;

use super::{Elimination, Rates};
use crate::model_rules::ModelRules;
use crate::root_finding::{falling_root, secant_root};

pub use paper::paper;
pub use refined::refined;

/// How a meter's TCP behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterTcp {
    /// Vegas instead of Reno.
    pub vegas: bool,
    /// Largest window in segments: 1 or 2.
    pub window: u32,
    /// The timer.
    pub timer: Timer,
    /// What a silence does that is longer than the timeout. The paper's rules know none.
    pub restart: Restart,
}

/// What a silence longer than the timeout does to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// Nothing.
    #[default]
    Never,
    /// The window is one segment again, as long as a window of two has not been acknowledged
    /// (RFC 5681, section 4.1, with an initial window of one segment; ns-2's `slow_start_restart_`).
    OneSegment {
        /// The silence counts from the last acknowledgement (ns-2) and not from the last segment.
        from_ack: bool,
    },
    /// The timer runs on and is doubled whenever it fires, while the window stays at two segments; what
    /// is sent next does not start it anew (ns-2's Vegas, `slow_start_restart_`).
    TimerRunsOn,
}

/// The retransmission timer (RFC 6298).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timer {
    /// Least timeout, in seconds.
    pub min: f64,
    /// Largest timeout, in seconds.
    pub max: f64,
    /// The floor is on the variance and not on the sum (Linux).
    pub floor_on_variance: bool,
    /// Repeated segments are timed by timestamps, so that their acknowledgement ends the back-off.
    /// Without, it stays until a segment that was sent once is acknowledged (Karn's algorithm).
    pub timestamps: bool,
}

/// What a meter's application wants to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// Silent, then greedy: while on, it sends whatever the connection takes. Exponential lengths
    /// with these means, in seconds.
    Greedy {
        /// Mean length of a burst.
        on: f64,
        /// Mean length of a silence.
        off: f64,
    },
    /// Messages, whatever the connection does.
    Messages {
        /// Messages per second.
        per_second: f64,
        /// Segments in each.
        segments: u32,
    },
}

/// What the network does to a sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// Probability that a segment is lost.
    pub loss: f64,
    /// Mean round trip, in seconds.
    pub rtt: f64,
    /// How far the second of two segments that are sent together meets the same queue as the
    /// first: 1 if nothing leaves it in between, so that the second is lost whenever the first is;
    /// 0 if their losses are independent.
    pub pairing: f64,
    /// ln E[e^(−r(R − E R))] for the round trip R and the rate r at which the application forgets whether
    /// it was on ([`Demand::forgets`]): 0 if all round trips are equal.
    ///
    /// A burst goes on after a round trip with a probability that falls convexly with its length, so that
    /// round trips that vary let more bursts go on than their mean does.
    pub variation: f64,
}

impl Demand {
    /// Rate at which the application forgets whether it was on, per second; 0 for messages, which do not
    /// depend on the round trip.
    #[must_use]
    pub fn forgets(&self) -> f64 {
        match self {
            Self::Greedy { on, off } => 1.0 / on + 1.0 / off,
            Self::Messages { .. } => 0.0,
        }
    }
}

/// What a meter sends under given conditions, and whether it keeps up with its application.
#[must_use]
pub fn sent(
    tcp: &MeterTcp,
    demand: &Demand,
    conditions: &Conditions,
    rules: ModelRules,
) -> MeterOutput {
    MeterSolver::default().sent(tcp, demand, conditions, rules)
}

/// [`sent`] with a memory: the plan of the elimination, the last answer, and where the search for
/// it ended.
#[derive(Debug, Clone, Default)]
pub struct MeterSolver {
    elimination: Elimination,
    last: Option<(MeterInput, MeterOutput)>,
    /// −ln(1 − more) of the last search.
    near: f64,
}

/// −ln(1 − more) of the largest share: never quite all, since idle is the state that the chain is
/// solved from.
const MOST: f64 = 27.6;

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
        let asked = (*tcp, *demand, *conditions, rules);
        match self.last {
            Some((seen, sent)) if seen == asked => sent,
            _ => {
                let sent = self.search(&asked);
                self.last = Some((asked, sent));
                sent
            }
        }
    }

    fn search(&mut self, (tcp, demand, conditions, rules): &MeterInput) -> MeterOutput {
        let mut solve = |more: f64| {
            let chain = match rules {
                ModelRules::Paper => paper(tcp, demand, conditions, more),
                ModelRules::Refined => refined(tcp, demand, conditions, more),
            };
            chain.rates(self.elimination.shares(&chain))
        };
        let Demand::Messages { per_second, segments } = *demand else {
            return MeterOutput { rates: solve(0.0), backlog: false, more: 0.0 };
        };
        // Of messages that come whatever happens, all are sent or the backlog grows without end.
        // The share of rounds after which another segment waits is what makes the two rates equal.
        let wanted = per_second * f64::from(segments);
        // What is sent anew grows about as 1/(1 − more), so that secants in its logarithm arrive
        // soon, from where the last search ended.
        let share = |x: f64| -(-x.clamp(0.0, MOST)).exp_m1();
        let mut slope = -1.0;
        let excess = |x: f64| (wanted / solve(share(x)).fresh).ln();
        if let Some(x) = secant_root(excess, self.near, &mut slope, 1e-11)
            && (0.0..MOST).contains(&x)
        {
            self.near = x;
            let more = share(x);
            return MeterOutput { rates: solve(more), backlog: false, more };
        }
        let (low, high) = (0.0, share(MOST));
        let most = solve(high);
        if most.fresh <= wanted {
            return MeterOutput { rates: most, backlog: true, more: high };
        }
        let least = solve(low);
        if least.fresh >= wanted {
            return MeterOutput { rates: least, backlog: false, more: low };
        }
        let ends = ((low, wanted - least.fresh), (high, wanted - most.fresh));
        let root = falling_root(|more| wanted - solve(more).fresh, ends.0, ends.1, 1e-15);
        MeterOutput { rates: solve(root.at), backlog: false, more: root.at }
    }
}

/// What a meter sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterOutput {
    /// Segments per second.
    pub rates: Rates,
    /// More comes from the application than the connection can carry.
    pub backlog: bool,
    /// Of messages: share of rounds after which another segment waits.
    pub more: f64,
}

impl Timer {
    /// The timeout after this many doublings, in seconds, at a steady round trip.
    ///
    /// RFC 6298, 2.3 and 2.4, with a variance that has died away: max(RTT, minimum); Linux:
    /// RTT + minimum. 5.5: doubled for each timeout up to the maximum.
    #[must_use]
    pub fn after(&self, doublings: u32, rtt: f64) -> f64 {
        let base = if self.floor_on_variance { rtt + self.min } else { rtt.max(self.min) };
        (base * f64::from(1_u32 << doublings.min(31))).min(self.max.max(rtt))
    }

    /// Doublings after which the timeout grows no more; at most 16, as in the senders.
    #[must_use]
    pub fn doublings(&self, rtt: f64) -> u32 {
        let limit = self.max.max(rtt);
        (0..16).find(|&doublings| self.after(doublings, rtt) >= limit).unwrap_or(16)
    }
}
