//! Times that can be verified by hand.

use gridhaul_scenario::units::{BitRate, Bytes};

use super::super::DropReason;
use super::*;

#[test]
fn a_packet_takes_its_transmission_time_and_then_the_delay() {
    // (offered, bytes, started, sent, left) in µs, all on one link.
    let cases = [
        (0, 100, 0, 100, 600),
        (50, 100, 100, 200, 700),         // waits for the first
        (200, 40, 200, 240, 740),         // at the very end of the second: does not wait
        (1_000, 10, 1_000, 1_010, 1_510), // the link has been idle
    ];
    let mut link = link(&one_byte_a_microsecond(500, QueueLimit::Unlimited));
    for (number, &(offered, bytes, ..)) in (0..).zip(&cases) {
        link.handle_packet(at(offered), bytes, number).unwrap();
    }
    assert_eq!(link.next_deadline(), at(600));
    assert_eq!(link.poll_output(at(599)), None);
    let transits = drain(&mut link);
    for (transit, &(offered, _, started, sent, left)) in transits.iter().zip(&cases) {
        let times = (transit.offered, transit.started, transit.sent, transit.left);
        assert_eq!(times, (at(offered), at(started), at(sent), at(left)));
    }
    assert_eq!((transits.len(), link.next_deadline()), (4, Instant::NEVER));
}

#[test]
fn queue_limits_hold_at_equal_times() {
    let packets = QueueLimit::Packets;
    let bytes = |bytes| QueueLimit::Bytes(Bytes::new(bytes));
    // Packets of 100 µs each: (limit, times of offer in µs, accepted or not).
    let cases: &[(QueueLimit, &[u64], &[bool])] = &[
        // Without queue space, only an idle transmitter accepts; it is idle when the last bit is
        // sent.
        (packets(0), &[0, 0, 99, 100], &[true, false, false, true]),
        // One packet may wait, until the instant at which its transmission starts.
        (packets(1), &[0, 0, 0, 99, 100, 100], &[true, true, false, false, true, false]),
        // The limit counts queued bytes: two packets of 100 B fit into 299 B, not three.
        (bytes(299), &[0, 0, 0, 0], &[true, true, true, false]),
        (bytes(300), &[0, 0, 0, 0], &[true, true, true, true]),
        // The queue is empty when the transmitter is idle again.
        (bytes(100), &[0, 0, 0, 900, 900, 900], &[true, true, false, true, true, false]),
        // An idle transmitter accepts a packet that is larger than the queue limit.
        (bytes(99), &[0, 50, 100], &[true, false, true]),
    ];
    for (limit, offers, expected) in cases {
        let mut link = link(&one_byte_a_microsecond(0, *limit));
        for (&offer, &accepted) in offers.iter().zip(*expected) {
            let result = link.handle_packet(at(offer), 100, 7);
            let refused = Err(DropReason::QueueFull);
            assert_eq!(result, if accepted { Ok(()) } else { refused }, "{limit} at {offer}");
        }
    }
}

#[test]
fn a_limit_of_fifty_packets_holds_fifty_one() {
    // As in ns-2: the packet in transmission does not count.
    let mut link = link(&one_byte_a_microsecond(0, QueueLimit::Packets(50)));
    let accepted = (0..100).filter(|n| link.handle_packet(at(0), 100, *n).is_ok()).count();
    assert_eq!(accepted, 51);
    assert_eq!((link.queue_packets(at(0)), link.queue_bytes(at(0))), (50, 5_000));
    assert_eq!((link.queue_packets(at(100)), link.queue_bytes(at(100))), (49, 4_900));
    assert_eq!(link.queue_packets(at(4_999)), 1);
    assert_eq!(link.queue_packets(at(5_000)), 0);
    assert_eq!(link.inside(), 51);
}

#[test]
fn a_long_busy_period_keeps_the_rate_to_the_nanosecond() {
    // 40 B at 30 Mbit/s take 10,666.67 ns: three packets take a whole number of nanoseconds.
    let rate = BitRate::from_bits_per_sec(30_000_000);
    let mut link = link(&Direction::new(rate, Duration::ZERO));
    let (mut now, mut last) = (Instant::ZERO, Instant::ZERO);
    let packets = 300_000;
    for number in 0..packets {
        link.handle_packet(now, 40, number).unwrap();
        if number % 10 == 9 {
            // As with ACK clocking: the next packets are offered when the last bit is sent.
            last = drain(&mut link).last().unwrap().sent;
            now = last;
        }
    }
    assert_eq!(last.as_nanos(), u64::from(packets) * 32_000 / 3);
}

#[test]
fn sent_bytes_are_counted_at_their_time_and_not_at_their_arrival() {
    // Two packets of 100 µs, then 500 µs of propagation.
    let mut link = link(&one_byte_a_microsecond(500, QueueLimit::Unlimited));
    for number in 0..2 {
        link.handle_packet(at(0), 100, number).unwrap();
    }
    let sent = [0, 40, 100, 150, 200, 599].map(|micros| link.sent_inside(at(micros)));
    assert_eq!(sent, [0, 40, 100, 150, 200, 200]);
    assert!(link.poll_output(at(600)).is_some());
    assert_eq!(link.sent_inside(at(600)), 100, "the first packet has departed");
}
