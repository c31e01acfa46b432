//! Messages that are sent with SYN (TCP Fast Open, RFC 7413).

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::{ConnectionManager, ConnectionTransport};

impl ConnectionManager {
    /// Whether TCP requests cookies, and sends data with SYN once it has one.
    #[must_use]
    pub fn offers_fast_open(&self) -> bool {
        self.rules.fast_open
    }

    /// Writes the messages of the device that wait before SYN is sent.
    pub(super) fn write_with_syn(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
    ) {
        self.carry_waiting(now, FlowEnd::From, u64::MAX, transport);
    }

    /// The server answers messages that have arrived with SYN.
    pub(super) fn answer_early(&mut self, now: Instant, transport: &mut impl ConnectionTransport) {
        if self.rules.fast_open {
            self.write_waiting(now, FlowEnd::To, u64::MAX, transport);
        }
    }
}
