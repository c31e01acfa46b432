//! Aggregator buffers that are too small for the equations.
//!
//! The equations serve the buffer of an aggregator at the mean rate of its upstream connection. A
//! TCP connection sends a window and then waits for a round trip, or for its timer after a loss. A
//! buffer below the arrivals of such a pause overflows although the mean rate suffices. In
//! addition, a dropped segment leaves a gap in the data of its meter, and the aggregator reserves
//! space for the messages of the gap (`pep/aggregation`), which blocks a small buffer.

use gridhaul_scenario::units::counted;

use super::layout::{Layout, Upstream};
use super::region::region;
use crate::fixed_point::{DataSource, Solution};
use crate::model_rules::ModelRules;

/// Largest buffer in messages that a single gap may block: up to there, the loss of the simulation
/// was 0.7 above and 0.7 below that of the equations (docs/limitations/model-meters.md).
const SMALL_MESSAGES: f64 = 10.0;

/// Arrivals during a pause that the buffer has to hold, relative to their mean.
const MARGIN: f64 = 2.0;

/// Loss upstream from which pauses are timeouts. A rare one is enough: at 114 messages/s, a loss of
/// 0.02 % causes a pause in 44 s, and the rejected segments wait for the timers of their meters, so
/// that the meters lost 5 % of their segments.
const LOSS_MIN: f64 = 1e-5;

/// The key of a buffer that is too small for the equations, and the warning.
pub(super) fn warning(
    layout: &Layout,
    solution: &Solution,
    upstream: &Upstream,
) -> Option<(String, String)> {
    if layout.network.rules != ModelRules::Refined {
        return None;
    }
    let DataSource::Aggregator { tcp, .. } = &layout.network.classes[upstream.class].source else {
        return None;
    };
    let (network, inner) = region(layout, solution, upstream);
    let (buffer, response) = (network.resources[0], inner.resources[0]);
    let closes_windows = buffer.window_limit.is_some();
    if buffer.window_limit.is_some_and(|limit| limit <= buffer.capacity) {
        // Each meter has a place in the buffer, so that nothing is dropped.
        return None;
    }
    let message = layout.flows.iter().find(|flow| flow.upstream.is_some());
    let in_each = message.map_or(1.0, |flow| f64::from(flow.sizes.segments));
    let messages = f64::from(buffer.capacity) / in_each;
    let stream = &solution.classes[upstream.class];
    let timer_s = if stream.loss > LOSS_MIN { tcp.timer.min } else { 0.0 };
    let pause_s = stream.rtt + timer_s;
    let arriving = response.rho / response.service / in_each * pause_s;
    // In overload, the loss follows from the rates, whatever the length of the pauses.
    let overflows = !closes_windows && response.rho < 1.0 && messages < MARGIN * arriving;
    if messages > SMALL_MESSAGES && !overflows {
        return None;
    }
    let minimum = (MARGIN * arriving).max(SMALL_MESSAGES).floor() + 1.0;
    Some((
        format!("node.{}.aggregator.buffer", upstream.node()),
        format!(
            "a buffer for {} is outside the range of the equations, and so are \
                the loss and delay of its meters: {arriving:.1} messages arrive while the upstream \
                connection waits for an acknowledgement or a timeout ({pause_s:.2} s), but the \
                equations assume a service without pauses; use at least {minimum:.0} messages, or \
                backend `sim`",
            counted(messages.round() as u64, "message")
        ),
    ))
}
