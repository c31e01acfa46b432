//! Messages in captured packets of both ends of a network: a second measurement of each message.
//!
//! A message is found by its header and its CRC-32, in the payload of a datagram or in the stream
//! of a TCP connection, which is decoded first if the protocol divides or encodes messages. It has
//! passed a capture when the stream is complete up to its last byte, so that retransmissions and
//! the wait for earlier bytes are part of the leg on which they occur. The times are those at which
//! the kernel handled the packets.

mod decoder;
mod point;
mod scanner;
mod stream;
mod tap;
#[cfg(test)]
mod tap_tests;

pub use point::CapturePoint;
pub use scanner::MessageScanner;
pub use tap::{CapturedPacket, Route, Sighting, Tap, TapCounters};
