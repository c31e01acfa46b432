//! `snoop` by example, and under arbitrary schedules.

use gridhaul_scenario::units::{Bytes, Duration, Instant};
use proptest::prelude::*;

use super::chain::Chain;
use super::hop::schedules;
use super::host::{Application, Close};
use super::malformed_segments::segments;
use super::stack;
use crate::pep::{Proxy, Side, Snoop};
use crate::tcp::{Flags, SackBlocks, Segment};

/// A proxy for the hop to the server. Its outgoing segments are described as text.
struct Harness {
    snoop: Snoop,
    now: Instant,
}

impl Harness {
    fn new() -> Self {
        Self { snoop: Snoop::new(Side::Server, Bytes::new(10_000)), now: Instant::ZERO }
    }

    /// A connection with four outstanding segments of 100 bytes from sequence number 100 on, and a
    /// last acknowledgement of 100.
    fn with_four_outstanding() -> Self {
        let mut harness = Self::new();
        harness.ack(100, &[]);
        (0..4).for_each(|i| drop(harness.data(100 + 100 * i)));
        harness
    }

    fn data(&mut self, seq: u32) -> Vec<String> {
        let flags = Flags::ACK;
        let segment = Segment { seq, len: 100, flags, header: 40, ..Segment::default() };
        self.handle(Side::Client, segment)
    }

