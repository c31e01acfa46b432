//! Messages in an aggregator and on its upstream connection.

use gridhaul_scenario::units::Instant;

/// A message on its way from a collector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingMessage {
    /// Position after its last byte in the stream of the upstream connection.
    pub end: u64,
    /// When its application had it ready; [`Instant::NEVER`] for a piece of a byte stream.
    pub ready: Instant,
    /// The flow that it belongs to.
    pub origin: u32,
}
