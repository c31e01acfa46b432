//! Recoveries of ns-2's agents, by acknowledgements whose effect follows from the code of ns-2.

use super::*;

/// The agents of ns-2 with selective acknowledgements and twenty segments to send, of which the
/// window allows ten.
fn sack1() -> Script {
    Script::with(Profile::Ns2, Kind::Sack, 20, |params| params.sack = true)
}

/// `tcp-sack1.cc`: segment 0 is lost, each of the others causes a duplicate. The pipe has 7
/// segments after the third duplicate and 4 after the sixth, one less than the window of 5.
#[test]
fn sack1_sends_a_segment_for_each_duplicate_once_the_pipe_is_below_the_window() {
    let mut script = sack1();
    let sent: Vec<_> = (2..=10).map(|end| script.sack(0, &[(1, end)])).collect();
    let expected =
        [vec![], vec![], vec![0], vec![], vec![], vec![10], vec![11], vec![12], vec![13]];
    assert_eq!(sent, expected);
    assert_eq!(script.window(), (5, 5));
    assert!(script.sender.in_recovery());
    // All that was outstanding at the first retransmission.
    script.ack(10);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.window(), (5, 5));
}

/// `dupack_action`: four segments are outstanding, and the window of two would allow a new one.
#[test]
fn sack1_sends_the_first_retransmission_alone() {
    let mut script = Script::with(Profile::Ns2, Kind::Sack, 20, |params| {
        params.sack = true;
        params.initial_window = 4 * MSS;
    });
    let sent = [2, 3, 4].map(|end| script.sack(0, &[(1, end)]));
    assert_eq!(sent, [vec![], vec![], vec![0]]);
}

/// Outside of recovery the pipe is what is outstanding and not lost: nothing after a timeout.
#[test]
fn sack1_retransmits_a_segment_at_once_after_a_timeout() {
    let mut script = sack1();
    assert_eq!(script.time_out(), [0]);
    assert_eq!(script.ack(1), [1, 2]);
}

/// A partial acknowledgement removes two segments from the pipe: the lost one and its
/// retransmission. It restarts the timer without back-off (`newtimer (pkt); t_backoff_ = 1;`).
#[test]
fn sack1_counts_a_partial_acknowledgement_as_two_segments() {
    let mut script = sack1();
    (2..=4).for_each(|end| drop(script.sack(0, &[(1, end)])));
    // Segment 5 is lost as well. The pipe has 6 segments, 5, and then 4: the hole is filled first.
    assert_eq!(script.sack(0, &[(1, 5)]), NOTHING);
    assert_eq!(script.sack(0, &[(6, 7), (1, 5)]), NOTHING);
    assert_eq!(script.sack(0, &[(6, 8), (1, 5)]), [5]);
    assert_eq!(script.sack(0, &[(6, 9), (1, 5)]), [10]);
    assert_eq!(script.sack(0, &[(6, 10), (1, 5)]), [11]);
    assert_eq!(script.sack(5, &[(6, 10)]), [12, 13]);
    assert!(script.sender.in_recovery());
}

/// `send_one`: limited transmit sends one new segment for each of the first two duplicates,
/// however much they sack.
#[test]
fn sack1_sends_one_new_segment_for_each_of_the_first_two_duplicates() {
    let mut script = Script::with(Profile::Ns2, Kind::Sack, 20, |params| {
        params.sack = true;
        params.limited_transmit = true;
    });
    assert_eq!(script.sack(0, &[(4, 10)]), [10]);
    assert_eq!(script.sack(0, &[(3, 10)]), [11]);
    assert_eq!(script.sack(0, &[(2, 10)]), [0]);
}

/// `bugFix_`: after a timeout duplicates of old data retransmit nothing, except (`bugfix_ss_`)
/// those of the first segment.
#[test]
fn after_a_timeout_only_the_first_segment_is_retransmitted_fast() {
    let fast_retransmits = |acknowledged| {
        let mut script = Script::new(Profile::Ns2, Kind::NewReno, 20);
        if acknowledged > 0 {
            script.ack(acknowledged);
        }
        script.time_out();
        (0..3).for_each(|_| drop(script.ack(acknowledged)));
        script.sender.stats().fast_retransmits
    };
    assert_eq!(fast_retransmits(0), 1);
    assert_eq!(fast_retransmits(1), 0);
}

/// `send_much (0, 0, 2)`: two segments for each acknowledgement in the recovery of NewReno, also if
/// the window of 5 and 9 segments allows four.
#[test]
fn new_reno_sends_at_most_two_segments_for_an_acknowledgement() {
    let mut script = Script::new(Profile::Ns2, Kind::NewReno, 10);
    let sent: Vec<_> = (0..9).flat_map(|_| script.ack(0)).collect();
    assert_eq!(sent, [0]);
    assert_eq!(script.write(20), [10, 11]);
    assert_eq!(script.ack(0), [12, 13]);
}
