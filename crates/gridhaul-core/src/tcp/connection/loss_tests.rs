//! Tests of losses on a path of 50 ms in each direction, whose expected values follow from RFCs.

use std::sync::Arc;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Recovery, Stack};
use gridhaul_scenario::units::{Bytes, Duration, Instant, WindowSize};

use super::Connection;
use crate::tcp::{Segment, StackParams};

const MSS: u64 = 1_000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn all(end: &mut Connection, now: Instant) -> Vec<Segment> {
    std::iter::from_fn(|| end.poll_transmit(now)).collect()
}

/// A stack by the RFCs whose receiver acknowledges every segment.
fn stack() -> Stack {
    Stack {
        profile: Profile::Rfc,
        mss: Some(Bytes::new(MSS)),
        delayed_ack: Some(Duration::ZERO),
        ..Stack::default()
    }
}

fn ends(stack: &Stack) -> [Connection; 2] {
    let params = Arc::new(StackParams::resolve(stack));
    [(5, 9), (9, 5)]
        .map(|(isn, peer)| Connection::established(Arc::clone(&params), isn, &params, peer))
}

/// All segments of `sent` arrive, and the acknowledgements of the server.
fn exchange([client, server]: &mut [Connection; 2], now: u64, sent: &[Segment]) -> Vec<Segment> {
    let mut answered = Vec::new();
    for segment in sent {
        server.handle_segment(at(now + 50), segment);
        for ack in all(server, at(now + 50)) {
            client.handle_segment(at(now + 100), &ack);
            answered.extend(all(client, at(now + 100)));
        }
    }
    answered
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
            let mut ends = ends(&stack);
            ends[0].write(5 * MSS);
            let flight = all(&mut ends[0], at(1_000));
            let again = exchange(&mut ends, 1_000, &flight[1..]);
            assert_eq!((again.len(), again[0].seq), (1, flight[0].seq), "{recovery:?}");
            exchange(&mut ends, 1_100, &again);
            let stats = ends[0].sender().unwrap().stats();
            assert_eq!(ends[0].sent_and_acknowledged().1, 1 + 5 * MSS);
            assert_eq!(stats.rtt_count, samples, "{recovery:?} {timestamps:?}");
            assert_eq!(stats.rtt_sum_ns, u64::from(samples) * 100_000_000);
        }
    }
}

/// RFC 3042: "cwnd + 2*SMSS".
#[test]
fn limited_transmit_sends_two_segments_for_any_threshold() {
    let mut ends = ends(&Stack { sack: Some(false), dupthresh: Some(5), ..stack() });
    ends[0].write(100 * MSS);
    let flight = all(&mut ends[0], at(0));
    let new = exchange(&mut ends, 0, &flight[1..5]);
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
    let [mut client, mut server] = ends(&stack);
    client.write(19 * MSS);
    let flight = all(&mut client, at(0));
    assert_eq!(flight.len(), 19);
    let acks: Vec<Segment> = flight[1..]
        .iter()
        .flat_map(|segment| {
            server.handle_segment(at(50), segment);
            all(&mut server, at(50))
        })
        .collect();
    for ack in &acks[..3] {
        client.handle_segment(at(100), ack);
    }
    client.write(100 * MSS);
    assert_eq!(all(&mut client, at(100)).len(), 1, "the retransmission");
    let mut new = 0;
    for ack in &acks[3..13] {
        client.handle_segment(at(100), ack);
        new += all(&mut client, at(100)).len();
    }
    // 13 deliveries release 6.5 segments, of which the retransmission is one.
    assert_eq!(new, 5);
}
