//! Settings of a collector.

/// When the data of a meter is reported as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// When the collector has it in memory: a crash of the collector loses it.
    Memory,
    /// When it is durable in the collector's log.
    Local,
    /// When it is durable in the head's log.
    Server,
}

impl Tier {
    /// Name in configuration and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Local => "local",
            Self::Server => "server",
        }
    }
}

/// Settings of a collector. Sizes are in bytes.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the collector.
    pub name: String,
    /// Durability.
    pub tier: Tier,
    /// Number of upstream connections.
    pub shards: u16,
    /// Largest number of bytes of all meters that are accepted and not yet stored.
    pub at_risk: u64,
    /// The same for one meter.
    pub at_risk_per_meter: u64,
    /// Largest message that is one record. Longer ones are recorded in parts.
    pub message_limit: u64,
    /// Largest size of the records that the head has not confirmed.
    pub backlog: u64,
    /// Size of a segment of the log.
    pub segment: u64,
    /// Whether servers may send data to meters: FIN of a meter is then answered when the server has
    /// closed as well.
    pub replies: bool,
    /// Whether batches are compressed, if the head accepts it.
    pub compression: bool,
}
