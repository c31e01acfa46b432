//! The part of a network before an aggregator.

use super::layout::{Layout, Upstream};
use crate::fixed_point::{DataSource, Network, Solution};

/// The region of an aggregator and its solution.
pub(super) fn region<'l>(
    layout: &'l Layout,
    solution: &'l Solution,
    upstream: &Upstream,
) -> (&'l Network, &'l Solution) {
    let DataSource::Aggregator { region, .. } = &layout.network.classes[upstream.class].source
    else {
        unreachable!("an upstream group is fed by an aggregator");
    };
    let inner = solution.classes[upstream.class].region.as_deref();
    (&region.network, inner.expect("an aggregator's class is solved with its region"))
}
