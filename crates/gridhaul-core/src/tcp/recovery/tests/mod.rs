//! Rules of the RFCs, each shown by acknowledgements for a sender with segments of 1,000 bytes.

mod linux_reno;
mod ns2;
mod rack;
mod vegas;

use gridhaul_scenario::scenario::{CongestionControlAlgorithm as Algorithm, Profile, Stack};
use gridhaul_scenario::units::{Duration, Instant};

use super::*;
use crate::coverage_mark::covers;
use crate::tcp::sender::Sender;
use crate::tcp::{Flags, SackBlocks, Segment};

const MSS: u32 = 1_000;
const PEER_WINDOW: u32 = 100 * MSS;

/// A sender on a path of 10 ms, and the numbers of the segments that it sends.
struct Script {
    params: StackParams,
    sender: Sender,
    now: Instant,
    peer_window: u32,
}

impl Script {
    /// A sender of an open connection, which sends `written` segments as far as its window of ten
    /// allows.
    fn new(profile: Profile, recovery: Kind, written: u64) -> Self {
        Self::with(profile, recovery, written, |_| {})
    }

    fn with(
        profile: Profile,
        recovery: Kind,
        written: u64,
        change: impl FnOnce(&mut StackParams),
    ) -> Self {
        let mut params = StackParams::resolve(&Stack { profile, ..Stack::default() });
        params.recovery = recovery;
        params.congestion_control = Algorithm::Reno;
        params.mss = MSS;
        params.initial_window = 10 * MSS;
        params.limited_transmit = false;
        change(&mut params);
        let mut sender = Sender::new(&params);
        sender.skip_handshake(PEER_WINDOW, 0);
        let now = Instant::ZERO + Duration::from_secs(1);
        let mut script = Self { params, sender, now, peer_window: PEER_WINDOW };
        script.write(written);
        script
    }

    /// The application writes segments. Returns those that are sent.
    fn write(&mut self, segments: u64) -> Vec<u64> {
        self.sender.write(segments * u64::from(MSS));
        self.poll()
    }

    fn poll(&mut self) -> Vec<u64> {
        let ranges = std::iter::from_fn(|| self.sender.poll_range(self.now, &self.params));
        ranges.map(|range| (range.start - 1) / u64::from(MSS)).collect()
    }

    /// Acknowledges all segments before `next` 10 ms later. Returns the segments that are sent.
    fn ack(&mut self, next: u32) -> Vec<u64> {
        self.sack(next, &[])
    }

    /// As [`Self::ack`], with selective acknowledgements of ranges of segments.
    fn sack(&mut self, next: u32, ranges: &[(u32, u32)]) -> Vec<u64> {
        self.now += Duration::from_millis(10);
        let mut sack = SackBlocks::default();
        for (first, end) in ranges {
            sack.push(1 + first * MSS, 1 + end * MSS);
        }
        let (ack, window) = (1 + next * MSS, self.peer_window);
        let segment = Segment { ack, window, sack, flags: Flags::ACK, ..Segment::default() };
        self.handle(&segment)
    }

    fn handle(&mut self, segment: &Segment) -> Vec<u64> {
        assert!(self.sender.handle_ack(self.now, segment, 0, &self.params));
        self.poll()
    }

    /// The next timer expires. Returns the segments that are sent.
    fn expire(&mut self) -> Vec<u64> {
        self.now = self.sender.next_deadline();
        self.sender.handle_timeout(self.now, &self.params);
        self.poll()
    }

    /// Timers expire until the retransmission timer does.
    fn time_out(&mut self) -> Vec<u64> {
        let before = self.sender.stats().timeouts;
        loop {
            let sent = self.expire();
            if self.sender.stats().timeouts > before {
                return sent;
            }
        }
    }

    /// Congestion window and slow-start threshold in segments.
    fn window(&self) -> (u32, u32) {
        (self.sender.cwnd() / MSS, self.sender.ssthresh() / MSS)
    }
}

const NOTHING: [u64; 0] = [];

