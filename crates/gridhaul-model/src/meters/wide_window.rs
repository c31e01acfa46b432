//! Meters that need a larger window than the two segments of the equations.
//!
//! The chain of a meter has at most two segments outstanding. If its messages need more and the
//! receive window permits more, the backlog is one of the equations only: a real sender carries the
//! messages, and loads the links with them.

use super::layout::{FlowEntry, Layout};
use super::region::region;
use crate::fixed_point::Solution;
use crate::model_rules::ModelRules;

/// Utilisation of a link of the path from which the backlog is that of the link.
const SATURATED: f64 = 0.9;

/// Loss above which the windows of senders have about two segments, whatever their largest is
/// (square-root formula: sqrt(1.5 / 0.2) = 2.7).
const LOSS_MAX: f64 = 0.2;

/// Whether a flow has a backlog because of the window of the equations.
pub(super) fn is_limited(layout: &Layout, solution: &Solution, place: &FlowEntry) -> bool {
    if layout.network.rules != ModelRules::Refined || place.receive_window <= 2 {
        return false;
    }
    let (network, solution) = match place.upstream {
        None => (&layout.network, solution),
        Some(index) => region(layout, solution, &layout.upstream[index]),
    };
    let path = &network.classes[place.class].path;
    // A buffer that closes windows may limit the meters to fewer segments.
    let is_free = |&index: &usize| {
        network.resources[index].window_limit.is_none()
            && solution.resources[index].carried < SATURATED
    };
    let stream = &solution.classes[place.class];
    stream.sent.backlog && stream.loss <= LOSS_MAX && path.iter().all(is_free)
}

/// Whether a flow of the network has such a backlog, so that the loads of its links are unknown.
pub(super) fn limits_any(layout: &Layout, solution: &Solution) -> bool {
    layout.flows.iter().any(|place| is_limited(layout, solution, place))
}

/// The warning about such a flow.
pub(super) fn warning(place: &FlowEntry) -> String {
    format!(
        "the messages need more than two segments in each round trip, which is the largest window \
         of the equations; the receive window has {}, and a sender may carry them: goodput and \
         delay, and the loads of the links, are unknown; use backend `sim`, or set \
         `receive_window` to \"2 segments\"",
        place.receive_window
    )
}
