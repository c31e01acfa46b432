//! A second measurement of each message, from captures of packets at both ends of the network.
//!
//! A message is found by its header and its CRC-32, in the payload of a datagram or in the stream
//! of a TCP connection, which is decoded first if the protocol divides or encodes messages. It has
//! passed a capture when the stream is complete up to its last byte, so that retransmissions and
//! the wait for earlier bytes are part of the leg on which they occur. The times are those at which
//! the kernel handled the packets.
//!
//! [`Tap`] is without input or output; `Recording` feeds packet sockets to it.

mod decoder;
mod point;
#[cfg(feature = "bench")]
mod recording;
mod scanner;
mod stream;
mod tap;
#[cfg(test)]
mod tap_tests;

pub use point::CapturePoint;
#[cfg(feature = "bench")]
pub use recording::{CaptureReport, Recording};
pub use scanner::MessageScanner;
pub use stream::{StreamDirection, StreamPart};
pub use tap::{CapturedPacket, Route, Sighting, Tap, TapCounters};