/// RFC 6582, section 3.2: segments 0 and 4 of ten are lost.
#[test]
fn new_reno_retransmits_with_each_partial_acknowledgement_and_ends_at_the_threshold() {
    covers!(
        new_reno_fast_retransmit,
        new_reno_partial_acknowledgement,
        new_reno_full_acknowledgement
    );
    let mut script = Script::new(Profile::Rfc, Kind::NewReno, 10);
    assert_eq!((script.ack(0), script.ack(0)), (vec![], vec![]));
    assert_eq!(script.ack(0), [0]);
    assert_eq!(script.window().1, 5, "half of the ten segments outstanding");
    assert_eq!(script.ack(4), [4]);
    assert!(script.sender.in_recovery());
    assert_eq!(script.ack(10), NOTHING);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.window(), (5, 5), "the deflation is undone");
}

/// RFC 5681, section 3.2, steps 4 and 6: window 5 + 3, and 11 after three further duplicates.
#[test]
fn reno_inflates_its_window_by_duplicates_and_deflates_it_at_the_end() {
    covers!(reno_inflation, reno_deflation);
    let mut script = Script::new(Profile::Rfc, Kind::Reno, 20);
    let sent: Vec<_> = (0..6).map(|_| script.ack(0)).collect();
    assert_eq!(sent, [vec![], vec![], vec![0], vec![], vec![], vec![10]]);
    script.ack(10);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.window(), (5, 5));
}

/// RFC 3042: one new segment for each of the first two duplicates.
#[test]
fn the_first_two_duplicates_release_a_new_segment_each() {
    covers!(limited_transmit);
    let limited = |params: &mut StackParams| params.limited_transmit = true;
    let mut script = Script::with(Profile::Rfc, Kind::NewReno, 20, limited);
    assert_eq!((script.ack(0), script.ack(0), script.ack(0)), (vec![10], vec![11], vec![0]));
    assert_eq!(script.window().1, 5, "data of limited transmit does not count as outstanding");
}

#[test]
fn go_back_n_retransmits_all_segments_from_the_lost_one_on() {
    covers!(go_back_n_fast_retransmit);
    let tahoe = |params: &mut StackParams| params.congestion_control = Algorithm::Tahoe;
    let mut script = Script::with(Profile::Rfc, Kind::GoBackN, 10, tahoe);
    assert_eq!((script.ack(0), script.ack(0), script.ack(0)), (vec![], vec![], vec![0]));
    assert_eq!(script.ack(1), [1, 2], "slow start from one segment");
}

/// RFC 6675, section 5, step 1: more than (DupThresh - 1) * SMSS bytes above the first segment, in
/// one duplicate.
#[test]
fn sack_recovery_begins_with_three_sacked_segments_and_ends_at_its_recovery_point() {
    covers!(sack_recovery_by_sacked_bytes, sack_recovery_ends);
    let mut script = Script::new(Profile::Rfc, Kind::Sack, 10);
    assert_eq!(script.sack(0, &[(1, 3)]), NOTHING);
    assert_eq!(script.sack(0, &[(1, 4)]), [0]);
    assert_eq!(script.ack(9), NOTHING);
    assert!(script.sender.in_recovery(), "one segment before the recovery point");
    script.ack(10);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.window(), (5, 5));
}

/// RFC 6675, section 5.1.
#[test]
fn after_a_timeout_no_recovery_begins_before_the_recovery_point() {
    covers!(sack_no_recovery_before_recovery_point);
    let mut script = Script::new(Profile::Rfc, Kind::Sack, 10);
    assert_eq!(script.time_out(), [0]);
    script.sack(0, &[(5, 9)]);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.sender.stats().fast_retransmits, 0);
}

/// RFC 6675, section 4, NextSeg, rule 3: the peer's window blocks new data, and segment 7 has only
/// two sacked segments above it.
#[test]
fn an_unproven_hole_is_retransmitted_if_no_new_data_can_be_sent() {
    covers!(sack_fills_unproven_holes);
    let mut script = Script::new(Profile::Rfc, Kind::Sack, 20);
    script.peer_window = 10 * MSS;
    assert_eq!(script.sack(0, &[(1, 4)]), [0]);
    // Section 5, step C: in the same step, and not with the next acknowledgement.
    assert_eq!(script.sack(0, &[(8, 10), (1, 7)]), [7]);
}

/// RFC 8985, section 6.2, step 4: with a single sacked segment, a quarter of the minimum RTT passes
/// before a segment counts as lost.
#[test]
fn rack_waits_for_the_reordering_window() {
    covers!(rack_reordering_window);
    let mut script = Script::new(Profile::Linux, Kind::Rack, 10);
    script.ack(1);
    assert_eq!(script.sack(1, &[(2, 3)]), NOTHING);
    let before = script.now;
    assert_eq!(script.expire(), [1]);
    assert!(script.now.since(before) < Duration::from_millis(10), "{:?}", script.now);
    assert!(script.sender.in_recovery());
}

