//! The connection of a flow as the carrier of its application.

use gridhaul_core::load::{Application, Arrival, Carrier, Delivered, InFlightMessages, Message};
use gridhaul_core::tcp::Connection;
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use crate::flow::{Ends, Flow};

impl Flow {
    /// The timer of the application of a TCP flow has expired: it starts, or a message is ready.
    /// Returns the next deadline, [`Instant::NEVER`] if there is none. `on_ready` gets the time of
    /// every message.
    pub(crate) fn on_due(
        &mut self,
        now: Instant,
        in_flight: &mut InFlightMessages,
        on_ready: impl FnMut(Instant),
    ) -> Instant {
        let (Ends::Tcp(ends), Some(app)) = (&mut self.ends, &mut self.app) else {
            return Instant::NEVER;
        };
        app.handle_timeout(now, &mut ConnectionCarrier { ends, on_ready }, in_flight);
        self.notify_at = app.watch(in_flight);
        app.next_deadline()
    }

    /// The next deadline of the application; [`Instant::NEVER`] if there is none.
    pub(crate) fn next_deadline(&self) -> Instant {
        self.app.as_ref().map_or(Instant::NEVER, Application::next_deadline)
    }

    /// During a burst, writes a message if the connection accepts it. Returns whether it was
    /// written.
    #[inline]
    pub(crate) fn poll_write(
        &mut self,
        now: Instant,
        in_flight: &mut InFlightMessages,
        on_ready: impl FnMut(Instant),
    ) -> bool {
        let (Ends::Tcp(ends), Some(app)) = (&mut self.ends, &mut self.app) else { return false };
        let written = app.poll_write(now, &mut ConnectionCarrier { ends, on_ready }, in_flight);
        if written {
            self.notify_at = app.watch(in_flight);
        }
        written
    }

    /// A recorded trace has a message for this TCP flow.
    pub(crate) fn on_recorded(
        &mut self,
        arrival: Arrival,
        in_flight: &mut InFlightMessages,
        on_ready: impl FnMut(Instant),
    ) {
        let (Ends::Tcp(ends), Some(app)) = (&mut self.ends, &mut self.app) else { return };
        app.handle_recorded(arrival, None, &mut ConnectionCarrier { ends, on_ready }, in_flight);
        self.notify_at = app.watch(in_flight);
    }

    /// The datagram that is ready now, if any, and when the next one will be ready.
    pub(crate) fn next_datagram(&mut self, now: Instant) -> Option<(Option<Arrival>, Instant)> {
        let app = self.app.as_mut()?;
        let arrival = app.poll_arrival(now);
        Some((arrival, app.next_deadline()))
    }

    /// Whether the application only writes messages, which [`Self::pop_delivered`] returns.
    #[inline]
    pub(crate) fn has_outbox(&self) -> bool {
        self.app.as_ref().is_some_and(|app| app.outbox().is_some())
    }

    /// Whether the `to` end has the payload for which its application waits.
    #[inline]
    pub(crate) fn has_payload_ready(&self) -> bool {
        matches!(&self.ends, Ends::Tcp([_, to]) if to.receiver().delivered() >= self.notify_at)
    }

    /// [`Self::poll_delivered`] at the `to` end of an application that only writes messages.
    #[inline]
    pub(crate) fn pop_delivered(&mut self, in_flight: &mut InFlightMessages) -> Option<Delivered> {
        let (Ends::Tcp([_, to]), Some(app)) = (&self.ends, &mut self.app) else { return None };
        let outbox = app.outbox_mut()?;
        let delivered = outbox.pop(to.receiver().delivered(), in_flight);
        self.notify_at = outbox.watch(in_flight);
        delivered
    }

    /// An end has received the payload for which its application waits. Returns a message that is
    /// now complete.
    pub(crate) fn poll_delivered(
        &mut self,
        now: Instant,
        end: FlowEnd,
        in_flight: &mut InFlightMessages,
    ) -> Option<Delivered> {
        let (Ends::Tcp(ends), Some(app)) = (&mut self.ends, &mut self.app) else { return None };
        let mut carrier = ConnectionCarrier { ends, on_ready: |_| {} };
        let delivered = app.poll_delivered(now, end, &mut carrier, in_flight);
        self.notify_at = app.watch(in_flight);
        delivered
    }
}

/// A connection as the carrier of an application.
struct ConnectionCarrier<'a, R> {
    ends: &'a mut [Connection; 2],
    /// Called with the time at which each message of the `from` end was ready.
    on_ready: R,
}

impl<R: FnMut(Instant)> Carrier for ConnectionCarrier<'_, R> {
    type Class = ();
    /// The simulator counts bytes and has no payload.
    type Payload = std::convert::Infallible;

    fn write(&mut self, end: FlowEnd, message: Message) {
        self.ends[end as usize].write(message.bytes);
        if end == FlowEnd::From {
            (self.on_ready)(message.at);
        }
    }

    fn try_write(&mut self, end: FlowEnd, message: Message, refused: bool) -> bool {
        let accepts = self.ends[end as usize].accepts_write(message.bytes, refused);
        if accepts {
            self.write(end, message);
        }
        accepts
    }

    fn announce(&mut self, ready: Instant) {
        (self.on_ready)(ready);
    }

    fn write_stream(&mut self, end: FlowEnd, bytes: u64) {
        self.ends[end as usize].write(bytes);
    }

    fn close(&mut self, end: FlowEnd) {
        self.ends[end as usize].close();
    }

    fn written(&self, end: FlowEnd) -> u64 {
        self.ends[end as usize].written()
    }

    fn delivered(&self, end: FlowEnd) -> u64 {
        self.ends[end as usize].receiver().delivered()
    }

    fn is_open(&self) -> bool {
        self.ends[0].is_open()
    }
}
