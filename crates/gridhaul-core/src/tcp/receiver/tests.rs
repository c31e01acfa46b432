//! Reassembly, windows, selective acknowledgements and acknowledgements when data is read.

use gridhaul_scenario::scenario::{Profile, Stack};

use super::*;

fn receiver() -> (Receiver, StackParams) {
    let params = StackParams::resolve(&Stack::default());
    let mut receiver = Receiver::new(&params);
    receiver.handle_syn();
    (receiver, params)
}

fn data(receiver: &mut Receiver, params: &StackParams, start: u64, end: u64) -> bool {
    receiver.handle_data(Instant::ZERO, start, end, Flags::ACK, params)
}

#[test]
fn the_first_sack_block_contains_the_segment_received_last() {
    // RFC 2018, section 4: the first block MUST contain the segment that triggered the ACK.
    let (mut receiver, params) = receiver();
    data(&mut receiver, &params, 101, 201);
    data(&mut receiver, &params, 301, 401);
    data(&mut receiver, &params, 501, 601);
    data(&mut receiver, &params, 201, 211);
    let blocks = receiver.take_sack_blocks(0, 3);
    assert_eq!(blocks.as_slice(), [(101, 211), (501, 601), (301, 401)]);
}

#[test]
fn an_updated_range_displaces_no_other_sack_block() {
    // RFC 2018, section 4: the blocks that were reported most recently are repeated.
    let (mut receiver, params) = receiver();
    for start in [101, 301, 501, 701] {
        data(&mut receiver, &params, start, start + 100);
    }
    data(&mut receiver, &params, 601, 611);
    let blocks = receiver.take_sack_blocks(0, 4);
    assert_eq!(blocks.as_slice(), [(501, 611), (701, 801), (301, 401), (101, 201)]);
}

#[test]
fn a_buffer_below_one_segment_is_offered_in_halves() {
    // RFC 9293, 3.8.6.2.2: min(Fr * RCV.BUFF, Eff.snd.MSS), with Fr of a half.
    let (mut receiver, params) = receiver();
    let params = StackParams { mss: 1_000, receive_window: 600, ..params };
    receiver.read_on_demand();
    receiver.on_ack_sent(Instant::ZERO, &params);
    data(&mut receiver, &params, 1, 601);
    assert_eq!((receiver.window(&params), receiver.consume(299, &params)), (0, false));
    assert!(receiver.consume(1, &params));
    assert_eq!(receiver.window(&params), 300);
}

#[test]
fn data_after_fin_is_ignored() {
    let (mut receiver, params) = receiver();
    data(&mut receiver, &params, 301, 401);
    receiver.handle_data(Instant::ZERO, 101, 201, Flags::FIN, &params);
    data(&mut receiver, &params, 201, 301);
    data(&mut receiver, &params, 1, 101);
    data(&mut receiver, &params, 401, 501);
    // FIN occupies the last position.
    assert!(receiver.finished());
    assert_eq!((receiver.next(), receiver.delivered()), (201, 199));
    assert!(receiver.take_sack_blocks(0, 4).is_empty());
}

#[test]
fn adjacent_ranges_merge_and_are_delivered_in_order() {
    let (mut receiver, params) = receiver();
    data(&mut receiver, &params, 101, 201);
    data(&mut receiver, &params, 301, 401);
    data(&mut receiver, &params, 201, 301);
    assert_eq!(receiver.take_sack_blocks(0, 4).as_slice(), [(101, 401)]);
    assert!(data(&mut receiver, &params, 1, 101));
    assert_eq!((receiver.next(), receiver.delivered()), (401, 400));
    assert!(receiver.take_sack_blocks(0, 4).is_empty());
}

