//! A transfer of a given amount (`transfer`).

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::Carrier;

/// A transfer from the `from` end.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// Amount in bytes.
    pub bytes: u64,
    /// When the load starts.
    pub start: Instant,
    /// When the last byte was delivered; [`Instant::NEVER`] before.
    pub completed: Instant,
}

impl Transfer {
    pub(super) const fn new(bytes: u64, start: Instant) -> Self {
        Self { bytes, start, completed: Instant::NEVER }
    }

    /// Whether the last byte was delivered.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.completed != Instant::NEVER
    }

    pub(super) fn write(&self, carrier: &mut impl Carrier) {
        carrier.write_stream(FlowEnd::From, self.bytes);
        carrier.close(FlowEnd::From);
    }

    /// Delivered bytes at the `to` end at which the transfer is complete.
    pub(super) fn watch(&self) -> u64 {
        if self.is_complete() { u64::MAX } else { self.bytes }
    }

    pub(super) fn handle_delivered(&mut self, now: Instant, carrier: &mut impl Carrier) {
        if !self.is_complete() && carrier.delivered(FlowEnd::To) >= self.bytes {
            self.completed = now;
            carrier.close(FlowEnd::To);
        }
    }
}
