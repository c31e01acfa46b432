//! The application of a flow on its connection.

use gridhaul_core::load::{Application, Arrival, Carrier, Delivered, InFlightMessages, Message};
use gridhaul_core::tcp::Connection;
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use crate::flow::{Ends, Flow};

impl Flow {
    /// The application of a TCP flow starts, or has a message ready. Returns when it is due again,
    /// [`Instant::NEVER`] if by itself it is not. `on_ready` gets the time of every message.
    pub(crate) fn on_due(
        &mut self,
        now: Instant,
        under_way: &mut InFlightMessages,
        on_ready: impl FnMut(Instant),
    ) -> Instant {
        let (Ends::Tcp(ends), Some(app)) = (&mut self.ends, &mut self.app) else {
            return Instant::NEVER;
        };
        app.handle_timeout(now, &mut Carried { ends, on_ready }, under_way);
        self.watch = app.watch(under_way);
        app.next_deadline()
    }

    /// When the application is due again; [`Instant::NEVER`] if by itself it is not.
    pub(crate) fn next_deadline(&self) -> Instant {
        self.app.as_ref().map_or(Instant::NEVER, Application::next_deadline)
    }

    /// During a burst, writes a message if the connection takes it. Returns whether it did.
    #[inline]
    pub(crate) fn poll_write(
        &mut self,
        now: Instant,
        under_way: &mut InFlightMessages,
        on_ready: impl FnMut(Instant),
    ) -> bool {
        let (Ends::Tcp(ends), Some(app)) = (&mut self.ends, &mut self.app) else { return false };
        let written = app.poll_write(now, &mut Carried { ends, on_ready }, under_way);
        if written {
            self.watch = app.watch(under_way);
        }
        written
    }

    /// A recording has a message for this TCP flow.
    pub(crate) fn on_recorded(
        &mut self,
        arrival: Arrival,
        under_way: &mut InFlightMessages,
        on_ready: impl FnMut(Instant),
    ) {
        let (Ends::Tcp(ends), Some(app)) = (&mut self.ends, &mut self.app) else { return };
        app.handle_recorded(arrival, None, &mut Carried { ends, on_ready }, under_way);
        self.watch = app.watch(under_way);
    }

    /// A datagram that is ready now, if one is; and when the next one will be.
    pub(crate) fn next_datagram(&mut self, now: Instant) -> Option<(Option<Arrival>, Instant)> {
        let app = self.app.as_mut()?;
        let arrival = app.poll_arrival(now);
        Some((arrival, app.next_deadline()))
    }

    /// An end has received what the application waited for there: returns a message that is whole now.
    pub(crate) fn poll_delivered(
        &mut self,
        now: Instant,
        end: FlowEnd,
        under_way: &mut InFlightMessages,
    ) -> Option<Delivered> {
        let (Ends::Tcp(ends), Some(app)) = (&mut self.ends, &mut self.app) else { return None };
        let mut carrier = Carried { ends, on_ready: |_| {} };
        let delivered = app.poll_delivered(now, end, &mut carrier, under_way);
        self.watch = app.watch(under_way);
        delivered
    }
}

/// A connection as the carrier of an application.
struct Carried<'a, R> {
    ends: &'a mut [Connection; 2],
    /// Is told when each message of the `from` end was ready.
    on_ready: R,
}

impl<R: FnMut(Instant)> Carrier for Carried<'_, R> {
    type Class = ();
    /// The simulator counts bytes: there is no payload.
    type Payload = std::convert::Infallible;

    fn write(&mut self, end: FlowEnd, message: Message) {
        self.ends[end as usize].write(message.bytes);
        if end == FlowEnd::From {
            (self.on_ready)(message.at);
        }
    }

    fn try_write(&mut self, end: FlowEnd, message: Message, refused: bool) -> bool {
        let takes = self.ends[end as usize].accepts_write(message.bytes, refused);
        if takes {
            self.write(end, message);
        }
        takes
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