fn linux() -> (Receiver, StackParams) {
    let stack = Stack { profile: Profile::Linux, ..Stack::default() };
    let params = StackParams { quick_ack: 0, ..StackParams::resolve(&stack) };
    let mut receiver = Receiver::new(&params);
    receiver.handle_syn();
    (receiver, params)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn pushed(receiver: &mut Receiver, params: &StackParams, ms: u64) {
    let start = receiver.next();
    receiver.handle_data(at(ms), start, start + 100, Flags::ACK.with(Flags::PSH), params);
}

#[test]
fn linux_acknowledges_pushed_data_when_all_of_it_is_read() {
    let (mut receiver, params) = linux();
    receiver.on_ack_sent(at(0), &params);
    receiver.handle_data(at(10), 1, 101, Flags::ACK, &params);
    assert!(!receiver.ack_due(at(10)), "without PSH the second segment is acknowledged");
    receiver.on_ack_sent(at(20), &params);
    pushed(&mut receiver, &params, 30);
    assert!(receiver.ack_due(at(30)));

    let (mut receiver, params) = linux();
    receiver.read_on_demand();
    receiver.on_ack_sent(at(0), &params);
    pushed(&mut receiver, &params, 10);
    receiver.consume(99, &params);
    assert!(!receiver.ack_due(at(11)));
    receiver.consume(1, &params);
    assert!(receiver.ack_due(at(11)));
}

#[test]
fn the_acknowledgements_of_an_interactive_connection_wait_for_the_answer() {
    let (mut receiver, params) = linux();
    pushed(&mut receiver, &params, 0);
    receiver.on_data_sent(at(20), &params);
    receiver.on_ack_sent(at(20), &params);
    pushed(&mut receiver, &params, 100);
    assert!(!receiver.ack_due(at(139)));
    assert!(receiver.ack_due(at(140)));
    // There was no answer: the next data is acknowledged when it is read.
    receiver.on_ack_sent(at(140), &params);
    pushed(&mut receiver, &params, 200);
    assert!(receiver.ack_due(at(200)));
}

/// Segments of 1,448 B that are acknowledged at once until the first is not.
fn quick_acks(window: u32) -> usize {
    let stack = Stack { profile: Profile::Linux, ..Stack::default() };
    let resolved = StackParams::resolve(&stack);
    let params = StackParams { receive_window: window, mss: 1_448, ..resolved };
    let mut receiver = Receiver::new(&params);
    receiver.handle_syn();
    let is_acknowledged = |number: &u64| {
        let start = 1 + 1_448 * (number - 1);
        receiver.handle_data(at(*number), start, start + 1_448, Flags::ACK, &params);
        let is_due = receiver.ack_due(at(*number));
        receiver.on_ack_sent(at(*number), &params);
        is_due
    };
    (1..50).take_while(is_acknowledged).count()
}

#[test]
fn a_small_window_has_few_quick_acknowledgements() {
    // Kernel 6.18 has 18 from a window of 64 kB on, and 17 with segments of 1,000 B.
    assert_eq!([8_000, 30_000, 64_000, 200_000].map(quick_acks), [4, 12, 17, 17]);
}

#[test]
fn the_acknowledgements_of_a_gap_are_quick_acknowledgements() {
    let at_once_after_gap = |missing: u64| {
        let stack = Stack { profile: Profile::Linux, ..Stack::default() };
        let params = StackParams::resolve(&stack);
        let mut receiver = Receiver::new(&params);
        receiver.handle_syn();
        let mut receive = |start: u64, ms: u64| {
            receiver.handle_data(at(ms), start, start + 100, Flags::ACK, &params);
            let is_due = receiver.ack_due(at(ms));
            receiver.on_ack_sent(at(ms), &params);
            is_due
        };
        // Segments beyond a gap, and the one that fills it.
        for number in 1..=missing {
            assert!(receive(1 + 100 * number, number));
        }
        assert!(receive(1, missing + 1));
        let next = 1 + 100 * (missing + 1);
        (0..).take_while(|number| receive(next + 100 * number, missing + 2 + number)).count()
    };
    // All 17 are at once; those of the gap and the one that ends it are among them.
    assert_eq!([1, 9, 16, 20].map(at_once_after_gap), [15, 7, 0, 0]);
}

#[test]
fn the_missing_parts_of_a_range_are_those_that_have_not_arrived() {
    let (mut receiver, params) = receiver();
    data(&mut receiver, &params, 1, 101);
    data(&mut receiver, &params, 201, 301);
    data(&mut receiver, &params, 401, 501);
    assert_eq!(receiver.missing_within(&(51..451)), [101..201, 301..401]);
    assert_eq!(receiver.missing_within(&(221..601)), [301..401, 501..601]);
    assert_eq!(receiver.missing_within(&(1..101)), [0..0; 0]);
}

/// RFC 2883, section 4. Data and FIN beyond the gap arrive twice, before the gap is filled.
#[test]
fn a_duplicate_is_reported_after_the_end_of_the_stream_too() {
    let (mut receiver, params) = receiver();
    let last = |receiver: &mut Receiver| {
        receiver.handle_data(Instant::ZERO, 101, 202, Flags::ACK.with(Flags::FIN), &params)
    };
    last(&mut receiver);
    last(&mut receiver);
    assert_eq!(receiver.out_of_order_bytes(), 100);
    assert!(data(&mut receiver, &params, 1, 101));
    assert!(receiver.finished());
    assert_eq!(receiver.out_of_order_bytes(), 0);
    assert_eq!(receiver.take_sack_blocks(0, 4).as_slice(), [(101, 202)]);
    assert!(!receiver.has_sack_blocks());
}
