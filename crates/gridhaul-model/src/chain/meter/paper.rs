//! The meter of figure 6, from the text of sections 4.2 to 4.4.

use super::{Conditions, Demand, MeterTcp};
use crate::chain::{Chain, State};

/// Idle, windows of one and two segments, timeout.
///
/// What the text leaves open and what is assumed here:
///
/// - a timeout lasts as long as the stack's timer without back-off, and then begins again with one
///   segment; the text names no rate for it;
/// - the active time ends in the states that send. What is lost is repeated before a meter falls
///   silent, since data arrive intact (section 3.1); were it given up at the end of the active
///   time, 400,000 meters would lose 0.66 over one hop, where section 5 states more than 0.7;
/// - Vegas repeats a single loss at once from a window of two and stays there (section 4.4: one
///   duplicate acknowledgement is enough); Reno waits for its timer.
///
/// For messages, `more` is the share of rounds after which another segment waits.
#[must_use]
pub fn paper(tcp: &MeterTcp, demand: &Demand, conditions: &Conditions, more: f64) -> Chain {
    let (p, delta) = (conditions.loss, 1.0 / conditions.rtt);
    let q = 1.0 - p;
    let (begin, end) = match *demand {
        Demand::Greedy { on, off } => (1.0 / off, 1.0 / on),
        // An active time ends when nothing more waits; it lasts (1 − more) rounds on average.
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
    let again = 1.0 / tcp.timer.after(0, conditions.rtt);
    chain.transition(timeout, one, again, "sent again after a timeout: 1/RTO (assumed)");
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
            "one lost, one duplicate, sent again: δP₁² (section 4.4)",
        );
        chain.transition(two, timeout, delta * p * p, "both lost: δ(1 − q₂ − P₁²)");
    } else {
        chain.transition(two, timeout, single + delta * p * p, "any loss: δ(1 − q₂) (section 4.3)");
    }
    chain
}
