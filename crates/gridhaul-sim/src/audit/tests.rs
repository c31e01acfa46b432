//! Every check is fed a forged passage that it alone must reject.

use gridhaul_core::link::{DropReason, LinkPayload, PacketTransit, TransitOutcome};
use gridhaul_scenario::scenario::{
    Aqm, Codel, Direction, FqCodel, Noise, NoiseTiming, Reorder, Shadowing,
};
use gridhaul_scenario::units::{
    BitRate, Bytes, Decibel, Duration, Instant, Probability, QueueLimit,
};

use super::{Account, LinkAudit, Violation};

/// 10 B take 3,333.33 ns, then 1,000 ns of delay.
fn direction(queue: QueueLimit) -> Direction {
    let rate = BitRate::from_bits_per_sec(24_000_000);
    Direction { queue, ..Direction::new(rate, Duration::from_nanos(1_000)) }
}

/// Times in nanoseconds: offered, started, sent, left.
type Times = [u64; 4];

fn passage(times: Times) -> PacketTransit<()> {
    let [offered, started, sent, left] = times.map(Instant::from_nanos);
    PacketTransit {
        payload: (),
        bytes: 10,
        offered,
        started,
        sent,
        left,
        outcome: TransitOutcome::Arrived,
    }
}

/// What the audit says of these passages when each comes out on time.
fn verdict<P: LinkPayload>(
    direction: &Direction,
    passages: &[PacketTransit<P>],
) -> Result<(), Violation> {
    let mut audit = LinkAudit::new(direction);
    let mut went_in: Vec<_> = passages.iter().map(|p| (p.offered, p.bytes)).collect();
    went_in.sort_unstable();
    went_in.into_iter().for_each(|(offered, bytes)| audit.on_accepted(offered, bytes));
    for passage in passages {
        audit.on_transit(passage.left, passage);
    }
    let offered = passages.iter().filter(|passage| !passage.outcome.is_duplicate()).count() as u64;
    let copies = passages.len() as u64 - offered;
    audit.finish(Account { offered, refused: 0, copies, inside: 0 })
}

fn of_times(direction: &Direction, times: &[Times]) -> Result<(), Violation> {
    verdict(direction, &times.iter().copied().map(passage).collect::<Vec<_>>())
}

/// Rejected, and in these words.
fn assert_blamed(verdict: &Result<(), Violation>, words: &str) {
    let message = verdict.as_ref().expect_err(words).to_string();
    assert!(message.starts_with(words), "{message:?} is not {words:?}");
}

const UNLIMITED: QueueLimit = QueueLimit::Unlimited;

#[test]
fn what_a_link_does_is_right() {
    let row = [
        [0, 0, 3_333, 4_333],
        [0, 3_333, 6_666, 7_666],
        [0, 6_666, 10_000, 11_000],
        [20_000, 20_000, 23_333, 24_333],
    ];
    assert_eq!(of_times(&direction(UNLIMITED), &row), Ok(()));
    assert_eq!(of_times(&direction(QueueLimit::Packets(2)), &row), Ok(()));
    assert_eq!(of_times(&direction(QueueLimit::Bytes(Bytes::new(20))), &row), Ok(()));
}

#[test]
fn times_have_an_order() {
    let words = "the times of a packet are out of order";
    for times in [[1, 0, 4_000, 5_000], [0, 9_000, 4_000, 5_000], [0, 0, 6_000, 5_000]] {
        assert_blamed(&of_times(&direction(UNLIMITED), &[times]), words);
    }
    // Nothing comes out before it leaves.
    let mut audit = LinkAudit::new(&direction(UNLIMITED));
    audit.on_transit(Instant::from_nanos(4_332), &passage([0, 0, 3_333, 4_333]));
    let account = Account { offered: 1, refused: 0, copies: 0, inside: 0 };
    assert_blamed(&audit.finish(account), words);
}

#[test]
fn nothing_is_faster_than_the_delay() {
    let times = [0, 0, 3_333, 4_332];
    assert_blamed(&of_times(&direction(UNLIMITED), &[times]), "a packet was faster than the delay");
}

#[test]
fn no_packet_is_faster_than_the_wire() {
    let words = "a packet was faster than the wire";
    let times = [0, 0, 3_332, 4_332];
    assert_blamed(&of_times(&direction(UNLIMITED), &[times]), words);
    // One that is lost has used the wire like any other, and of another size another time.
    let lost = PacketTransit { outcome: TransitOutcome::Lost(DropReason::Loss), ..passage(times) };
    assert_blamed(&verdict(&direction(UNLIMITED), &[lost]), words);
    let small = passage([0, 0, 3_333, 4_333]);
    let large = PacketTransit { bytes: 11, ..passage([3_333, 3_333, 6_998, 7_998]) };
    assert_blamed(&verdict(&direction(UNLIMITED), &[small, large]), words);
}

