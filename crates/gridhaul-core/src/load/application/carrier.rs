//! The transport connection of an application: simulated, or a socket.

use std::convert::Infallible;

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use crate::load::MessageEvent;

/// A message that an application writes to its carrier. `C` and `P` have size zero if the carrier
/// has only one class and counts bytes without payload, as the simulator does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<C = (), P = Infallible> {
    /// Identifies the message among those of one end: the position after its last byte in the
    /// stream of this end, counted from 0. Unique, since a message has at least one byte.
    pub id: u64,
    /// Class or priority of the application, such as a DSCP.
    pub class: C,
    /// When the message became ready.
    pub at: Instant,
    /// Size in bytes of payload.
    pub bytes: u64,
    /// The payload, if given; a carrier of real bytes generates it otherwise.
    pub payload: Option<P>,
}

/// A message that has been delivered completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// [`Message::id`].
    pub id: u64,
    /// When the message became ready; for a response, when its request did.
    pub at: Instant,
}

/// A byte stream in both directions (RFC 9293, section 3.9.1), with an unlimited send buffer.
pub trait Carrier {
    /// Class or priority of messages.
    type Class: Copy;
    /// Payload of messages.
    type Payload;

    /// Writes a message at an end. Data that the transport does not accept at once wait in the send
    /// buffer.
    fn write(&mut self, end: FlowEnd, message: Message<Self::Class, Self::Payload>);

    /// Writes a message if the transport accepts its first byte at once, as a non-blocking socket
    /// does; returns whether it was written. `refused` states whether the previous message was
    /// refused: a full socket becomes writable only at its low-water mark (tcp(7),
    /// `TCP_NOTSENT_LOWAT`).
    fn try_write(
        &mut self,
        end: FlowEnd,
        message: Message<Self::Class, Self::Payload>,
        refused: bool,
    ) -> bool;

    /// A message of the `from` end is ready, whose data follow later, or as a stream.
    fn announce(&mut self, ready: Instant);

    /// Writes this many bytes without message boundaries; [`u64::MAX`] for an endless stream.
    fn write_stream(&mut self, end: FlowEnd, bytes: u64);

    /// Closes an end for writing: a FIN follows the data.
    fn close(&mut self, end: FlowEnd);

    /// Bytes written at an end so far.
    fn written(&self, end: FlowEnd) -> u64;

    /// Bytes of the other end's stream delivered in order at this end.
    fn delivered(&self, end: FlowEnd) -> u64;

    /// Whether the connection is established and accepts data.
    fn is_open(&self) -> bool;

    /// The number of the connection that carries data, where connections follow each other and
    /// data that one has not delivered are lost. `None` between connections, and on a carrier that
    /// does not number them.
    fn connection(&self) -> Option<u64> {
        None
    }

    /// The application needs a connection, or the present one no longer.
    fn require_connection(&mut self, _is_required: bool) {}

    /// The application of an end aborts the present connection.
    fn abort(&mut self, _end: FlowEnd) {}

    /// An event of an acknowledged message that was ready at this time.
    fn record(&mut self, _ready: Instant, _event: MessageEvent) {}
}