/// RFC 3522, section 3.2, and RFC 4015: the echoed timestamp is older than the retransmission.
#[test]
fn a_timestamp_before_the_retransmission_undoes_the_reduction() {
    covers!(rack_undo_by_timestamp);
    let mut script = Script::new(Profile::Linux, Kind::Rack, 10);
    let sent_at_ms = 1_000;
    let before = script.window();
    assert!(script.sack(0, &[(1, 5)]).contains(&0));
    assert!(script.window() < before);
    script.now += Duration::from_millis(10);
    let ack = Segment {
        ack: 1 + 10 * MSS,
        window: PEER_WINDOW,
        flags: Flags::ACK,
        timestamps: Some((1, sent_at_ms)),
        ..Segment::default()
    };
    script.handle(&ack);
    assert!(!script.sender.in_recovery());
    assert_eq!(script.sender.ssthresh(), u32::MAX, "as before the reduction");
    assert!(script.window().0 >= before.0);
}

/// RFC 5682, section 3.1, step 3b: segment 2, which was not retransmitted, is acknowledged.
#[test]
fn an_acknowledgement_of_original_data_shows_that_a_timeout_was_spurious() {
    covers!(f_rto_spurious_timeout);
    let mut script = Script::new(Profile::Linux, Kind::Rack, 20);
    script.ack(1);
    assert_eq!(script.time_out(), [1]);
    assert_eq!(script.window().0, 1);
    script.ack(3);
    assert!(script.window().0 > 10, "{:?}", script.window());
    assert_eq!(script.sender.ssthresh(), u32::MAX);
}

/// RFC 5682, section 3.1, step 2b.
#[test]
fn after_a_timeout_new_data_is_sent_to_find_out_whether_it_was_spurious() {
    covers!(f_rto_sends_new_data);
    let mut script = Script::new(Profile::Linux, Kind::Rack, 20);
    script.ack(1);
    assert_eq!(script.time_out(), [1]);
    let next = (script.sender.next() - 1) / u64::from(MSS);
    let sent = script.ack(2);
    assert!(!sent.is_empty() && sent[0] == next, "{sent:?} is not new data from {next} on");
}

/// RFC 8985, section 7.4: the retransmitted probe has filled the hole, which no other
/// acknowledgement shows.
#[test]
fn a_loss_that_a_tail_loss_probe_has_repaired_reduces_the_window() {
    covers!(tail_loss_probe_repaired_loss);
    let mut script = Script::new(Profile::Linux, Kind::Rack, 2);
    script.ack(1);
    assert_eq!(script.expire(), [1]);
    let before = script.window().0;
    assert_eq!(script.write(1), [2]);
    script.ack(3);
    assert!(script.window().0 < before);
    assert_eq!(script.sender.stats().timeouts, 0);
}

/// RFC 6298, 5.5.
#[test]
fn each_timeout_doubles_the_next() {
    covers!(rto_back_off);
    let mut script = Script::new(Profile::Rfc, Kind::NewReno, 1);
    let rto = |script: &Script| script.sender.rtt().rto(&script.params);
    assert_eq!(rto(&script), Duration::from_secs(1));
    assert_eq!(script.time_out(), [0]);
    assert_eq!(rto(&script), Duration::from_secs(2));
    assert_eq!(script.time_out(), [0]);
    assert_eq!(rto(&script), Duration::from_secs(4));
}

/// RFC 6298, 5.7.
#[test]
fn data_after_a_lost_syn_has_a_timeout_of_three_seconds() {
    covers!(rto_after_lost_syn);
    let params = StackParams::resolve(&Stack { profile: Profile::Rfc, ..Stack::default() });
    let mut sender = Sender::new(&params);
    sender.send_syn(Instant::ZERO, &params);
    let now = sender.next_deadline();
    sender.handle_timeout(now, &params);
    assert_eq!(sender.poll_range(now, &params).map(|range| range.start), Some(0));
    let syn_ack = Segment { ack: 1, flags: Flags::SYN.with(Flags::ACK), ..Segment::default() };
    assert!(sender.handle_ack(now + Duration::from_millis(10), &syn_ack, 0, &params));
    assert_eq!(sender.rtt().rto(&params), Duration::from_secs(3));
}

