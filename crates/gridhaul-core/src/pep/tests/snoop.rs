//! `snoop` by small tables, and under arbitrary schedules.

use gridhaul_scenario::units::{Bytes, Duration, Instant};
use proptest::prelude::*;

use super::chain::Chain;
use super::hop::schedules;
use super::host::{Application, Close};
use super::malformed_segments::segments;
use super::stack;
use crate::pep::{Proxy, Side, Snoop};
use crate::tcp::{Flags, SackBlocks, Segment};

/// A proxy towards the right, and what it sends, as text.
struct Bench {
    snoop: Snoop,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Self { snoop: Snoop::new(Side::Server, Bytes::new(10_000)), now: Instant::ZERO }
    }

    /// A connection in which four segments of 100 bytes have gone over the hop since 100, and the
    /// last acknowledgement was of 100.
    fn with_four_out() -> Self {
        let mut bench = Self::new();
        bench.ack(100, &[]);
        (0..4).for_each(|i| drop(bench.data(100 + 100 * i)));
        bench
    }

    fn data(&mut self, seq: u32) -> Vec<String> {
        let flags = Flags::ACK;
        let segment = Segment { seq, len: 100, flags, header: 40, ..Segment::default() };
        self.feed(Side::Client, segment)
    }

    fn ack(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Vec<String> {
        self.feed(Side::Server, acknowledgement(ack, blocks))
    }

    fn feed(&mut self, from: Side, segment: Segment) -> Vec<String> {
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
                let (seq, copy) = (out.segment.seq, if out.is_forwarded() { "" } else { "copy " });
                match out.to {
                    Side::Server => format!("{copy}{seq}"),
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
fn a_fin_in_place_of_the_last_byte_is_not_taken_for_the_same_segment() {
    let mut bench = Bench::with_four_out();
    let flags = Flags::ACK.with(Flags::FIN);
    let fin = Segment { seq: 400, len: 99, flags, header: 40, ..Segment::default() };
    bench.feed(Side::Client, fin);
    assert_eq!(bench.snoop.buffer_status(Side::Client).bytes, 400, "what is kept stays as it was");
    bench.ack(500, &[]);
    assert_eq!(bench.snoop.buffer_status(Side::Client).bytes, 0);
}

#[test]
fn the_first_selective_acknowledgement_brings_a_copy_and_goes_no_further() {
    let mut bench = Bench::with_four_out();
    assert_eq!(bench.ack(100, &[(200, 300)]), ["copy 100"]);
    assert_eq!(bench.ack(100, &[(200, 400)]), NOTHING);
    // 500 went after the copy and has arrived: the copy is lost, too.
    bench.data(500);
    bench.wait(Duration::from_millis(1));
    assert_eq!(bench.ack(100, &[(200, 600)]), ["copy 100"]);
    assert_eq!(bench.ack(600, &[]), ["ack 600 []"]);
    assert_eq!(bench.snoop.buffer_status(Side::Client).bytes, 0);
    assert_eq!(bench.snoop.next_deadline(), Instant::NEVER);
}

#[test]
fn several_holes_are_filled_in_one_round_trip() {
    let mut bench = Bench::with_four_out();
    assert_eq!(bench.ack(100, &[(200, 300)]), ["copy 100"]);
    assert_eq!(bench.ack(100, &[(400, 500), (200, 300)]), ["copy 300"]);
    // What remains open is still being repaired from here.
    assert_eq!(bench.ack(300, &[(400, 500)]), ["ack 300 []"]);
}

#[test]
fn the_second_duplicate_brings_a_copy_and_none_goes_further() {
    let mut bench = Bench::with_four_out();
    assert_eq!(bench.ack(100, &[]), NOTHING);
    assert_eq!(bench.ack(100, &[]), ["copy 100"]);
    assert_eq!(bench.ack(100, &[]), NOTHING);
    // Three segments had followed: the fourth duplicate comes from one that went after the copy.
    bench.data(500);
    assert_eq!(bench.ack(100, &[]), ["copy 100"]);
    assert_eq!(bench.ack(600, &[]), ["ack 600 []"]);
}

#[test]
fn what_the_sender_must_know_goes_on() {
    let mut bench = Bench::with_four_out();
    let passes = |bench: &mut Bench, segment: Segment| {
        assert_eq!(bench.feed(Side::Server, segment), ["ack 100 []"], "{segment:?}");
    };
    // A window that has changed (RFC 5681, section 2: no duplicate), and its repeat with zero.
    passes(&mut bench, Segment { window: 6000, ..acknowledgement(100, &[]) });
    passes(&mut bench, Segment { window: 0, ..acknowledgement(100, &[]) });
    passes(&mut bench, Segment { window: 0, ..acknowledgement(100, &[]) });
    passes(&mut bench, acknowledgement(100, &[]));
    // Data, and FIN.
    passes(&mut bench, Segment { len: 10, ..acknowledgement(100, &[]) });
    passes(&mut bench, Segment { flags: Flags::ACK.with(Flags::FIN), ..acknowledgement(100, &[]) });
    // What the sender itself has sent again.
    assert_eq!(bench.data(100), ["100"]);
    passes(&mut bench, acknowledgement(100, &[]));
    passes(&mut bench, acknowledgement(100, &[]));
}

#[test]
fn a_hole_from_before_is_the_senders_to_fill() {
    let mut bench = Bench::new();
    bench.ack(100, &[]);
    for seq in [100, 300, 400, 500] {
        bench.data(seq);
    }
    // 200 was lost on the way here, 400 behind: only the first of them is reported.
    let reported = bench.ack(200, &[(500, 600), (300, 400)]);
    assert_eq!(reported, ["ack 200 [(300, 400)]", "copy 400"]);
    assert_eq!(bench.data(200), ["200"]);
    assert_eq!(bench.ack(200, &[(300, 600)]), ["ack 200 [(300, 600)]"]);
    assert_eq!(bench.ack(600, &[]), ["ack 600 []"]);
}

#[test]
fn the_timer_sends_the_first_again_until_it_gives_up() {
    let mut bench = Bench::new();
    bench.ack(100, &[]);
    bench.data(100);
    bench.data(200);
    // A round trip of 10 ms: 10 + 4 * 5 ms.
    bench.wait(Duration::from_millis(9));
    bench.ack(300, &[]);
    bench.data(300);
    bench.data(400);
    assert_eq!(bench.wait(Duration::from_millis(29)), NOTHING);
    assert_eq!(bench.wait(Duration::from_millis(1)), ["copy 300"]);
    // It doubles: 60, 120, 240, 480 ms, then each second for 100 s.
    assert_eq!(bench.wait(Duration::from_millis(900)).len(), 4);
    assert_eq!(bench.wait(Duration::from_secs(10)).len(), 10);
    bench.wait(Duration::from_secs(100));
    assert_eq!(bench.snoop.next_deadline(), Instant::NEVER);
    assert_eq!(bench.snoop.buffer_status(Side::Client).bytes, 0);
    assert_eq!(bench.ack(300, &[]), ["ack 300 []"]);
}

#[test]
fn a_closed_window_stops_copies() {
    let mut bench = Bench::with_four_out();
    bench.feed(Side::Server, Segment { window: 0, ..acknowledgement(100, &[]) });
    assert_eq!(bench.wait(Duration::from_secs(5)), NOTHING);
    // A probe and its answer.
    assert_eq!(bench.data(100), ["100"]);
    let answer = Segment { window: 0, ..acknowledgement(100, &[]) };
    assert_eq!(bench.feed(Side::Server, answer), ["ack 100 []"]);
}

#[test]
fn beginnings_and_ends_of_connections_empty_the_cache() {
    let mut bench = Bench::with_four_out();
    let with = |flags| Segment { flags, ..acknowledgement(100, &[]) };
    assert_eq!(bench.snoop.buffer_status(Side::Client).bytes, 400);
    assert_eq!(bench.feed(Side::Client, with(Flags::RST)), ["0"]);
    assert_eq!(bench.snoop.buffer_status(Side::Client).bytes, 0);
    let mut bench = Bench::with_four_out();
    assert_eq!(bench.feed(Side::Client, with(Flags::SYN)), ["0"]);
    assert_eq!(bench.snoop.buffer_status(Side::Client).bytes, 0);
    // FIN is repaired like data.
    let mut bench = Bench::new();
    bench.ack(100, &[]);
    let fin = Segment { seq: 100, flags: Flags::ACK.with(Flags::FIN), ..Segment::default() };
    assert_eq!(bench.feed(Side::Client, fin), ["100"]);
    assert_eq!(bench.wait(Duration::from_secs(1)), ["copy 100"]);
    assert_eq!(bench.ack(101, &[]), ["ack 101 []"]);
}

#[test]
fn an_acknowledgement_of_what_went_another_way_begins_anew() {
    let mut bench = Bench::with_four_out();
    assert_eq!(bench.ack(900, &[]), ["ack 900 []"]);
    assert_eq!(bench.snoop.buffer_status(Side::Client).bytes, 0);
    bench.data(900);
    bench.data(1000);
    bench.data(1100);
    assert_eq!(bench.ack(900, &[(1000, 1100)]), ["ack 900 []", "copy 900"]);
}

/// Ten segments are on the hop since 200, and eight wait.
fn with_eight_waiting() -> Bench {
    let mut bench = Bench::new();
    bench.ack(100, &[]);
    bench.data(100);
    bench.wait(Duration::from_millis(50));
    assert_eq!(bench.ack(200, &[]), ["ack 200 []"]);
    let gone: Vec<_> = (2..20).flat_map(|i| bench.data(100 * i)).collect();
    assert_eq!(gone, (2..12).map(|i| (100 * i).to_string()).collect::<Vec<_>>());
    bench
}

#[test]
fn what_the_hop_cannot_take_waits_and_is_passed_by_copies() {
    let mut bench = with_eight_waiting();
    assert_eq!(bench.ack(200, &[(300, 400)])[..2], ["copy 200", "copy 1200"]);
    assert_eq!(bench.snoop.buffer_status(Side::Client).bytes, 1800);
}

#[test]
fn all_that_waits_goes_in_order_when_the_sender_loses_patience() {
    let waiting: Vec<_> = (12..20).map(|i| format!("copy {}", 100 * i)).collect();
    assert_eq!(with_eight_waiting().data(1900), waiting);
    // And when the connection ends.
    let reset = Segment { flags: Flags::RST, ..Segment::default() };
    assert_eq!(with_eight_waiting().feed(Side::Client, reset)[..8], waiting);
    // And when nothing is heard of the hop, from the second time on.
    let sent = with_eight_waiting().wait(Duration::from_secs(1));
    assert_eq!(sent[..2], ["copy 200", "copy 200"]);
    assert_eq!(sent[2..10], waiting);
}

proptest! {
    #[test]
    fn streams_arrive_through_any_number_of_them(
        impairments in schedules(200),
        towards in prop::collection::vec(prop_oneof![Just(Side::Client), Just(Side::Server)], 1..4),
        sizes in [0..6_000_u64, 0..6_000_u64],
        limit in prop_oneof![Just(0_u64), 100..1_000_u64, Just(20_000_u64)],
        window in 300..4_000_u32,
        handshake: bool,
        sack: bool,
    ) {
        let plans = [Application::new(sizes[0], Close::AtOnce), Application::new(sizes[1], Close::AfterPeer)];
        let mut params = (*stack(100, window)).clone();
        params.sack = sack;
        let params = std::sync::Arc::new(params);
        let proxies = towards.iter().map(|&toward| {
            Box::new(Snoop::new(toward, Bytes::new(limit))) as Box<dyn Proxy>
        }).collect();
        let mut chain = if handshake {
            Chain::opening(&params, plans, proxies, limit, impairments)
        } else {
            Chain::established(&params, plans, proxies, limit, impairments)
        };
        chain.run_to_the_end();
    }

    #[test]
    fn a_crash_or_a_change_of_path_loses_nothing(
        impairments in schedules(100),
        at in 0..2_000_u64,
        bypassed: bool,
        size in 1_000..20_000_u64,
    ) {
        let plans = [Application::new(size, Close::AtOnce), Application::new(0, Close::AfterPeer)];
        let snoop = || Box::new(Snoop::new(Side::Server, Bytes::new(4_000)));
        let mut chain =
            Chain::opening(&stack(100, 2_000), plans, vec![snoop(), snoop()], 4_000, impairments);
        chain.run(Instant::ZERO + Duration::from_millis(at));
        if bypassed { chain.bypass(1) } else { chain.crash(1, snoop()) }
        chain.run_to_the_end();
        prop_assert!(chain.excused.iter().all(Vec::is_empty));
    }

    #[test]
    fn garbage_is_bounded(steps in segments(200)) {
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
