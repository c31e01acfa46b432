//! RACK (RFC 8985) as in Linux.

use super::*;

fn rack(written: u64) -> Script {
    Script::new(Profile::Linux, Kind::Rack, written)
}

/// RFC 8985, section 6.2, step 4: the reordering window is zero if "RACK.segs_sacked >= DupThresh"
/// and no reordering was seen.
#[test]
fn three_sacked_segments_prove_a_loss_at_once_while_no_reordering_was_seen() {
    let mut script = rack(10);
    script.ack(1);
    assert_eq!(script.sack(1, &[(2, 4)]), NOTHING);
    assert_eq!(script.sack(1, &[(2, 5)]), [1]);
    assert!(script.sender.in_recovery());
}

/// Segment 0 arrives after segment 1.
#[test]
fn after_reordering_a_segment_is_lost_only_after_a_time() {
    let mut script = rack(10);
    script.sack(0, &[(1, 2)]);
    script.ack(2);
    assert_eq!(script.sack(2, &[(3, 7)]), NOTHING);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.expire(), [2]);
    assert!(script.sender.in_recovery());
}

/// RFC 3708, section 2, and RFC 2883: segment 0 was late, and its retransmission is the duplicate.
#[test]
fn a_duplicate_of_each_retransmission_undoes_the_reduction_after_the_recovery() {
    covers!(rack_undo_by_duplicate_sack);
    let mut script = rack(10);
    let before = script.window();
    assert_eq!(script.sack(0, &[(1, 5)]), [0]);
    script.ack(10);
    assert_eq!(script.window().1, 5);
    script.sack(10, &[(0, 1)]);
    assert_eq!(script.sender.ssthresh(), u32::MAX, "as before the reduction");
    assert!(script.window().0 >= before.0);
}

/// Segments 0 and 4 are retransmitted, and only the first of them was spurious.
#[test]
fn a_duplicate_of_one_of_two_retransmissions_undoes_nothing() {
    let mut script = rack(10);
    assert_eq!(script.sack(0, &[(1, 4)]), [0]);
    while !script.sack(0, &[(5, 9), (1, 4)]).contains(&4) {}
    script.ack(10);
    script.sack(10, &[(0, 1)]);
    assert_eq!(script.window().1, 5);
    // More duplicates than retransmissions are copies made by the network.
    script.sack(10, &[(1, 2)]);
    script.sack(10, &[(2, 3)]);
    assert_eq!(script.window().1, u32::MAX / MSS, "the second one completes the number");
}

/// RFC 8985, section 6.2, step 4: `RACK.reo_wnd_mult` grows with a round trip in which a duplicate
/// was reported. The round trip is 10 ms.
#[test]
fn a_duplicate_widens_the_reordering_window_by_a_quarter_of_the_round_trip() {
    covers!(rack_widens_reordering_window);
    let wait = |script: &mut Script| {
        let before = script.now;
        script.expire();
        script.now.since(before)
    };
    let mut script = rack(10);
    script.sack(0, &[(1, 2)]);
    script.ack(2);
    script.sack(2, &[(3, 7)]);
    // Two milliseconds are the margin of the timer.
    assert_eq!(wait(&mut script), Duration::from_micros(4_500));
    script.ack(10);
    script.sack(10, &[(2, 3)]);
    script.write(8);
    script.ack(11);
    script.sack(11, &[(12, 16)]);
    assert_eq!(wait(&mut script), Duration::from_micros(7_000));
}

fn ack_with_echo(script: &mut Script, next: u32, echo_ms: u32) -> Vec<u64> {
    script.now += Duration::from_millis(10);
    let ack = Segment {
        ack: 1 + next * MSS,
        window: PEER_WINDOW,
        flags: Flags::ACK,
        timestamps: Some((1, echo_ms)),
        ..Segment::default()
    };
    script.handle(&ack)
}

/// RFC 3522, section 3.2: segment 0 was late; segment 6 is outstanding still.
#[test]
fn a_partial_acknowledgement_of_an_original_ends_the_recovery() {
    covers!(rack_undo_by_partial_ack);
    let mut script = rack(10);
    let before = script.window();
    assert_eq!(script.sack(0, &[(1, 5)]), [0]);
    ack_with_echo(&mut script, 6, 1_000);
    assert!(!script.sender.in_recovery());
    assert!(script.window().0 >= before.0);
}

/// Linux, `tcp_try_undo_partial`: the retransmission of segment 4 may have been necessary.
#[test]
fn with_a_retransmission_outstanding_a_late_original_undoes_nothing_yet() {
    covers!(rack_waits_for_original);
    let mut script = rack(10);
    assert_eq!(script.sack(0, &[(1, 4)]), [0]);
    while !script.sack(0, &[(5, 8), (1, 4)]).contains(&4) {}
    ack_with_echo(&mut script, 4, 1_000);
    assert!(script.sender.in_recovery());
    assert_eq!(script.window().1, 5);
}
