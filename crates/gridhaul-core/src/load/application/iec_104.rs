//! IEC 60870-5-104 (`iec_104`): writes the frames of both stations, and recognises delivered ones
//! by their position in the stream.

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::in_transit::InTransit;
use super::{Carrier, Delivered};
use crate::load::{Iec104, Iec104Frame};

/// Both stations on a carrier.
#[derive(Debug, Clone)]
pub(super) struct Iec104Stations {
    load: Iec104,
    in_transit: InTransit<Iec104Frame>,
}

impl Iec104Stations {
    pub(super) const fn new(load: Iec104) -> Self {
        Self { load, in_transit: InTransit::new() }
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.load.next_deadline()
    }

    /// Delivered bytes at an end at which the next frame is complete; [`u64::MAX`] without a frame.
    #[inline]
    pub(super) fn watch(&self, end: FlowEnd) -> u64 {
        self.in_transit.watch(end)
    }

    /// When the values were ready that have not been delivered.
    pub(super) fn undelivered(&self) -> impl Iterator<Item = Instant> {
        self.load.undelivered()
    }

    /// Payload of I frames that has arrived, without further copies; `None` on a single connection.
    pub(super) fn delivered(&self) -> Option<u64> {
        self.load.delivered()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, carrier: &mut impl Carrier) {
        self.observe_connection(now, carrier);
        while let Some(ready) = self.load.poll_ready(now) {
            carrier.announce(ready);
        }
        while let Some((sender, frame)) = self.load.poll_frame(now) {
            carrier.write_stream(sender, self.load.size(frame));
            self.in_transit.push(sender, frame, carrier);
        }
        self.report(carrier);
    }

    /// More data were delivered at an end, or the connection has ended. Returns the next frame with
    /// values.
    pub(super) fn poll_delivered(
        &mut self,
        now: Instant,
        end: FlowEnd,
        carrier: &mut impl Carrier,
    ) -> Option<Delivered> {
        while let Some((id, frame)) = self.in_transit.take(end, carrier) {
            if let Some(ready) = self.load.handle_frame(now, end, frame) {
                return Some(Delivered { id, at: ready });
            }
        }
        self.observe_connection(now, carrier);
        self.report(carrier);
        None
    }

    fn observe_connection(&mut self, now: Instant, carrier: &impl Carrier) {
        if self.load.handle_connection(now, carrier.connection()) {
            self.in_transit.discard_undelivered(carrier);
        }
    }

    fn report(&mut self, carrier: &mut impl Carrier) {
        while let Some(end) = self.load.poll_abort() {
            carrier.abort(end);
        }
        while let Some((ready, event)) = self.load.poll_event() {
            carrier.record(ready, event);
        }
    }
}
