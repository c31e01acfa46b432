//! The meter of figure 6, from the text of sections 4.2 to 4.4.

use super::{Conditions, Demand, MeterTcp};
use crate::chain::{Chain, State};

/// Idle, windows of one and two segments, timeout.
///
/// Assumptions where the paper is not explicit:
///
/// - a timeout lasts for the stack's timeout without back-off, and the sender restarts with one
///   segment; the paper gives no rate for this transition;
/// - the active time ends only in the sending states. Lost segments are retransmitted before a
///   meter falls silent, since data arrive intact (section 3.1); if they were discarded at the end
///   of the active time, the loss of 400,000 meters over one hop would be 0.66, where section 5
///   states more than 0.7;
/// - Vegas retransmits a single loss at once from a window of two and keeps that window (section
///   4.4: one duplicate acknowledgement is enough); Reno waits for a timeout.
///
/// For messages, `more` is the share of rounds after which another segment waits.
#[must_use]
pub fn paper(tcp: &MeterTcp, demand: &Demand, conditions: &Conditions, more: f64) -> Chain {
    let (p, delta) = (conditions.loss, 1.0 / conditions.rtt);
    let q = 1.0 - p;
    let (begin, end) = match *demand {
        Demand::Greedy { on, off } => (1.0 / off, 1.0 / on),
        // An active time ends when no segment waits; its rate of ending is (1 − more) per round.
        Demand::Messages { per_second, .. } => (per_second, (1.0 - more) * delta),
    };
    let mut chain = Chain::new();
    let idle = chain.state(State::silent("idle"));
    let state = |phase, segments| {
        let arriving = f64::from(segments) * q;
        State { phase, segments, fresh: segments, arriving, rounds: delta, mark: None }
    };
    let one = chain.state(state("window", 1));
    let timeout = chain.state(State::silent("timeout"));
    chain.transition(idle, one, begin, "the active time begins: rate 1/E[T_off] (section 4.4)");
    chain.transition(one, idle, end, "the active time ends: rate β = 1/E[T_on] (section 4.4)");
    chain.transition(one, timeout, delta * p, "the segment is lost: δ(1 − q₁) (section 4.3)");
    let after_timeout = 1.0 / tcp.timer.after(0, conditions.rtt);
    chain.transition(timeout, one, after_timeout, "retransmitted after a timeout: 1/RTO (assumed)");
    if tcp.window < 2 {
        chain.transition(one, one, delta * q, "the window is limited to one segment");
        return chain;
    }
    let two = chain.state(state("window", 2));
    chain.transition(one, two, delta * q, "acknowledged, the window grows: δq₁ (section 4.3)");
    chain.transition(two, two, delta * q * q, "acknowledged, the window is limited to two: δq₂");
    chain.transition(two, idle, end, "the active time ends: rate β (section 4.4)");
    let single = delta * 2.0 * p * q;
    if tcp.vegas {
        chain.transition(
            two,
            two,
            single,
            "one lost, one duplicate acknowledgement, retransmitted: δP₁² (section 4.4)",
        );
        chain.transition(two, timeout, delta * p * p, "both lost: δ(1 − q₂ − P₁²)");
    } else {
        chain.transition(two, timeout, single + delta * p * p, "any loss: δ(1 − q₂) (section 4.3)");
    }
    chain
}
