//! Early data of TLS 1.3: messages during the handshake of a resumption (RFC 8446, section 2.3).

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::{ConnectionManager, ConnectionTransport};
use crate::load::connections::tls::EARLY_DATA_MAX;

impl ConnectionManager {
    /// Writes messages that need not wait for the end of the handshake, of which `sent` flights are
    /// sent: those of the device directly after its ClientHello, and those of the server after its
    /// own flight.
    pub(super) fn write_early(
        &mut self,
        now: Instant,
        sent: usize,
        transport: &mut impl ConnectionTransport,
    ) {
        match sent {
            0 => {}
            1 if self.connection.carried[FlowEnd::From as usize] == 0 => {
                self.write_waiting(now, FlowEnd::From, EARLY_DATA_MAX, transport);
            }
            1 => {}
            _ => self.write_waiting(now, FlowEnd::To, u64::MAX, transport),
        }
    }
}
