//! Proof that records are stored as the durability tier demands.

use crate::log::Durable;
use crate::protocol::AckNumber;

/// Sequence number before which the records of a shard are stored. Nothing else lets a collector
/// confirm data to a meter: FIN of the meter is answered, and its bytes are no longer at risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredBefore(u64);

impl StoredBefore {
    /// Tier `memory`: the collector has the records. A crash loses them, as the tier states.
    pub(super) const fn in_memory(next: u64) -> Self {
        Self(next)
    }

    /// Tier `local`: the records are in the durable part of the collector's log.
    pub(super) const fn in_log(next: Durable<u64>) -> Self {
        Self(next.position())
    }

    /// Tier `server`: the head has confirmed the records.
    pub(super) const fn at_head(next: AckNumber) -> Self {
        Self(next.get())
    }

    pub(super) const fn next(self) -> u64 {
        self.0
    }
}
