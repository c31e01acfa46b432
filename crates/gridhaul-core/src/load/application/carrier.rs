//! What carries the messages of an application: a connection of the simulator, or a socket.

use std::convert::Infallible;

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

/// A message that an application hands to its carrier. `C` and `P` have no size where the carrier has but one
/// class and counts bytes instead of carrying them, as the simulator does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<C = (), P = Infallible> {
    /// Identifies the message among those of one end: the position after its last byte in the stream of
    /// this end, counted from 0. Unique, since a message has at least one byte.
    pub id: u64,
    /// Class or priority of the application, such as a DSCP.
    pub class: C,
    /// When the message was ready.
    pub at: Instant,
    /// Size in bytes of payload.
    pub bytes: u64,
    /// The payload, where somebody has given it; a carrier of real bytes makes that of generated messages.
    pub payload: Option<P>,
}

/// A message that is whole at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// [`Message::id`].
    pub id: u64,
    /// When the message was ready; of a response, when its request was.
    pub at: Instant,
}

/// A byte stream in both directions (RFC 9293, section 3.9.1), with a send buffer without limit.
pub trait Carrier {
    /// Class or priority of messages.
    type Class: Copy;
    /// Payload of messages.
    type Payload;

    /// Writes a message at an end. What the transport does not take at once waits in the send buffer.
    fn write(&mut self, end: FlowEnd, message: Message<Self::Class, Self::Payload>);

    /// Writes a message if the transport takes its first byte at once, as a non-blocking socket does;
    /// returns whether it does. `refused` says whether the last message was refused: a socket that was
    /// full becomes writable only at its low-water mark (tcp(7), `TCP_NOTSENT_LOWAT`).
    fn try_write(
        &mut self,
        end: FlowEnd,
        message: Message<Self::Class, Self::Payload>,
        refused: bool,
    ) -> bool;

    /// Writes so many bytes in which there are no messages; [`u64::MAX`] for a stream without end.
    fn write_stream(&mut self, end: FlowEnd, bytes: u64);

    /// The application will write no more at this end: FIN follows what is written.
    fn close(&mut self, end: FlowEnd);

    /// Bytes written at an end so far.
    fn written(&self, end: FlowEnd) -> u64;

    /// Bytes of the other end's stream that were delivered in order at this end.
    fn delivered(&self, end: FlowEnd) -> u64;

    /// Whether the connection is open for data.
    fn is_open(&self) -> bool;
}
