//! TCP as state machines: no clock, no sockets, no entropy.
//!
//! A [`Connection`] is one end. It is handed `now` and segments ([`Connection::handle_segment`]),
//! returns segments ([`Connection::poll_transmit`]) and says when it next wants to be woken
//! ([`Connection::next_deadline`]). Call order: after every `handle_*`, poll until `None`.

pub mod congestion;
mod connection;
mod params;
mod rate;
mod receiver;
mod recovery;
mod rtt;
mod segment;
mod sender;
mod sent;

pub use connection::{Connection, State};
pub use params::{Growth, HalvingBasis, OptionBytes, StackParams};
pub use rate::RateSample;
pub use receiver::Receiver;
pub use rtt::RttEstimator;
pub use segment::{Flags, SackBlocks, Segment, expand};
pub use sender::{Sender, SenderStats};