    fn ack(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Vec<String> {
        self.handle(Side::Server, acknowledgement(ack, blocks))
    }

    fn handle(&mut self, from: Side, segment: Segment) -> Vec<String> {
        self.now += Duration::from_millis(1);
        self.snoop.handle_segment(self.now, from, &segment);
        self.sent()
    }

    fn wait(&mut self, time: Duration) -> Vec<String> {
        let until = self.now + time;
        let mut sent = Vec::new();
        while self.snoop.next_deadline() <= until {
            self.now = self.snoop.next_deadline();
            self.snoop.handle_timeout(self.now);
            sent.extend(self.sent());
        }
        self.now = until;
        sent
    }

    fn sent(&mut self) -> Vec<String> {
        let outgoing = std::iter::from_fn(|| self.snoop.poll_transmit(self.now));
        outgoing
            .map(|out| {
                let (seq, prefix) = (out.segment.seq, if out.is_forwarded() { "" } else { "rtx " });
                match out.to {
                    Side::Server => format!("{prefix}{seq}"),
                    Side::Client => {
                        format!("ack {} {:?}", out.segment.ack, out.segment.sack.as_slice())
                    }
                }
            })
            .collect()
    }
}

fn acknowledgement(ack: u32, blocks: &[(u32, u32)]) -> Segment {
    let mut sack = SackBlocks::default();
    blocks.iter().for_each(|&(left, right)| sack.push(left, right));
    Segment { ack, sack, window: 5000, flags: Flags::ACK, header: 40, ..Segment::default() }
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_segment_with_fin_in_place_of_the_last_byte_is_a_different_segment() {
    let mut harness = Harness::with_four_outstanding();
    let flags = Flags::ACK.with(Flags::FIN);
    let fin = Segment { seq: 400, len: 99, flags, header: 40, ..Segment::default() };
    harness.handle(Side::Client, fin);
    assert_eq!(
        harness.snoop.buffer_status(Side::Client).bytes,
        400,
        "the cached segment is not replaced"
    );
    harness.ack(500, &[]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 0);
}

#[test]
fn the_first_selective_acknowledgement_triggers_a_retransmission_and_is_not_forwarded() {
    let mut harness = Harness::with_four_outstanding();
    assert_eq!(harness.ack(100, &[(200, 300)]), ["rtx 100"]);
    assert_eq!(harness.ack(100, &[(200, 400)]), NOTHING);
    // 500 was sent after the retransmission and has arrived: the retransmission is lost as well.
    harness.data(500);
    harness.wait(Duration::from_millis(1));
    assert_eq!(harness.ack(100, &[(200, 600)]), ["rtx 100"]);
    assert_eq!(harness.ack(600, &[]), ["ack 600 []"]);
    assert_eq!(harness.snoop.statistics().retransmissions, [0, 2]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 0);
    assert_eq!(harness.snoop.next_deadline(), Instant::NEVER);
}

/// The sender has not received the acknowledgement, and will receive that of the receiver.
#[test]
fn data_that_the_receiver_has_acknowledged_is_forwarded_and_not_cached_again() {
    let mut harness = Harness::with_four_outstanding();
    assert_eq!(harness.ack(500, &[]), ["ack 500 []"]);
    assert_eq!(harness.data(400), ["400"]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 0);
    assert_eq!(harness.snoop.next_deadline(), Instant::NEVER);
    assert_eq!(harness.ack(500, &[]), ["ack 500 []"]);
}

#[test]
fn several_holes_are_repaired_in_one_round_trip() {
    let mut harness = Harness::with_four_outstanding();
    assert_eq!(harness.ack(100, &[(200, 300)]), ["rtx 100"]);
    assert_eq!(harness.ack(100, &[(400, 500), (200, 300)]), ["rtx 300"]);
    // The proxy is still repairing the remaining hole.
    assert_eq!(harness.ack(300, &[(400, 500)]), ["ack 300 []"]);
}

#[test]
fn the_second_duplicate_triggers_a_retransmission_and_none_is_forwarded() {
    let mut harness = Harness::with_four_outstanding();
    assert_eq!(harness.ack(100, &[]), NOTHING);
    assert_eq!(harness.ack(100, &[]), ["rtx 100"]);
    assert_eq!(harness.ack(100, &[]), NOTHING);
    // Three segments had followed: the fourth duplicate is caused by a segment that was sent after
    // the retransmission.
    harness.data(500);
    assert_eq!(harness.ack(100, &[]), ["rtx 100"]);
    assert_eq!(harness.ack(600, &[]), ["ack 600 []"]);
}

#[test]
fn acknowledgements_with_information_for_the_sender_are_forwarded() {
    let mut harness = Harness::with_four_outstanding();
    let is_forwarded = |harness: &mut Harness, segment: Segment| {
        assert_eq!(harness.handle(Side::Server, segment), ["ack 100 []"], "{segment:?}");
    };
    // A window that has changed (RFC 5681, section 2: no duplicate), and a repeated zero window.
    is_forwarded(&mut harness, Segment { window: 6000, ..acknowledgement(100, &[]) });
    is_forwarded(&mut harness, Segment { window: 0, ..acknowledgement(100, &[]) });
    is_forwarded(&mut harness, Segment { window: 0, ..acknowledgement(100, &[]) });
    is_forwarded(&mut harness, acknowledgement(100, &[]));
    // Data, and FIN.
    is_forwarded(&mut harness, Segment { len: 10, ..acknowledgement(100, &[]) });
    is_forwarded(
        &mut harness,
        Segment { flags: Flags::ACK.with(Flags::FIN), ..acknowledgement(100, &[]) },
    );
    // Duplicates after a retransmission by the sender.
    assert_eq!(harness.data(100), ["100"]);
    is_forwarded(&mut harness, acknowledgement(100, &[]));
    is_forwarded(&mut harness, acknowledgement(100, &[]));
}

#[test]
fn a_hole_from_an_earlier_hop_is_repaired_by_the_sender() {
    let mut harness = Harness::new();
    harness.ack(100, &[]);
    for seq in [100, 300, 400, 500] {
        harness.data(seq);
    }
    // 200 was lost before the proxy, 400 after it: only the first hole is reported to the sender.
    let reported = harness.ack(200, &[(500, 600), (300, 400)]);
    assert_eq!(reported, ["ack 200 [(300, 400)]", "rtx 400"]);
    assert_eq!(harness.data(200), ["200"]);
    assert_eq!(harness.ack(200, &[(300, 600)]), ["ack 200 [(300, 600)]"]);
    assert_eq!(harness.ack(600, &[]), ["ack 600 []"]);
}

#[test]
fn the_timer_retransmits_the_first_segment_until_r2() {
    let mut harness = Harness::new();
    harness.ack(100, &[]);
    harness.data(100);
    harness.data(200);
    // With a round-trip time of 10 ms, the timeout is 10 + 4 * 5 ms.
    harness.wait(Duration::from_millis(9));
    harness.ack(300, &[]);
    harness.data(300);
    harness.data(400);
    assert_eq!(harness.wait(Duration::from_millis(29)), NOTHING);
    assert_eq!(harness.wait(Duration::from_millis(1)), ["rtx 300"]);
    // The timeout doubles: 60, 120, 240, 480 ms, then 1 s for 100 s.
    assert_eq!(harness.wait(Duration::from_millis(900)).len(), 4);
    assert_eq!(harness.wait(Duration::from_secs(10)).len(), 10);
    let statistics = harness.snoop.statistics();
    assert_eq!((statistics.retransmissions, statistics.timeouts), ([0, 15], [0, 15]));
    harness.wait(Duration::from_secs(100));
    assert_eq!(harness.snoop.next_deadline(), Instant::NEVER);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 0);
    assert_eq!(harness.ack(300, &[]), ["ack 300 []"]);
}

#[test]
fn a_closed_window_stops_retransmissions() {
    let mut harness = Harness::with_four_outstanding();
    harness.handle(Side::Server, Segment { window: 0, ..acknowledgement(100, &[]) });
    assert_eq!(harness.wait(Duration::from_secs(5)), NOTHING);
    // A zero-window probe and its answer.
    assert_eq!(harness.data(100), ["100"]);
    let answer = Segment { window: 0, ..acknowledgement(100, &[]) };
    assert_eq!(harness.handle(Side::Server, answer), ["ack 100 []"]);
}

#[test]
fn syn_and_rst_empty_the_cache() {
    let mut harness = Harness::with_four_outstanding();
    let with = |flags| Segment { flags, ..acknowledgement(100, &[]) };
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 400);
    assert_eq!(harness.handle(Side::Client, with(Flags::RST)), ["0"]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 0);
    let mut harness = Harness::with_four_outstanding();
    assert_eq!(harness.handle(Side::Client, with(Flags::SYN)), ["0"]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 0);
    // FIN is repaired like data.
    let mut harness = Harness::new();
    harness.ack(100, &[]);
    let fin = Segment { seq: 100, flags: Flags::ACK.with(Flags::FIN), ..Segment::default() };
    assert_eq!(harness.handle(Side::Client, fin), ["100"]);
    assert_eq!(harness.wait(Duration::from_secs(1)), ["rtx 100"]);
    assert_eq!(harness.ack(101, &[]), ["ack 101 []"]);
}

