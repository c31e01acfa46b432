//! Conditions of the first transmissions of a meter: back-off, loss and remaining timer.

use super::super::{Conditions, Demand, MeterTcp, Restart};
use super::{FIRST, GAP, MIXED, Pair, begin, kinds, refined};
use crate::chain::Elimination;

/// Segments that are sent for the first time under the same conditions.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::chain::meter) struct FirstTransmission {
    /// Their share of all new segments, up to a constant factor.
    pub(in crate::chain::meter) share: f64,
    /// Probability that they wait for the timer, because they or a preceding segment are lost.
    pub(in crate::chain::meter) delayed_share: f64,
    /// Doublings of the timeout at that time.
    pub(in crate::chain::meter) doublings: u32,
    /// Remaining time of the timer in seconds, as equally likely values.
    pub(in crate::chain::meter) waits: Vec<f64>,
}

/// The first transmissions in the stationary state.
pub(in crate::chain::meter) fn first_transmissions(
    tcp: &MeterTcp,
    demand: &Demand,
    conditions: &Conditions,
    more: f64,
    elimination: &mut Elimination,
) -> Vec<FirstTransmission> {
    let chain = refined(tcp, demand, conditions, more);
    let kinds = kinds(tcp.restart, conditions);
    let (p, none) = (conditions.loss, Pair::new(conditions).none_lost);
    // A message of several segments is delayed if any segment of a round is lost; of two
    // single-segment messages, only the second is delayed by a loss of the first.
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
        let mut add = |delayed_share: f64, doublings: u32, wait: f64| {
            starts.push(FirstTransmission::timed(sent, delayed_share, doublings, wait));
        };
        match (kind, state.fresh) {
            (FIRST, fresh) if tcp.restart == Restart::TimerRunsOn => {
                let waits = remaining_timer(begin(demand), full);
                let (one, two) = if fresh > 1 { (first, 1.0 - none) } else { (p, p) };
                let delayed_share = f64::midpoint(one, two);
                let share = sent * f64::from(fresh);
                starts.push(FirstTransmission { share, delayed_share, doublings: d, waits });
            }
            (_, 2) => {
                add(first, d, full);
                add(1.0 - none, d, full);
            }
            (MIXED, _) => add(1.0 - none, d, full),
            // Vegas retransmits the segment after the gap after one round trip.
            (GAP, _) => add(1.0, 0, if tcp.vegas { conditions.rtt } else { full }),
            _ => add(p, d, full),
        }
    }
    starts
}

/// Remaining time of a timer that was started by the last acknowledgement, at the start of a burst,
/// as equally likely values. The silence before the burst is exponential and shorter than the
/// timeout.
fn remaining_timer(begin: f64, timeout: f64) -> Vec<f64> {
    let below = -(-begin * timeout).exp_m1();
    let left = |step: u32| {
        let share = (f64::from(step) + 0.5) / 8.0;
        let ran = if below > 1e-12 { -(-share * below).ln_1p() / begin } else { share * timeout };
        (timeout - ran).max(0.0)
    };
    (0..8).map(left).collect()
}