/// RFC 6582, section 4.1: duplicates after a timeout may be those of segments sent twice.
#[test]
fn after_a_timeout_duplicates_of_old_data_retransmit_nothing() {
    for recovery in [Kind::GoBackN, Kind::Reno, Kind::NewReno] {
        let mut script = Script::new(Profile::Rfc, recovery, 10);
        script.time_out();
        (0..5).for_each(|_| drop(script.ack(0)));
        assert_eq!(script.sender.stats().fast_retransmits, 0, "{recovery:?}");
    }
}

/// RFC 6582, section 3.2, step 3: "Deflate the congestion window by the amount of new data
/// acknowledged [...] add back SMSS bytes". The window of 5 segments is inflated by 8, then by 7.
#[test]
fn a_partial_acknowledgement_deflates_the_window_by_the_data_that_it_acknowledges() {
    let mut script = Script::new(Profile::Rfc, Kind::NewReno, 20);
    let sent: Vec<_> = (0..8).flat_map(|_| script.ack(0)).collect();
    assert_eq!(sent, [0, 10, 11, 12]);
    assert_eq!(script.ack(2), [2, 13]);
}

/// RFC 6582, section 3.2, step 3: "For the first partial ACK that arrives during fast recovery,
/// also reset the retransmit timer" (the Impatient variant).
#[test]
fn only_the_first_partial_acknowledgement_restarts_the_timer() {
    let mut script = Script::new(Profile::Rfc, Kind::NewReno, 10);
    (0..3).for_each(|_| drop(script.ack(0)));
    let before = script.sender.next_deadline();
    script.ack(2);
    let after_first = script.sender.next_deadline();
    script.ack(4);
    assert!(after_first > before);
    assert_eq!(script.sender.next_deadline(), after_first);
}

/// RFC 6675, section 5, step C: segment 4 has three sacked segments above it.
#[test]
fn a_second_hole_is_retransmitted_once_three_segments_above_it_are_sacked() {
    let mut script = Script::new(Profile::Rfc, Kind::Sack, 10);
    assert_eq!(script.sack(0, &[(1, 4)]), [0]);
    assert_eq!(script.sack(0, &[(5, 7), (1, 4)]), NOTHING);
    assert_eq!(script.sack(0, &[(5, 8), (1, 4)]), [4]);
}

/// Before a loss, window and transmission are those of the congestion control alone.
#[test]
fn a_recovery_has_no_effect_before_a_loss() {
    let kinds = [Kind::GoBackN, Kind::Reno, Kind::NewReno, Kind::Sack, Kind::Rack, Kind::Vegas];
    for kind in kinds {
        let stack = Stack { profile: Profile::Linux, ..Stack::default() };
        let params = StackParams { recovery: kind, ..StackParams::resolve(&stack) };
        let recovery = Recovery::new(&params);
        assert_eq!(
            (recovery.inflation(), recovery.window(), recovery.in_flight(9, 4)),
            (0, None, None)
        );
        assert!(recovery.may_send() && !recovery.sends_new_data_first());
        assert!(!recovery.in_recovery() && !recovery.is_watching());
        assert_eq!(recovery.round_trip(), None);
        // Those of Linux, which use F-RTO.
        let is_linux = matches!(recovery, Recovery::Rack(_) | Recovery::LinuxReno(_));
        assert_eq!(recovery.repairs_timeout(), is_linux.then_some(false));
        assert_eq!(recovery.clone().resumes_retransmission(1), !is_linux, "{kind:?}");
    }
}

/// RFC 6582, section 3.2, step 2: the acknowledgement has to cover "more than recover". That of
/// exactly the data sent before the timeout does not.
#[test]
fn after_a_timeout_a_fast_retransmit_needs_an_acknowledgement_of_later_data() {
    let fast_retransmits = |later| {
        let mut script = Script::new(Profile::Rfc, Kind::NewReno, 10);
        script.time_out();
        (1..=10).for_each(|next| drop(script.ack(next)));
        script.write(20);
        if later {
            script.ack(11);
        }
        (0..3).for_each(|_| drop(script.ack(10 + u32::from(later))));
        script.sender.stats().fast_retransmits
    };
    assert_eq!([fast_retransmits(false), fast_retransmits(true)], [0, 1]);
}
