//! Settings of a head.

/// Settings of a head. Sizes are in bytes.
#[derive(Debug, Clone)]
pub struct HeadSettings {
    /// Names of the collectors that may connect; empty: all.
    pub collectors: Vec<String>,
    /// Bytes of batches that each connection may have in transit.
    pub window: u64,
    /// Largest size of the records that are not delivered.
    pub backlog: u64,
    /// Size of a segment of the log.
    pub segment: u64,
    /// Whether records are delivered to servers that may reply.
    pub replies: bool,
    /// Largest number of open meters of a collector.
    pub meters: usize,
}

/// Largest number of open meters of a collector, which has a file for each: the usual limit of the
/// kernel (`fs.nr_open`).
pub const METERS_MAX: usize = 1 << 20;
