//! Managed connections as the carrier of an application.

use std::convert::Infallible;

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::ConnectionManager;
use crate::load::{Carrier, Message, MessageEvent};

/// The connections of a member as one byte stream in each direction. Messages wait in the manager
/// until a connection carries them.
#[derive(Debug)]
pub struct ManagedCarrier<'a, R, E> {
    /// The manager of the connections.
    pub manager: &'a mut ConnectionManager,
    /// Called with the time at which each message of the `from` end was ready.
    pub on_ready: R,
    /// Called with the events of acknowledged messages, and when each of these was ready.
    pub on_event: E,
}

impl<R: FnMut(Instant), E: FnMut(Instant, MessageEvent)> Carrier for ManagedCarrier<'_, R, E> {
    type Class = ();
    /// Only bytes are counted.
    type Payload = Infallible;

    fn write(&mut self, end: FlowEnd, message: Message) {
        self.manager.written[end as usize] += message.bytes;
        self.manager.waiting[end as usize].push_back(message.bytes);
        if end == FlowEnd::From {
            (self.on_ready)(message.at);
        }
    }

    /// Loads that write whenever the transport accepts data are refused with the scenario.
    fn try_write(&mut self, _end: FlowEnd, _message: Message, _refused: bool) -> bool {
        false
    }

    fn announce(&mut self, ready: Instant) {
        (self.on_ready)(ready);
    }

    /// A part of an announced message; endless streams are refused with the scenario.
    fn write_stream(&mut self, end: FlowEnd, bytes: u64) {
        self.manager.written[end as usize] += bytes;
        self.manager.waiting[end as usize].push_back(bytes);
    }

    /// The manager closes connections.
    fn close(&mut self, _end: FlowEnd) {}

    fn written(&self, end: FlowEnd) -> u64 {
        self.manager.written[end as usize]
    }

    fn delivered(&self, end: FlowEnd) -> u64 {
        self.manager.delivered[end as usize]
    }

    fn is_open(&self) -> bool {
        self.manager.is_ready()
    }

    fn connection(&self) -> Option<u64> {
        self.manager.is_ready().then_some(self.manager.ready)
    }

    fn require_connection(&mut self, is_required: bool) {
        self.manager.is_required = is_required;
    }

    fn abort(&mut self, end: FlowEnd) {
        self.manager.aborts[end as usize] = true;
    }

    fn record(&mut self, ready: Instant, event: MessageEvent) {
        (self.on_event)(ready, event);
    }
}
