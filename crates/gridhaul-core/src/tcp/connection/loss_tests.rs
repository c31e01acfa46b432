//! Tests of losses on a path of 50 ms in each direction, whose expected values follow from RFCs.

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Recovery, Stack};
use gridhaul_scenario::units::{Bytes, Duration, WindowSize};

use super::pair::{Pair, at, resolve};

const MSS: u64 = 1_000;

/// A stack by the RFCs whose receiver acknowledges every segment.
fn stack() -> Stack {
    Stack {
        profile: Profile::Rfc,
        mss: Some(Bytes::new(MSS)),
        delayed_ack: Some(Duration::ZERO),
        ..Stack::default()
    }
}

fn pair(stack: &Stack) -> Pair {
    Pair { delay: Duration::from_millis(50), ..Pair::established(&resolve(stack)) }
}

/// RFC 6298, section 3: what a retransmission has repaired is not measured; RFC 7323, section 4.3,
/// case C: the acknowledgement that fills a gap echoes the retransmission.
#[test]
fn the_repair_of_a_loss_is_no_part_of_a_round_trip() {
    for (timestamps, samples) in [(true, 1), (false, 0)] {
        for recovery in [Recovery::NewReno, Recovery::Reno] {
            let timestamps = Some(timestamps);
            let stack = Stack {
                sack: Some(false),
                recovery: Some(recovery),
                timestamps,
                limited_transmit: Some(false),
                ..stack()
            };
            let mut pair = Pair { now: at(1_000), ..pair(&stack) };
            pair.client.write(5 * MSS);
            let flight = pair.client_segments();
            let again = pair.exchange(&flight[1..]);
            assert_eq!((again.len(), again[0].seq), (1, flight[0].seq), "{recovery:?}");
            pair.exchange(&again);
            let stats = pair.client.sender().unwrap().stats();
            assert_eq!(pair.client.sent_and_acknowledged().1, 1 + 5 * MSS);
            assert_eq!(stats.rtt_count, samples, "{recovery:?} {timestamps:?}");
            assert_eq!(stats.rtt_sum_ns, u64::from(samples) * 100_000_000);
        }
    }
}

/// RFC 3042: "cwnd + 2*SMSS".
#[test]
fn limited_transmit_sends_two_segments_for_any_threshold() {
    let mut pair = pair(&Stack { sack: Some(false), dupthresh: Some(5), ..stack() });
    pair.client.write(100 * MSS);
    let flight = pair.client_segments();
    let new = pair.exchange(&flight[1..5]);
    assert_eq!(new.len(), 2);
    assert!(new.iter().all(|segment| segment.seq > flight[9].seq));
}

/// RFC 9937, section 6.2: with 19 segments in flight of a window of 100, the reduction to a half
/// releases a segment with every second delivery.
#[test]
fn rate_reduction_is_in_proportion_to_the_data_in_flight() {
    let stack = Stack {
        congestion_control: Some(CongestionControlAlgorithm::Reno),
        recovery: Some(Recovery::Rack),
        prr: Some(true),
        initial_window: Some(WindowSize::Segments(100)),
        ..stack()
    };
    let mut pair = pair(&stack);
    pair.client.write(19 * MSS);
    let flight = pair.client_segments();
    assert_eq!(flight.len(), 19);
    let acks = pair.deliver_to_server(&flight[1..]);
    assert_eq!(pair.deliver_to_client(&acks[..3]).len(), 1, "the retransmission");
    pair.client.write(100 * MSS);
    // 13 deliveries release 6.5 segments, of which the retransmission is one.
    assert_eq!(pair.deliver_to_client(&acks[3..13]).len(), 5);
}
