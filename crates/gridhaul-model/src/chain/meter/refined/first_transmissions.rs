//! How new segments set out: what a meter's first transmissions find.

use super::super::{Conditions, Demand, MeterTcp, Restart};
use super::{FIRST, HOLE, MIXED, Pair, begin, kinds, refined};
use crate::chain::Elimination;

/// Segments that are sent for the first time, under some conditions.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::chain::meter) struct FirstTransmission {
    /// Their share of all new segments, up to a factor.
    pub(in crate::chain::meter) share: f64,
    /// Probability that they wait for the timer, being lost or behind one that is.
    pub(in crate::chain::meter) held: f64,
    /// Doublings of the timeout then.
    pub(in crate::chain::meter) doublings: u32,
    /// How long the timer still runs, in seconds: values that are equally likely.
    pub(in crate::chain::meter) waits: Vec<f64>,
}

/// How new segments set out in the stationary state.
pub(in crate::chain::meter) fn first_transmissions(
    tcp: &MeterTcp,
    demand: &Demand,
    conditions: &Conditions,
    more: f64,
    elimination: &mut Elimination,
) -> Vec<FirstTransmission> {
    let chain = refined(tcp, demand, conditions, more);
    let kinds = kinds(tcp.restart);
    let (p, none) = (conditions.loss, Pair::new(conditions).none_lost);
    // A message of several segments is held when any of a round is; of single ones only the second
    // is held by the first.
    let first =
        if matches!(demand, Demand::Messages { segments: 2.., .. }) { 1.0 - none } else { p };
    let mut starts = Vec::new();
    let shares = elimination.shares(&chain);
    for (index, (state, share)) in chain.states().iter().zip(shares).enumerate() {
        let (kind, d) = (index % kinds, (index / kinds) as u32);
        let sent = share * state.rounds;
        if state.fresh == 0 || sent <= 0.0 {
            continue;
        }
        let full = tcp.timer.after(d, conditions.rtt);
        let mut add = |held: f64, doublings: u32, wait: f64| {
            starts.push(FirstTransmission::timed(sent, held, doublings, wait));
        };
        match (kind, state.fresh) {
            (FIRST, fresh) if tcp.restart == Restart::TimerRunsOn => {
                let waits = left_of(begin(demand), full);
                let (one, two) = if fresh > 1 { (first, 1.0 - none) } else { (p, p) };
                let held = f64::midpoint(one, two);
                let share = sent * f64::from(fresh);
                starts.push(FirstTransmission { share, held, doublings: d, waits });
            }
            (_, 2) => {
                add(first, d, full);
                add(1.0 - none, d, full);
            }
            (MIXED, _) => add(1.0 - none, d, full),
            // Vegas repeats what is behind the hole after a round trip.
            (HOLE, _) => add(1.0, 0, if tcp.vegas { conditions.rtt } else { full }),
            _ => add(p, d, full),
        }
    }
    starts
}

/// What is left of a timer that ran since the last acknowledgement, when a burst begins: values
/// that are equally likely. The burst comes after an exponential time that is below the timeout.
fn left_of(begin: f64, timeout: f64) -> Vec<f64> {
    let below = -(-begin * timeout).exp_m1();
    let left = |step: u32| {
        let share = (f64::from(step) + 0.5) / 8.0;
        let ran = if below > 1e-12 { -(-share * below).ln_1p() / begin } else { share * timeout };
        (timeout - ran).max(0.0)
    };
    (0..8).map(left).collect()
}
