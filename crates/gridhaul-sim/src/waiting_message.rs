//! Messages that wait at an aggregator or are in flight on its upstream connection.

use gridhaul_scenario::units::Instant;

/// A message that an aggregator forwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingMessage {
    /// Position after its last byte in the stream of the upstream connection.
    pub end: u64,
    /// When the application wrote the message; [`Instant::NEVER`] for a chunk of a byte stream.
    pub ready: Instant,
    /// The flow of the message.
    pub origin: u32,
    /// Whether its content was altered on the way.
    pub is_altered: bool,
}
