//! Packet counters of one row of flows.

use gridhaul_core::link::PathCounters;

/// Packet counters since the start of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowCounters {
    /// Data packets from the `from` end to the `to` end. Their delay is that of the links, without
    /// the processing time of the kernel in routers.
    pub data: PathCounters,
    /// Bytes of packets that reached the `to` end.
    pub arrived_bytes: u64,
    /// Bytes of packets that reached the `from` end.
    pub reverse_bytes: u64,
    /// Datagrams lost in either direction.
    pub lost: u64,
    /// Data packets that reached the `to` end with a congestion mark.
    pub marks: u64,
}
