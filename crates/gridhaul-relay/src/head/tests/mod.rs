//! A collector and a head on models of disks and networks: random schedules with kills and power
//! failures of either.

mod batches;
mod credit;
mod gaps;
mod limits;
mod schedules;
#[cfg(feature = "daemon")]
mod servers;
mod streams;
mod versions;
mod world;

use crate::protocol::{Hello, PROTOCOL_VERSION};

/// The greeting of a collector with one empty log of this epoch.
const fn hello(collector: &str, epoch: u64) -> Hello<'_> {
    Hello {
        version: PROTOCOL_VERSION,
        collector,
        epoch,
        shard: 0,
        shards: 1,
        oldest: 0,
        next: 0,
        replies: false,
        compression: false,
    }
}
