//! What is counted of the packets of one row of flows.

use gridhaul_core::link::PathCounters;

/// From the start of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Data packets from the `from` end to the `to` end. The time that they take is that on the
    /// links; what a router's kernel adds is left out.
    pub data: PathCounters,
    /// Bytes of packets that reached the `to` end.
    pub arrived_bytes: u64,
    /// Bytes of packets that came back to the `from` end.
    pub returned_bytes: u64,
    /// Datagrams lost on either way.
    pub lost: u64,
}
