//! Checks that packets use the delivery opportunities of a trace.

use std::sync::Arc;

use gridhaul_core::link::PacketTransit;
use gridhaul_scenario::scenario::Deliveries;
use gridhaul_scenario::units::Instant;

use super::LinkRule;

/// Checks that each transmission begins and ends at an opportunity, and that no packet ends before
/// the opportunities have had room for it and the packets before it.
#[derive(Debug, Clone)]
pub(super) struct OpportunityCheck {
    deliveries: Arc<Deliveries>,
    /// Room of all opportunities up to the end of the previous packet.
    used: u128,
}

impl OpportunityCheck {
    pub(super) const fn new(deliveries: Arc<Deliveries>) -> Self {
        Self { deliveries, used: 0 }
    }

    /// A packet was transmitted. `in_order` states whether packets leave in the order of their
    /// transmission.
    pub(super) fn check<P>(
        &mut self,
        transit: &PacketTransit<P>,
        in_order: bool,
    ) -> Result<(), LinkRule> {
        let PacketTransit { started, sent, bytes, .. } = *transit;
        if !self.is_opportunity(started) || !self.is_opportunity(sent) {
            return Err(LinkRule::NoOpportunity);
        }
        if in_order {
            let room = u128::from(Deliveries::ROOM);
            let before = u128::from(self.deliveries.first_from(started)) * room;
            self.used = self.used.max(before) + u128::from(bytes + Deliveries::PACKET_HEADER);
            let last = (self.used - 1) / room;
            if self.deliveries.time(last as u64) > sent {
                return Err(LinkRule::TransmissionTooShort);
            }
        }
        Ok(())
    }

    fn is_opportunity(&self, at: Instant) -> bool {
        self.deliveries.time(self.deliveries.first_from(at)) == at
    }
}
