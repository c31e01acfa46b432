//! Upstream connections for which the equations of message delay are too optimistic.
//!
//! The equations serve an upstream connection at its mean rate. After a loss, a TCP connection
//! halves its window: if the arrivals of a round trip exceed the half, messages wait until the
//! window has grown again, by a segment per round trip (RFC 5681, section 3.1). With few segments
//! in flight, a lost segment waits for the timer, whose estimate the equations do not follow, and
//! the segments after it wait as well. Close to saturation of a link, connections that wait for a
//! timer accumulate messages and send them as bursts.

use super::layout::{Layout, Upstream};
use crate::fixed_point::{DataSource, Solution};
use crate::model_rules::ModelRules;

/// Segments in a round trip above which a reduced window is too small for the arrivals: it keeps
/// two segments (RFC 5681, equation 4).
const WINDOW_MIN: f64 = 3.0;

/// Share of the time with a reduced window from which it determines the 98th percentile of the
/// delay.
const REDUCED_MIN: f64 = 0.02;

/// Share of the messages that wait for retransmissions from which they determine the 98th
/// percentile. Below 2 %, because the timers of the simulation are longer than those of the
/// equations and the queues contribute to the longest delays: with 0.8 % the percentile was 27 %
/// too short.
const DELAYED_MIN: f64 = 0.006;

/// Utilisation of a link from which the delay is too short (docs/limitations/model-meters.md: 97 %
/// of the capacity).
const SATURATED: f64 = 0.9;

/// The key of the connections and the warning, if the delay of their messages is outside the range
/// of the equations.
pub(super) fn warning(
    layout: &Layout,
    solution: &Solution,
    upstream: &Upstream,
) -> Option<(String, String)> {
    let class = &layout.network.classes[upstream.class];
    if layout.network.rules != ModelRules::Refined {
        return None;
    }
    let DataSource::Aggregator { tcp, .. } = &class.source else { return None };
    let stream = &solution.classes[upstream.class];
    // In full segments: windows count bytes.
    let full = upstream.sizes.payload / (8 * upstream.mss) as f64;
    let in_flight = stream.sent.rates.offered * stream.rtt * full;
    // Half of the window, one segment per round trip, and so often.
    let recovery_s = in_flight / 2.0 * stream.rtt;
    let reduced = stream.sent.rates.offered * stream.loss * recovery_s;
    // Each loss delays its own message and those that arrive until the retransmission is
    // acknowledged.
    let repair_s = tcp.timer.after(0, stream.rtt) + stream.rtt;
    let delayed = stream.loss * (1.0 + stream.sent.rates.offered * repair_s);
    let load =
        class.path.iter().map(|&index| solution.resources[index].carried).fold(0.0, f64::max);
    let cause = if in_flight > WINDOW_MIN && reduced > REDUCED_MIN {
        format!(
            "a loss halves a window of {in_flight:.0} segments for {recovery_s:.1} s, during {:.0} \
             % of the time, and messages wait meanwhile",
            100.0 * reduced.min(1.0)
        )
    } else if delayed > DELAYED_MIN {
        format!(
            "{:.1} % of the messages wait for a retransmission, or for one of an earlier message",
            100.0 * delayed.min(1.0)
        )
    } else if load > SATURATED {
        format!("a link of the path is used at {:.0} % of its capacity", 100.0 * load)
    } else {
        return None;
    };
    Some((
        upstream.name.clone(),
        format!(
            "the delay of messages and their deadlines are outside the range of the equations, and \
             the delay is too short: {cause}; use backend `sim`"
        ),
    ))
}
