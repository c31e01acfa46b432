//! Linux without selective acknowledgements.

use super::*;

fn without_sack(written: u64) -> Script {
    Script::with(Profile::Linux, Kind::NewReno, written, |params| params.sack = false)
}

/// Each duplicate is a segment that has arrived, so that another one may be sent; the third one
/// shows the loss. RFC 6582, section 3.2, step 2: duplicates of the acknowledgement of all data of
/// the recovery are no new loss.
#[test]
fn duplicates_release_segments_and_a_recovery_ends_beyond_its_data() {
    covers!(linux_reno_fast_retransmit, linux_reno_remains_in_recovery);
    let mut script = without_sack(30);
    assert_eq!((script.ack(0), script.ack(0), script.ack(0)), (vec![10], vec![11], vec![0]));
    assert_eq!(script.window().1, 5);
    assert!(script.sender.in_recovery());
    script.ack(12);
    assert!(script.sender.in_recovery());
    script.ack(13);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.sender.stats().fast_retransmits, 1);
}

/// Of ten segments, four were lost: an acknowledgement of the first shows the second.
#[test]
fn a_partial_acknowledgement_retransmits_one_further_segment() {
    let mut script = without_sack(10);
    let duplicates: Vec<_> = (0..6).map(|_| script.ack(0)).collect();
    assert_eq!(duplicates.concat(), [0]);
    assert_eq!(script.ack(1), [1]);
    assert_eq!(script.ack(2), [2]);
    assert_eq!(script.ack(3), [3]);
    script.ack(10);
    assert_eq!(script.sender.stats().retransmissions, 4);
}

/// Linux, `tcp_check_reno_reordering`: with ten segments outstanding, at most nine have arrived.
#[test]
fn more_duplicates_than_outstanding_segments_raise_the_threshold() {
    let mut script = without_sack(4);
    // Copies of the same acknowledgement, which the network has made.
    let duplicates: Vec<_> = (0..8).map(|_| script.ack(0)).collect();
    assert_eq!(duplicates.concat(), [0]);
    script.ack(4);
    script.write(10);
    script.ack(5);
    let duplicates: Vec<_> = (0..3).map(|_| script.ack(5)).collect();
    assert!(!duplicates.concat().contains(&5), "{duplicates:?}");
}
