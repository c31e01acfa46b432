//! TCP as state machines: no clock, no sockets, no entropy.
//!
//! A [`Connection`] is one end. It is handed `now` and segments ([`Connection::handle_segment`]),
//! returns segments ([`Connection::poll_transmit`]) and says when it next wants to be woken
//! ([`Connection::next_deadline`]). Call order: after every `handle_*`, poll until `None`.

pub mod congestion;
mod connection;
mod params;
mod profile;
mod rate;
mod receiver;
mod recovery;
mod retransmission_queue;
mod rtt;
mod segment;
mod sender;

pub use connection::{Connection, PendingSegment, State};
pub use params::StackParams;
pub use profile::{AlgorithmRules, ByteCounting, HalvingBasis, IdleRestart, OptionBytes, Policy};
pub use rate::RateSample;
pub use receiver::Receiver;
pub use rtt::RttEstimator;
pub use segment::{ClockOption, Flags, OneWayDelay, SackBlocks, Segment, expand};
pub use sender::{Sender, SenderStats};

#[cfg(test)]
mod tests {
    use std::mem::size_of;
    use std::sync::Arc;

    use gridhaul_scenario::scenario::{Profile, Stack};
    use gridhaul_scenario::units::Instant;

    use super::*;

    /// A simulation holds one of each for every meter, a million of them: a field more here is
    /// megabytes there.
    #[test]
    fn the_state_of_a_connection_stays_small() {
        assert!(size_of::<Connection>() <= 112, "an end: {}", size_of::<Connection>());
        assert!(size_of::<Sender>() <= 296, "its sender: {}", size_of::<Sender>());
        let vegas = size_of::<congestion::vegas::Vegas>();
        assert!(vegas <= 112, "what a Vegas sender holds apart: {vegas}");
        assert!(
            size_of::<retransmission_queue::OutstandingSegment>() <= 24,
            "a segment out: {}",
            size_of::<retransmission_queue::OutstandingSegment>()
        );
    }

    /// Where SYN is not acknowledged on its own, as between ns-2's agents, an end that only receives
    /// may wait for its first data all the time.
    #[test]
    fn an_end_that_only_receives_keeps_no_sender() {
        for profile in [Profile::Ns2, Profile::Rfc] {
            let stack = Stack { profile, ..Stack::default() };
            let params = Arc::new(StackParams::resolve(&stack));
            let mut near = Connection::connect(Arc::clone(&params), 3);
            let mut far = Connection::listen(params, 7);
            far.receive_only();
            let mut answer = |near: &mut Connection| {
                let segment = near.poll_transmit(Instant::ZERO)?;
                far.handle_segment(Instant::ZERO, &segment);
                std::iter::from_fn(|| far.poll_transmit(Instant::ZERO)).last()
            };
            while let Some(segment) = answer(&mut near) {
                near.handle_segment(Instant::ZERO, &segment);
            }
            assert_eq!(near.state(), State::Established);
            assert!(far.sender().is_none(), "{profile:?}: in {:?}", far.state());
        }
    }
}
