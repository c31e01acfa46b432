//! Sequence numbers of all sources.

use std::collections::BTreeMap;

use super::sources::HeadState;
use crate::log::Durable;

/// Sequence numbers after the last records, by epoch and shard.
pub(super) type Positions = BTreeMap<(u64, u16), u64>;

/// Sequence numbers that are expected in a state.
pub(super) fn positions(state: &HeadState) -> Positions {
    let sources = state.sources.iter();
    sources
        .flat_map(|(&epoch, source)| {
            source.expected.iter().map(move |(&shard, &next)| ((epoch, shard), next))
        })
        .collect()
}

/// Sequence number of the first record of a source that is not durable.
pub(super) fn next_durable(durable: &Durable<Positions>, source: (u64, u16)) -> Durable<u64> {
    durable.map(|positions| positions.get(&source).copied().unwrap_or(0))
}