#[test]
fn a_busy_wire_is_not_faster_than_its_rate() {
    // 3,333 ns each is too little by a third of a nanosecond: the fourth in a row is too much.
    let row: Vec<Times> = (0..4).map(|n| [0, n, n + 1, n + 1].map(|k| k * 3_333)).collect();
    let row: Vec<Times> = row.iter().map(|&[o, b, s, l]| [o, b, s, l + 1_000]).collect();
    assert_eq!(of_times(&direction(UNLIMITED), &row[..3]), Ok(()));
    let words = "a busy wire was faster than its rate";
    assert_blamed(&of_times(&direction(UNLIMITED), &row), words);
    // Time that the wire has lost before does not excuse it.
    let late = |[o, b, s, l]: Times| [o, b + 9_000, s + 9_000, l + 9_000];
    let mut after_a_slow_one = vec![[0, 0, 9_000, 10_000]];
    after_a_slow_one.extend(row.iter().copied().map(late));
    assert_blamed(&of_times(&direction(UNLIMITED), &after_a_slow_one), words);
}

#[test]
fn a_wire_carries_one_packet_at_a_time() {
    let pair = [[0, 0, 3_334, 4_334], [0, 3_333, 6_667, 7_667]];
    assert_blamed(&of_times(&direction(UNLIMITED), &pair), "two packets were on the wire at once");
}

#[test]
fn no_queue_holds_more_than_its_limit() {
    // The first is on the wire, so two wait when the third has been taken, and three later.
    let begins = |n: u64| 3_334 * n;
    let row: Vec<Times> =
        (0..4).map(|n| [0, begins(n), begins(n + 1), begins(n + 1) + 1_000]).collect();
    let words = "the queue held more than its limit";
    let limits = [QueueLimit::Packets(2), QueueLimit::Bytes(Bytes::new(29))];
    for limit in limits {
        assert_eq!(of_times(&direction(limit), &row[..3]), Ok(()), "{limit}");
        assert_blamed(&of_times(&direction(limit), &row), words);
    }
    // Without room to wait none waits, and in a large queue they are counted otherwise.
    assert_blamed(&of_times(&direction(QueueLimit::Packets(0)), &row[..2]), words);
    let limit = 20_000;
    let row: Vec<Times> =
        (0..limit + 2).map(|n| [0, begins(n), begins(n + 1), begins(n + 1) + 1_000]).collect();
    let large = direction(QueueLimit::Packets(limit as u32));
    assert_eq!(of_times(&large, &row[..=limit as usize]), Ok(()));
    assert_blamed(&of_times(&large, &row), words);
}

#[test]
fn a_place_in_the_queue_is_free_again_when_its_packet_begins() {
    // At most one waits; the third is offered just as the second begins, or just before.
    let row = |third: u64| {
        [[0, 0, 4_000, 5_000], [0, 4_000, 8_000, 9_000], [third, 8_000, 12_000, 13_000]]
    };
    let one = direction(QueueLimit::Packets(1));
    assert_eq!(of_times(&one, &row(4_000)), Ok(()));
    assert_blamed(&of_times(&one, &row(3_999)), "the queue held more than its limit");
}

#[test]
fn reordered_packets_are_still_checked_one_by_one() {
    let delay = Duration::from_nanos(9_000);
    let probability = Probability::new(0.5).expect("a probability");
    let direction =
        Direction { reorder: Some(Reorder { probability, delay }), ..direction(UNLIMITED) };
    let pair = [[0, 3_334, 6_668, 7_668], [0, 0, 3_334, 13_334]];
    assert_eq!(of_times(&direction, &pair), Ok(()));
    assert_blamed(
        &of_times(&direction, &[[0, 0, 3_332, 4_332]]),
        "a packet was faster than the wire",
    );
}

#[test]
fn nothing_is_created_or_destroyed() {
    let books = |account| {
        let mut audit = LinkAudit::new(&direction(UNLIMITED));
        let first = passage([0, 0, 3_334, 4_334]);
        audit.on_transit(first.left, &first);
        audit
            .on_transit(first.left, &PacketTransit { outcome: TransitOutcome::Duplicate, ..first });
        audit.finish(account)
    };
    let right = Account { offered: 5, refused: 1, copies: 2, inside: 4 };
    assert_eq!(books(right), Ok(()));
    let wrong = [
        Account { offered: 6, ..right },
        Account { refused: 0, ..right },
        Account { copies: 1, ..right },
        Account { inside: 3, ..right },
    ];
    for account in wrong {
        assert!(books(account).is_err(), "{account:?}");
    }
}

/// Of one of two flows.
#[derive(Debug, Clone, Copy)]
struct Of(u64);

impl LinkPayload for Of {
    fn flow(&self) -> u64 {
        self.0
    }
}

/// Both queues that hold their packets.
fn kept(queue: QueueLimit) -> [Direction; 2] {
    let aqms = [Aqm::Codel(Codel::default()), Aqm::FqCodel(FqCodel::default())];
    aqms.map(|aqm| Direction { aqm: Some(aqm), ..direction(queue) })
}

