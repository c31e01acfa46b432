//! Acknowledged messages: writes the frames of both ends of a [`MessageSession`], and recognises
//! delivered ones by their position in the stream.

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::in_transit::InTransit;
use super::{Carrier, Delivered};
use crate::load::{MessageFrame, MessageSession, Publication};

/// Both ends on a carrier with successive connections.
#[derive(Debug, Clone)]
pub(super) struct MessagePeers {
    load: MessageSession,
    in_transit: InTransit<MessageFrame>,
}

impl MessagePeers {
    pub(super) const fn new(load: MessageSession) -> Self {
        Self { load, in_transit: InTransit::new() }
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.load.next_deadline()
    }

    #[inline]
    pub(super) fn watch(&self, end: FlowEnd) -> u64 {
        self.in_transit.watch(end)
    }

    /// When the messages were ready that have not arrived and have not been given up.
    pub(super) fn undelivered(&self) -> impl Iterator<Item = Instant> {
        self.load.undelivered()
    }

    /// Payload of messages that has arrived, without further copies.
    pub(super) const fn delivered(&self) -> u64 {
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

    /// More data were delivered at an end, or the connection has ended. Returns the next message.
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
        // Data of a connection that has ended count if they have arrived.
        if !self.in_transit.has_arrived(end.peer(), carrier) {
            self.observe_connection(now, carrier);
        }
        self.report(carrier);
        None
    }

    /// The next message that the `to` end forwards.
    pub(super) fn poll_arrival(&mut self) -> Option<Publication> {
        self.load.poll_arrival()
    }

    /// A message is to be sent.
    pub(super) fn push(&mut self, now: Instant, publication: Publication) {
        self.load.push(now, publication);
    }

    fn observe_connection(&mut self, now: Instant, carrier: &impl Carrier) {
        if self.load.handle_connection(now, carrier.connection()) {
            self.in_transit.discard_undelivered(carrier);
        }
    }

    fn report(&mut self, carrier: &mut impl Carrier) {
        if self.load.poll_abort() {
            carrier.abort(FlowEnd::From);
        }
        carrier.require_connection(self.load.needs_connection());
        while let Some((ready, event)) = self.load.poll_event() {
            carrier.record(ready, event);
        }
    }
}