#[test]
fn an_acknowledgement_of_data_from_another_path_resets_the_state() {
    let mut harness = Harness::with_four_outstanding();
    assert_eq!(harness.ack(900, &[]), ["ack 900 []"]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 0);
    harness.data(900);
    harness.data(1000);
    harness.data(1100);
    assert_eq!(harness.ack(900, &[(1000, 1100)]), ["ack 900 []", "rtx 900"]);
}

#[test]
fn a_segment_that_the_receiver_has_acknowledged_in_part_is_sent_without_that_part() {
    let mut harness = Harness::new();
    harness.ack(150, &[]);
    assert_eq!(harness.data(100), ["rtx 150"]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 50);
}

/// A segment that an earlier one has overtaken before the proxy.
#[test]
fn a_segment_before_the_first_one_is_cached() {
    let mut harness = Harness::new();
    harness.data(500);
    harness.data(400);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 200);
}

/// Nothing was sent after the only segment that could have caused the duplicate.
#[test]
fn a_duplicate_of_the_last_segment_is_no_sign_of_a_loss() {
    let mut harness = Harness::new();
    harness.ack(100, &[]);
    harness.data(100);
    assert_eq!(harness.ack(100, &[]), NOTHING);
    assert_eq!(harness.ack(100, &[]), NOTHING);
}

/// RFC 7323, section 2.2: the window of SYN-ACK is not scaled; here 150 bytes.
#[test]
fn a_segment_beyond_the_window_of_syn_ack_is_forwarded_and_not_cached() {
    let mut harness = Harness::new();
    let syn = Segment { seq: 99, flags: Flags::SYN, ..Segment::default() };
    harness.handle(Side::Client, syn);
    let flags = Flags::SYN.with(Flags::ACK);
    let syn_ack = Segment { seq: 899, ack: 100, window: 150, flags, ..Segment::default() };
    harness.handle(Side::Server, syn_ack);
    assert_eq!(harness.data(100), ["100"]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 100);
    assert_eq!(harness.data(200), ["200"]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 100);
}

#[test]
fn a_cache_is_finished_once_all_data_is_acknowledged() {
    let mut harness = Harness::new();
    assert!(harness.snoop.is_finished());
    harness.ack(100, &[]);
    assert_eq!(harness.snoop.accepts(Side::Client, &acknowledgement(900, &[])), None);
    let data = Segment { len: 10, ..acknowledgement(900, &[]) };
    assert_eq!(harness.snoop.accepts(Side::Server, &data), None, "not over the lossy hop");
    harness.data(100);
    assert!(!harness.snoop.is_finished());
    harness.ack(200, &[]);
    assert!(harness.snoop.is_finished());
}

