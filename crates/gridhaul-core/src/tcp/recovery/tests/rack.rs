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