/// Sent as [`passage`], or dropped by the queue when it would have begun.
fn of(flow: u64, [offered, started, ..]: Times, sent: bool) -> PacketTransit<Of> {
    let end = if sent { [started + 3_334, started + 4_334] } else { [started, started] };
    let PacketTransit { bytes, offered, started, sent: last, left, .. } =
        passage([offered, started, end[0], end[1]]);
    let outcome =
        if sent { TransitOutcome::Arrived } else { TransitOutcome::Lost(DropReason::Aqm) };
    PacketTransit { payload: Of(flow), bytes, offered, started, sent: last, left, outcome }
}

#[test]
fn a_queue_that_holds_its_packets_has_a_limit_too() {
    // On the wire, two that wait, one of them dropped at 3,334; then there is room again.
    let row = |last: u64| {
        [
            of(0, [0, 0, 0, 0], true),
            of(0, [0, 3_334, 0, 0], false),
            of(0, [0, 3_334, 0, 0], true),
            of(0, [last, 6_668, 0, 0], true),
        ]
    };
    for limit in [QueueLimit::Packets(2), QueueLimit::Bytes(Bytes::new(29))] {
        for direction in kept(limit) {
            assert_eq!(verdict(&direction, &row(3_334)), Ok(()));
            assert_blamed(&verdict(&direction, &row(3_333)), "the queue held more than its limit");
        }
    }
}

#[test]
fn only_other_flows_may_be_overtaken() {
    let [codel, fq_codel] = kept(UNLIMITED);
    let row = |flow: u64| {
        [of(0, [0, 0, 0, 0], true), of(flow, [2, 3_334, 0, 0], true), of(0, [1, 6_668, 0, 0], true)]
    };
    let words = "a packet overtook another in the queue";
    assert_eq!(verdict(&fq_codel, &row(1)), Ok(()));
    assert_blamed(&verdict(&fq_codel, &row(0)), words);
    assert_blamed(&verdict(&codel, &row(1)), words);
}

#[test]
fn what_a_queue_drops_was_in_it_and_never_on_the_wire() {
    let dropped = of(0, [0, 5_000, 0, 0], false);
    for direction in kept(UNLIMITED) {
        assert_eq!(verdict(&direction, &[dropped]), Ok(()));
        let late = PacketTransit { left: Instant::from_nanos(6_000), ..dropped };
        let words = "a packet that the queue dropped was on the wire";
        assert_blamed(&verdict(&direction, &[late]), words);
        let mut audit = LinkAudit::new(&direction);
        audit.on_accepted(dropped.offered, 11);
        audit.on_transit(dropped.left, &dropped);
        let account = Account { offered: 1, refused: 0, copies: 0, inside: 0 };
        assert_blamed(&audit.finish(account), "a packet came out that did not go in");
    }
    let words = "a queue dropped what it had taken";
    assert_blamed(&verdict(&direction(UNLIMITED), &[dropped]), words);
}

#[test]
fn attenuation_and_noise_are_where_they_should_be() {
    let lost =
        |reason, times| PacketTransit { outcome: TransitOutcome::Lost(reason), ..passage(times) };
    let [first, second] = [[0, 0, 3_334, 4_334], [3_334, 3_334, 6_668, 7_668]];
    let plain = direction(UNLIMITED);
    let words = "a packet was lost to attenuation or noise that is not there";
    for reason in [DropReason::Shadowing, DropReason::Noise] {
        assert_blamed(&verdict(&plain, &[lost(reason, first)]), words);
    }
    let coherence = Some(Duration::from_nanos(3_000));
    let level =
        Shadowing { margin: Decibel::ZERO, deviation: Decibel::new(4), coherence, spans: 1 };
    let shadowing = Direction { shadowing: Some(level), ..plain.clone() };
    let bursts = Noise {
        length: Duration::from_micros(1),
        gap: Duration::from_micros(99),
        loss: Probability::ONE,
        timing: NoiseTiming::Random,
    };
    let noisy = Direction { noise: vec![bursts], ..plain };
    assert_blamed(&verdict(&noisy, &[lost(DropReason::Shadowing, first)]), words);
    assert_blamed(&verdict(&shadowing, &[lost(DropReason::Noise, first)]), words);
    assert_eq!(verdict(&noisy, &[lost(DropReason::Noise, first), passage(second)]), Ok(()));
    // The packets begin in two intervals of 3,000 ns, and in one of 4,000 ns.
    let pair = [lost(DropReason::Shadowing, first), passage(second)];
    assert_eq!(verdict(&shadowing, &pair), Ok(()));
    let longer = Shadowing { coherence: Some(Duration::from_nanos(4_000)), ..level };
    let shadowing = Direction { shadowing: Some(longer), ..shadowing };
    assert_blamed(
        &verdict(&shadowing, &pair),
        "a level of attenuation stopped one packet and not another",
    );
}
