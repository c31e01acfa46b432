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

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::*;

    /// A simulation holds one of each for every meter, a million of them: a field more here is
    /// megabytes there.
    #[test]
    fn the_state_of_a_connection_stays_small() {
        assert!(size_of::<Connection>() <= 112, "an end: {}", size_of::<Connection>());
        assert!(size_of::<Sender>() <= 296, "its sender: {}", size_of::<Sender>());
        assert!(size_of::<sent::Sent>() <= 24, "a segment out: {}", size_of::<sent::Sent>());
    }
}
