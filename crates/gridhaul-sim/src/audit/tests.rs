//! Each check gets a forged packet that it alone must reject.

use std::sync::Arc;

use gridhaul_core::link::{DropReason, EcnCodePoint, LinkPayload, PacketTransit, TransitOutcome};
use gridhaul_scenario::scenario::{
    Aqm, Codel, Deliveries, Direction, FqCodel, LinkTraceContent, Noise, NoiseTiming, RateChange,
    Reorder, Shadowing,
};
use gridhaul_scenario::units::{
    BitRate, Bytes, Decibel, Duration, Instant, Probability, QueueLimit,
};

use super::{LinkAudit, LinkTotals, Violation};

/// 10 B take a transmission time of 3,333.33 ns and a propagation delay of 1,000 ns.
fn direction(queue: QueueLimit) -> Direction {
    let rate = BitRate::from_bits_per_sec(24_000_000);
    Direction { queue, ..Direction::new(rate, Duration::from_nanos(1_000)) }
}

/// Times in nanoseconds: offered, started, sent, left.
type Times = [u64; 4];

fn transit(times: Times) -> PacketTransit<()> {
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

/// The result of an audit of these packets, each of which leaves on time.
fn audit<P: LinkPayload>(
    direction: &Direction,
    packets: &[PacketTransit<P>],
) -> Result<(), Violation> {
    let mut link_audit = LinkAudit::new(direction, None);
    let mut accepted: Vec<_> = packets.iter().map(|p| (p.offered, p.bytes)).collect();
    accepted.sort_unstable();
    accepted.into_iter().for_each(|(offered, bytes)| link_audit.on_accepted(offered, bytes));
    for transit in packets {
        link_audit.on_transit(transit.left, transit);
    }
    let offered = packets.iter().filter(|transit| !transit.outcome.is_duplicate()).count() as u64;
    let copies = packets.len() as u64 - offered;
    link_audit.finish(LinkTotals { offered, refused: 0, copies, inside: 0 })
}

fn of_times(direction: &Direction, times: &[Times]) -> Result<(), Violation> {
    audit(direction, &times.iter().copied().map(transit).collect::<Vec<_>>())
}

/// Asserts that the audit failed with this message.
fn assert_violation(result: &Result<(), Violation>, expected: &str) {
    let message = result.as_ref().expect_err(expected).to_string();
    assert!(message.starts_with(expected), "{message:?} is not {expected:?}");
}

const UNLIMITED: QueueLimit = QueueLimit::Unlimited;

#[test]
fn packets_of_a_correct_link_pass() {
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
fn times_out_of_order_are_found() {
    let expected = "the times of a packet are out of order";
    for times in [[1, 0, 4_000, 5_000], [0, 9_000, 4_000, 5_000], [0, 0, 6_000, 5_000]] {
        assert_violation(&of_times(&direction(UNLIMITED), &[times]), expected);
    }
    // A packet is reported before it leaves.
    let mut link_audit = LinkAudit::new(&direction(UNLIMITED), None);
    link_audit.on_transit(Instant::from_nanos(4_332), &transit([0, 0, 3_333, 4_333]));
    let totals = LinkTotals { offered: 1, refused: 0, copies: 0, inside: 0 };
    assert_violation(&link_audit.finish(totals), expected);
}

#[test]
fn no_packet_arrives_before_the_propagation_delay() {
    let times = [0, 0, 3_333, 4_332];
    assert_violation(
        &of_times(&direction(UNLIMITED), &[times]),
        "a packet arrived before the propagation delay",
    );
}

#[test]
fn no_packet_is_transmitted_faster_than_the_rate() {
    let expected = "a packet was transmitted faster than the rate";
    let times = [0, 0, 3_332, 4_332];
    assert_violation(&of_times(&direction(UNLIMITED), &[times]), expected);
    // Lost packets occupy the transmitter as well, and packets of another size for another time.
    let lost = PacketTransit { outcome: TransitOutcome::Lost(DropReason::Loss), ..transit(times) };
    assert_violation(&audit(&direction(UNLIMITED), &[lost]), expected);
    let small = transit([0, 0, 3_333, 4_333]);
    let large = PacketTransit { bytes: 11, ..transit([3_333, 3_333, 6_998, 7_998]) };
    assert_violation(&audit(&direction(UNLIMITED), &[small, large]), expected);
}

#[test]
fn no_packet_is_faster_than_the_rates_of_its_time() {
    // 24 Mbit/s, from 1,000 ns on 12 Mbit/s: 24 bits before the change and 56 bits in 4,666.67 ns.
    let change = RateChange {
        at: Duration::from_nanos(1_000),
        rate: BitRate::from_bits_per_sec(12_000_000),
        every: None,
    };
    let slower = Direction { rate_change: vec![change], ..direction(UNLIMITED) };
    assert_eq!(of_times(&slower, &[[0, 0, 5_667, 6_667]]), Ok(()));
    let expected = "a packet was transmitted faster than the rate";
    assert_violation(&of_times(&slower, &[[0, 0, 5_660, 6_660]]), expected);
    assert_violation(&of_times(&slower, &[[0, 2_000, 5_333, 6_333]]), expected);
}

#[test]
fn back_to_back_packets_are_not_faster_than_the_rate() {
    // 3,333 ns each is too little by a third of a nanosecond: the fourth in a row is too much.
    let row: Vec<Times> = (0..4).map(|n| [0, n, n + 1, n + 1].map(|k| k * 3_333)).collect();
    let row: Vec<Times> = row.iter().map(|&[o, b, s, l]| [o, b, s, l + 1_000]).collect();
    assert_eq!(of_times(&direction(UNLIMITED), &row[..3]), Ok(()));
    let expected = "back-to-back packets were transmitted faster than the rate";
    assert_violation(&of_times(&direction(UNLIMITED), &row), expected);
    // Excess time of an earlier packet gives no credit.
    let late = |[o, b, s, l]: Times| [o, b + 9_000, s + 9_000, l + 9_000];
    let mut after_a_slow_one = vec![[0, 0, 9_000, 10_000]];
    after_a_slow_one.extend(row.iter().copied().map(late));
    assert_violation(&of_times(&direction(UNLIMITED), &after_a_slow_one), expected);
}

#[test]
fn a_transmitter_sends_one_packet_at_a_time() {
    let pair = [[0, 0, 3_334, 4_334], [0, 3_333, 6_667, 7_667]];
    assert_violation(
        &of_times(&direction(UNLIMITED), &pair),
        "two packets were transmitted at the same time",
    );
}

#[test]
fn no_queue_exceeds_its_limit() {
    // The first packet is in transmission, so two wait when the third has been accepted, and three
    // later.
    let starts = |n: u64| 3_334 * n;
    let row: Vec<Times> =
        (0..4).map(|n| [0, starts(n), starts(n + 1), starts(n + 1) + 1_000]).collect();
    let expected = "the queue exceeded its limit";
    let limits = [QueueLimit::Packets(2), QueueLimit::Bytes(Bytes::new(29))];
    for limit in limits {
        assert_eq!(of_times(&direction(limit), &row[..3]), Ok(()), "{limit}");
        assert_violation(&of_times(&direction(limit), &row), expected);
    }
    // A queue of length 0 holds no packet, and the limit of a large queue is checked by counting.
    assert_violation(&of_times(&direction(QueueLimit::Packets(0)), &row[..2]), expected);
    let limit = 20_000;
    let row: Vec<Times> =
        (0..limit + 2).map(|n| [0, starts(n), starts(n + 1), starts(n + 1) + 1_000]).collect();
    let large = direction(QueueLimit::Packets(limit as u32));
    assert_eq!(of_times(&large, &row[..=limit as usize]), Ok(()));
    assert_violation(&of_times(&large, &row), expected);
}

#[test]
fn queue_space_is_freed_when_a_transmission_starts() {
    // At most one packet waits. The third is offered exactly when the second starts, or just
    // before.
    let row = |third: u64| {
        [[0, 0, 4_000, 5_000], [0, 4_000, 8_000, 9_000], [third, 8_000, 12_000, 13_000]]
    };
    let one = direction(QueueLimit::Packets(1));
    assert_eq!(of_times(&one, &row(4_000)), Ok(()));
    assert_violation(&of_times(&one, &row(3_999)), "the queue exceeded its limit");
}

#[test]
fn reordered_packets_are_checked_individually() {
    let delay = Duration::from_nanos(9_000);
    let probability = Probability::new(0.5).expect("a probability");
    let direction =
        Direction { reorder: Some(Reorder { probability, delay }), ..direction(UNLIMITED) };
    let pair = [[0, 3_334, 6_668, 7_668], [0, 0, 3_334, 13_334]];
    assert_eq!(of_times(&direction, &pair), Ok(()));
    assert_violation(
        &of_times(&direction, &[[0, 0, 3_332, 4_332]]),
        "a packet was transmitted faster than the rate",
    );
}

#[test]
fn packets_are_conserved() {
    let finish = |totals| {
        let mut link_audit = LinkAudit::new(&direction(UNLIMITED), None);
        let first = transit([0, 0, 3_334, 4_334]);
        link_audit.on_transit(first.left, &first);
        link_audit
            .on_transit(first.left, &PacketTransit { outcome: TransitOutcome::Duplicate, ..first });
        link_audit.finish(totals)
    };
    let correct = LinkTotals { offered: 5, refused: 1, copies: 2, inside: 4 };
    assert_eq!(finish(correct), Ok(()));
    let contradictory = [
        LinkTotals { offered: 6, ..correct },
        LinkTotals { refused: 0, ..correct },
        LinkTotals { copies: 1, ..correct },
        LinkTotals { inside: 3, ..correct },
    ];
    for totals in contradictory {
        assert!(finish(totals).is_err(), "{totals:?}");
    }
}

/// A packet of the flow with this number.
#[derive(Debug, Clone, Copy)]
struct FlowPacket(u64);

impl LinkPayload for FlowPacket {
    fn flow(&self) -> u64 {
        self.0
    }
}

/// Directions with each managed queue.
fn managed(queue: QueueLimit) -> [Direction; 2] {
    let aqms = [Aqm::Codel(Codel::default()), Aqm::FqCodel(FqCodel::default())];
    aqms.map(|aqm| Direction { aqm: Some(aqm), ..direction(queue) })
}

/// A packet that is transmitted as [`transit`], or dropped by the queue at the start of its
/// transmission.
fn of(flow: u64, [offered, started, ..]: Times, sent: bool) -> PacketTransit<FlowPacket> {
    let end = if sent { [started + 3_334, started + 4_334] } else { [started, started] };
    let PacketTransit { bytes, offered, started, sent: last, left, .. } =
        transit([offered, started, end[0], end[1]]);
    let outcome =
        if sent { TransitOutcome::Arrived } else { TransitOutcome::Lost(DropReason::Aqm) };
    PacketTransit { payload: FlowPacket(flow), bytes, offered, started, sent: last, left, outcome }
}

#[test]
fn a_managed_queue_does_not_exceed_its_limit() {
    // One packet is in transmission and two wait, of which one is dropped at 3,334; then there is
    // space again.
    let row = |last: u64| {
        [
            of(0, [0, 0, 0, 0], true),
            of(0, [0, 3_334, 0, 0], false),
            of(0, [0, 3_334, 0, 0], true),
            of(0, [last, 6_668, 0, 0], true),
        ]
    };
    for limit in [QueueLimit::Packets(2), QueueLimit::Bytes(Bytes::new(29))] {
        for direction in managed(limit) {
            assert_eq!(audit(&direction, &row(3_334)), Ok(()));
            assert_violation(&audit(&direction, &row(3_333)), "the queue exceeded its limit");
        }
    }
}

#[test]
fn only_packets_of_different_flows_may_be_reordered() {
    let [codel, fq_codel] = managed(UNLIMITED);
    let row = |flow: u64| {
        [of(0, [0, 0, 0, 0], true), of(flow, [2, 3_334, 0, 0], true), of(0, [1, 6_668, 0, 0], true)]
    };
    let expected = "packets of one flow were reordered in the queue";
    assert_eq!(audit(&fq_codel, &row(1)), Ok(()));
    assert_violation(&audit(&fq_codel, &row(0)), expected);
    assert_violation(&audit(&codel, &row(1)), expected);
}

#[test]
fn a_dropped_packet_was_accepted_and_not_transmitted() {
    let dropped = of(0, [0, 5_000, 0, 0], false);
    for direction in managed(UNLIMITED) {
        assert_eq!(audit(&direction, &[dropped]), Ok(()));
        let late = PacketTransit { left: Instant::from_nanos(6_000), ..dropped };
        let expected = "a packet that the queue dropped was transmitted";
        assert_violation(&audit(&direction, &[late]), expected);
        let mut link_audit = LinkAudit::new(&direction, None);
        link_audit.on_accepted(dropped.offered, 11);
        link_audit.on_transit(dropped.left, &dropped);
        let totals = LinkTotals { offered: 1, refused: 0, copies: 0, inside: 0 };
        assert_violation(&link_audit.finish(totals), "a packet left that was not accepted");
    }
    let expected = "a queue dropped a packet that it had accepted";
    assert_violation(&audit(&direction(UNLIMITED), &[dropped]), expected);
}

#[test]
fn losses_by_attenuation_and_noise_have_a_cause() {
    let lost =
        |reason, times| PacketTransit { outcome: TransitOutcome::Lost(reason), ..transit(times) };
    let [first, second] = [[0, 0, 3_334, 4_334], [3_334, 3_334, 6_668, 7_668]];
    let plain = direction(UNLIMITED);
    let expected = "a packet was lost by attenuation or noise that the direction does not have";
    for reason in [DropReason::Shadowing, DropReason::Noise] {
        assert_violation(&audit(&plain, &[lost(reason, first)]), expected);
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
    assert_violation(&audit(&noisy, &[lost(DropReason::Shadowing, first)]), expected);
    assert_violation(&audit(&shadowing, &[lost(DropReason::Noise, first)]), expected);
    assert_eq!(audit(&noisy, &[lost(DropReason::Noise, first), transit(second)]), Ok(()));
    // The packets start in two intervals of 3,000 ns, but in one interval of 4,000 ns.
    let pair = [lost(DropReason::Shadowing, first), transit(second)];
    assert_eq!(audit(&shadowing, &pair), Ok(()));
    let longer = Shadowing { coherence: Some(Duration::from_nanos(4_000)), ..level };
    let shadowing = Direction { shadowing: Some(longer), ..shadowing };
    // A collision is the cause of the loss, whether the attenuation would have lost it or not.
    let collided = [lost(DropReason::Shadowing, first), lost(DropReason::Collision, second)];
    assert_eq!(audit(&shadowing, &collided), Ok(()));
    assert_violation(
        &audit(&shadowing, &pair),
        "packets of one coherence interval were both lost by attenuation and delivered",
    );
}

#[test]
fn packets_use_the_opportunities_of_a_trace() {
    // Opportunities at 1 and 3 ms, and 1 ms of propagation.
    let deliveries = Deliveries::new(vec![1, 3], false).map(Arc::new).expect("a trace");
    let trace = LinkTraceContent::Deliveries(deliveries);
    let slow = Direction { delay: Duration::from_millis(1), ..direction(UNLIMITED) };
    let audited = |packets: &[(Times, u32)]| {
        let mut link_audit = LinkAudit::new(&slow, Some(&trace));
        for &(times, bytes) in packets {
            let times = times.map(|tenths| tenths * 100_000);
            let transit = PacketTransit { bytes, ..transit(times) };
            link_audit.on_transit(transit.left, &transit);
        }
        let offered = packets.len() as u64;
        link_audit.finish(LinkTotals { offered, refused: 0, copies: 0, inside: 0 })
    };
    let shared = [([0, 10, 10, 20], 700), ([0, 10, 10, 20], 796), ([0, 30, 30, 40], 1_500)];
    assert_eq!(audited(&shared), Ok(()));
    // An attacker has delayed the packet of the first opportunity, so that it leaves last.
    let mut attacked = LinkAudit::new(&slow, Some(&trace));
    attacked.expect_attack(true);
    for times in [[0, 30, 30, 40], [0, 10, 10, 50]] {
        let times = times.map(|tenths| tenths * 100_000);
        let transit = PacketTransit { bytes: 1_496, ..transit(times) };
        attacked.on_transit(transit.left, &transit);
    }
    let totals = LinkTotals { offered: 2, refused: 0, copies: 0, inside: 0 };
    assert_eq!(attacked.finish(totals), Ok(()));
    let no_opportunity = "a packet was transmitted without a delivery opportunity";
    assert_violation(&audited(&[([0, 10, 11, 21], 100)]), no_opportunity);
    assert_violation(&audited(&[([0, 9, 10, 20], 100)]), no_opportunity);
    let too_fast = "a packet was transmitted faster than the rate";
    assert_violation(&audited(&[([0, 10, 10, 20], 1_501)]), too_fast);
    assert_violation(&audited(&[([0, 10, 10, 20], 1_000), ([0, 10, 10, 20], 497)]), too_fast);
}

/// A packet with this ECN field.
#[derive(Debug, Clone, Copy)]
struct EcnPacket(EcnCodePoint);

impl LinkPayload for EcnPacket {
    fn ecn(&self) -> EcnCodePoint {
        self.0
    }
}

#[test]
fn only_queues_with_ecn_mark_and_a_marked_packet_has_its_mark() {
    let marked = |field| {
        let PacketTransit { bytes, offered, started, sent, left, .. } =
            transit([0, 0, 3_334, 4_334]);
        let payload = EcnPacket(field);
        let outcome = TransitOutcome::Marked;
        [PacketTransit { payload, bytes, offered, started, sent, left, outcome }]
    };
    let aqm = |ecn| Some(Aqm::Codel(Codel { ecn, ..Codel::default() }));
    let [with, without] =
        [true, false].map(|ecn| Direction { aqm: aqm(ecn), ..direction(UNLIMITED) });
    assert_eq!(audit(&with, &marked(EcnCodePoint::Ce)), Ok(()));
    let expected = "a packet counts as marked that the queue cannot have marked";
    assert_violation(&audit(&with, &marked(EcnCodePoint::Ect0)), expected);
    for direction in [without, direction(UNLIMITED)] {
        assert_violation(&audit(&direction, &marked(EcnCodePoint::Ce)), expected);
    }
}
