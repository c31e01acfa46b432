//! Exchanges (`exchange`): writes the steps of both ends, and derives their completion from the
//! data delivered at each end.

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::in_transit::InTransit;
use super::{Carrier, Delivered};
use crate::load::Exchange;

/// Both ends of an exchange on a carrier.
#[derive(Debug, Clone)]
pub(super) struct ExchangePeers {
    load: Exchange,
    /// The end of the data whose delivery the next step awaits.
    in_transit: InTransit<()>,
}

impl ExchangePeers {
    pub(super) const fn new(load: Exchange) -> Self {
        Self { load, in_transit: InTransit::new() }
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.load.next_deadline()
    }

    /// Delivered bytes at an end at which the data in transit are delivered.
    #[inline]
    pub(super) fn watch(&self, end: FlowEnd) -> u64 {
        self.in_transit.watch(end)
    }

    /// When the exchanges were due that are not complete.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = Instant> {
        self.load.incomplete()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, carrier: &mut impl Carrier) {
        while let Some(due) = self.load.poll_due(now) {
            carrier.announce(due);
        }
        while let Some(step) = self.load.poll_step(now) {
            // The arrival of an empty message could not be detected on a byte stream.
            carrier.write_stream(step.writer, step.size.get().max(1));
            if self.load.awaits_delivery() {
                self.in_transit.push(step.writer, (), carrier);
            }
        }
    }

    /// More data were delivered at an end. Returns the exchange if it is complete now.
    pub(super) fn poll_delivered(
        &mut self,
        now: Instant,
        end: FlowEnd,
        carrier: &impl Carrier,
    ) -> Option<Delivered> {
        let (id, ()) = self.in_transit.take(end, carrier)?;
        self.load.handle_delivered(now).map(|due| Delivered { id, at: due })
    }
}
