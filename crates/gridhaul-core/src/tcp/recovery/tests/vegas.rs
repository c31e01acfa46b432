//! Retransmission of Vegas (Brakmo and Peterson 1995, section 3.1), as in ns-2 where the paper is
//! silent.

use super::*;

/// Ten segments of the `written` are outstanding.
fn vegas(written: u64) -> Script {
    let vegas = |params: &mut StackParams| params.congestion_control = Algorithm::Vegas;
    Script::with(Profile::Rfc, Kind::Vegas, written, vegas)
}

/// A round trip of 10 ms: the fine timeout is 10 + 2 * 1.875 ms and a sixteenth, 14.6 ms; after the
/// retransmission 16.4 ms. Acknowledgements follow at intervals of 10 ms.
#[test]
fn a_duplicate_retransmits_the_first_segment_once_it_is_older_than_the_fine_timeout() {
    let mut script = vegas(10);
    script.ack(1);
    assert_eq!(script.ack(1), [1], "sent 20 ms ago");
    assert_eq!(script.window().0, 7, "a quarter of nine segments less");
    assert_eq!(script.ack(1), NOTHING, "sent 10 ms ago");
    assert_eq!(script.ack(1), [1], "sent 20 ms ago: the retransmission is lost as well");
    assert_eq!(script.window().0, 7, "it was not sent after the last reduction");
    assert!(script.sender.in_recovery());
    script.ack(10);
    assert!(!script.sender.in_recovery());
}

/// Segments 1 to 4 are lost.
#[test]
fn only_the_first_two_acknowledgements_after_a_retransmission_retransmit_an_old_segment() {
    let mut script = vegas(10);
    script.ack(1);
    assert_eq!(script.ack(1), [1]);
    assert_eq!([script.ack(2), script.ack(3), script.ack(4)], [vec![2], vec![3], vec![]]);
}

/// Before the first round trip is measured, three duplicates prove a loss, as in Reno: a window of
/// 8 segments, and one more for each duplicate.
#[test]
fn three_duplicates_retransmit_the_first_segment_and_each_inflates_the_window() {
    let mut script = vegas(20);
    let sent: Vec<_> = (0..4).map(|_| script.ack(0)).collect();
    assert_eq!(sent, [vec![], vec![], vec![0, 10], vec![11]]);
    script.ack(10);
    assert_eq!(script.window().0, 8);
}

/// ns-2, `VegasTcpAgent::recv`: the inflation is removed only if more duplicates followed.
#[test]
fn the_inflation_stays_if_no_duplicate_follows_the_retransmission() {
    let mut script = vegas(10);
    (0..3).for_each(|_| drop(script.ack(0)));
    script.ack(10);
    assert_eq!(script.window().0, 8 + 3);
}

/// RFC 6582, section 4.1: the acknowledgements may be those of segments sent twice.
#[test]
fn after_a_timeout_duplicates_of_old_data_are_no_sign_of_a_loss() {
    let mut script = vegas(10);
    script.time_out();
    (0..5).for_each(|_| drop(script.ack(0)));
    assert_eq!(script.sender.stats().fast_retransmits, 0);
}