/// Ten segments from 200 on are outstanding, and eight wait.
fn with_eight_waiting() -> Harness {
    let mut harness = Harness::new();
    harness.ack(100, &[]);
    harness.data(100);
    harness.wait(Duration::from_millis(50));
    assert_eq!(harness.ack(200, &[]), ["ack 200 []"]);
    let sent: Vec<_> = (2..20).flat_map(|i| harness.data(100 * i)).collect();
    assert_eq!(sent, (2..12).map(|i| (100 * i).to_string()).collect::<Vec<_>>());
    harness
}

#[test]
fn segments_beyond_the_hop_window_wait_and_are_overtaken_by_retransmissions() {
    let mut harness = with_eight_waiting();
    assert_eq!(harness.ack(200, &[(300, 400)])[..2], ["rtx 200", "rtx 1200"]);
    assert_eq!(harness.snoop.buffer_status(Side::Client).bytes, 1800);
}

#[test]
fn waiting_segments_are_sent_in_order_when_the_sender_retransmits() {
    let waiting: Vec<_> = (12..20).map(|i| format!("rtx {}", 100 * i)).collect();
    assert_eq!(with_eight_waiting().data(1900), waiting);
    // The same when the connection is reset.
    let reset = Segment { flags: Flags::RST, ..Segment::default() };
    assert_eq!(with_eight_waiting().handle(Side::Client, reset)[..8], waiting);
    // The same after the second timeout without an acknowledgement.
    let sent = with_eight_waiting().wait(Duration::from_secs(1));
    assert_eq!(sent[..2], ["rtx 200", "rtx 200"]);
    assert_eq!(sent[2..10], waiting);
}

proptest! {
    #[test]
    fn streams_arrive_through_any_number_of_proxies(
        impairments in schedules(200),
        towards in prop::collection::vec(prop_oneof![Just(Side::Client), Just(Side::Server)], 1..4),
        sizes in [0..6_000_u64, 0..6_000_u64],
        limit in prop_oneof![Just(0_u64), 100..1_000_u64, Just(20_000_u64)],
        window in 300..4_000_u32,
        handshake: bool,
        sack: bool,
    ) {
        let applications =
            [Application::new(sizes[0], Close::AtOnce), Application::new(sizes[1],
                Close::AfterPeer)];
        let mut params = (*stack(100, window)).clone();
        params.sack = sack;
        let params = std::sync::Arc::new(params);
        let proxies = towards.iter().map(|&toward| {
            Box::new(Snoop::new(toward, Bytes::new(limit))) as Box<dyn Proxy>
        }).collect();
        let mut chain = if handshake {
            Chain::opening(&params, applications, proxies, limit, impairments)
        } else {
            Chain::established(&params, applications, proxies, limit, impairments)
        };
        chain.run_to_completion();
    }

    #[test]
    fn a_crash_or_a_path_change_loses_nothing(
        impairments in schedules(100),
        at in 0..2_000_u64,
        bypassed: bool,
        size in 1_000..20_000_u64,
    ) {
        let applications =
            [Application::new(size, Close::AtOnce), Application::new(0, Close::AfterPeer)];
        let snoop = || Box::new(Snoop::new(Side::Server, Bytes::new(4_000)));
        let mut chain =
            Chain::opening(&stack(100, 2_000), applications, vec![snoop(), snoop()], 4_000,
                impairments);
        chain.run(Instant::ZERO + Duration::from_millis(at));
        if bypassed { chain.bypass(1) } else { chain.crash(1, snoop()) }
        chain.run_to_completion();
        prop_assert!(chain.lost_in_crash.iter().all(Vec::is_empty));
    }

    #[test]
    fn malformed_segments_do_not_exceed_the_cache(steps in segments(200)) {
        let mut snoop = Snoop::new(Side::Server, Bytes::new(5_000));
        let mut now = Instant::ZERO;
        for (wait, from, segment) in steps {
            now += wait;
            if snoop.next_deadline() <= now {
                snoop.handle_timeout(now);
                prop_assert!(snoop.next_deadline() > now);
            }
            snoop.handle_segment(now, from, &segment);
            while snoop.poll_transmit(now).is_some() {}
            prop_assert!(snoop.buffer_status(Side::Client).bytes <= 5_000);
        }
    }
}
