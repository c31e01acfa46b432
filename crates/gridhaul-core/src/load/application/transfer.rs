//! An amount at once, then the end (`transfer`).

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::Carrier;

/// An amount to be sent from the `from` end.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// Amount in bytes.
    pub bytes: u64,
    /// When the load begins.
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

    /// Bytes delivered at the `to` end with which the transfer is complete.
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
