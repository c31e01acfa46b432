//! The meter of figure 6, from the text of sections 4.2 to 4.4.

use super::{Conditions, Demand, MeterTcp};
use crate::chain::{Chain, State};

/// Idle, windows of one and two segments, timeout.
///
/// What the text leaves open and what is assumed here:
///
/// - a timeout lasts one round trip on average, as every transition of section 4.3 has the rate δ,
///   and then begins again with one segment;
/// - the end of the active time leads from every state to idle, with unfinished data given up, as
///   the chain "transits between active and idle states";
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
    chain.rule(idle, one, begin, "the active time begins: rate 1/E[T_off] (section 4.4)");
    chain.rule(one, idle, end, "the active time ends: rate β = 1/E[T_on] (section 4.4)");
    chain.rule(timeout, idle, end, "the active time ends: rate β (section 4.4; assumed)");
    chain.rule(one, timeout, delta * p, "the segment is lost: δ(1 − q₁) (section 4.3)");
    chain.rule(timeout, one, delta, "sent again: δ (assumed)");
    if tcp.window < 2 {
        chain.rule(one, one, delta * q, "the window is limited to one segment");
        return chain;
    }
    let two = chain.state(state("window", 2));
    chain.rule(one, two, delta * q, "acknowledged, the window grows: δq₁ (section 4.3)");
    chain.rule(two, two, delta * q * q, "acknowledged, the window is limited to two: δq₂");
    chain.rule(two, idle, end, "the active time ends: rate β (section 4.4)");
    let single = delta * 2.0 * p * q;
    if tcp.vegas {
        chain.rule(two, two, single, "one lost, one duplicate, sent again: δP₁² (section 4.4)");
        chain.rule(two, timeout, delta * p * p, "both lost: δ(1 − q₂ − P₁²)");
    } else {
        chain.rule(two, timeout, single + delta * p * p, "any loss: δ(1 − q₂) (section 4.3)");
    }
    chain
}
