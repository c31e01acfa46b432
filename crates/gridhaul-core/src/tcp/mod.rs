//! TCP as state machines without a clock, sockets or a source of randomness.
//!
//! A [`Connection`] is one endpoint. The caller passes `now` and received segments
//! ([`Connection::handle_segment`]); the connection returns segments to send
//! ([`Connection::poll_transmit`]) and its next timer deadline ([`Connection::next_deadline`]).
//! Call order: after every `handle_*`, poll until `None`.

mod bit_set;
pub mod congestion;
mod connection;
mod ecn_path;
mod event;
mod loss_classifier;
mod observer;
mod params;
mod profile;
mod rate;
mod receiver;
mod recovery;
mod retransmission_queue;
mod rtt;
mod rules;
mod segment;
mod segment_size;
mod sender;

pub use connection::{Connection, PendingSegment, State};
pub use ecn_path::ecn_through_proxies;
pub use event::{Ack, DelayReport, LinkEvent, LinkReport, Loss, RateSample};
pub use observer::ConnectionObserver;
pub use params::{MedxParams, StackParams, VegasParams, window_shift_of};
pub use receiver::Receiver;
pub use rtt::{RttEstimator, RttSample};
pub use rules::{AlgorithmRules, ByteCounting, HalvingBasis, IdleRestart, OptionBytes, Policy};
pub use segment::{ClockOption, Flags, OneWayDelay, SackBlocks, Segment, expand};
pub use segment_size::{SegmentPaths, discovers_path_mtu, oversized_segments};
pub use sender::{Sender, SenderStats};

/// A simulation holds one of each for every meter, up to a million: each additional field costs
/// megabytes.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<Connection>() <= 112);
    assert!(size_of::<Sender>() <= 280);
    assert!(size_of::<recovery::Recovery>() <= 32);
    assert!(size_of::<congestion::vegas::Vegas>() <= 104);
    assert!(size_of::<retransmission_queue::OutstandingSegment>() <= 24);
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gridhaul_scenario::scenario::{Profile, Stack};
    use gridhaul_scenario::units::Instant;

    use super::*;

    /// Where SYN is not acknowledged separately, as between ns-2's agents, a receive-only endpoint
    /// may wait for its first data indefinitely.
    #[test]
    fn a_receive_only_endpoint_keeps_no_sender() {
        for profile in [Profile::Ns2, Profile::Rfc] {
            let stack = Stack { profile, ..Stack::default() };
            let params = Arc::new(StackParams::resolve(&stack));
            let mut client = Connection::connect(Arc::clone(&params), 3);
            let mut server = Connection::listen(params, 7);
            server.receive_only();
            let mut answer = |client: &mut Connection| {
                let segment = client.poll_transmit(Instant::ZERO)?;
                server.handle_segment(Instant::ZERO, &segment);
                std::iter::from_fn(|| server.poll_transmit(Instant::ZERO)).last()
            };
            while let Some(segment) = answer(&mut client) {
                client.handle_segment(Instant::ZERO, &segment);
            }
            assert_eq!(client.state(), State::Established);
            assert!(server.sender().is_none(), "{profile:?}: in {:?}", server.state());
        }
    }
}
