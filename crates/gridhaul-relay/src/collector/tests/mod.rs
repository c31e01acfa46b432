//! Rules of a collector, each shown alone. Random schedules of collector and head are among the
//! tests of the head.

mod durability;
mod fairness;
mod messages;
mod session;

use super::{Settings, Tier};

/// Settings of a collector with one shard and without compression.
fn settings(tier: Tier) -> Settings {
    Settings {
        name: "collector".to_owned(),
        tier,
        shards: 1,
        at_risk: 100_000,
        at_risk_per_meter: 100_000,
        message_limit: 100_000,
        backlog: 1_000_000,
        segment: u64::MAX,
        replies: false,
        compression: false,
    }
}
