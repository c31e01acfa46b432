//! Each impairment in isolation.

use gridhaul_scenario::scenario::{
    GilbertElliott, Jitter, JitterShape, Loss, Noise, NoiseTiming, Outage, OutageMode, Reorder,
    RouteChange, Shadowing,
};
use gridhaul_scenario::units::Decibel;

use super::super::{DropReason, TransitOutcome};
use super::*;

/// Offers a packet of 10 B every 10 µs and drains the link.
fn stream(direction: &Direction, packets: u32) -> Vec<PacketTransit<u32>> {
    let mut link = link(direction);
    for number in 0..packets {
        link.handle_packet(at(u64::from(number) * 10), 10, number).unwrap();
    }
    drain(&mut link)
}

fn clean() -> Direction {
    one_byte_a_microsecond(1_000, QueueLimit::Unlimited)
}

/// Whether `count` of `n` deviates from a binomial variable by less than four standard deviations.
fn is_share(count: usize, n: u32, expected: f64) -> bool {
    let n = f64::from(n);
    (count as f64 - n * expected).abs() <= 4.0 * (n * expected * (1.0 - expected)).sqrt()
}

#[test]
fn bernoulli_loss_follows_transmission_with_its_probability() {
    let direction = Direction { loss: Some(Loss::Bernoulli(p(0.2))), ..clean() };
    let transits = stream(&direction, 50_000);
    assert_eq!(transits.len(), 50_000);
    assert_eq!(transits.last().unwrap().sent, at(500_000));
    let lost =
        transits.iter().filter(|transit| transit.outcome == TransitOutcome::Lost(DropReason::Loss));
    assert!(is_share(lost.count(), 50_000, 0.2));
}

#[test]
fn losses_and_additional_delays_have_the_same_state() {
    let half = Some(p(0.5));
    let channel = |delay_us| GilbertElliott {
        mean_good: None,
        mean_bad: None,
        good_to_bad: half,
        bad_to_good: half,
        loss_good: p(0.0),
        loss_bad: p(0.5),
        delay_bad: Duration::from_micros(delay_us),
    };
    let stream = |delay_us| {
        let loss = Some(Loss::GilbertElliott(channel(delay_us)));
        stream(&Direction { loss, ..clean() }, 20_000)
    };
    let transits = stream(5);
    let count = |delay_us, arrives| {
        let delay = Duration::from_micros(delay_us);
        let is_counted = |transit: &&PacketTransit<u32>| {
            transit.left.since(transit.sent) == delay && transit.outcome.arrives() == arrives
        };
        transits.iter().filter(is_counted).count()
    };
    assert!(is_share(count(1_000, true), 20_000, 0.5));
    assert!(is_share(count(1_005, true), 20_000, 0.25));
    assert!(is_share(count(1_005, false), 20_000, 0.25));
    // Packets that are sent within the additional delay do not overtake a delayed one.
    let transits = stream(35);
    assert!(transits.windows(2).all(|pair| pair[0].payload < pair[1].payload));
    let latest = transits.iter().map(|transit| transit.left.since(transit.sent)).max();
    assert_eq!(latest, Some(Duration::from_micros(1_035)));
}

#[test]
fn exactly_the_listed_packets_are_lost() {
    let direction = Direction { loss: Some(Loss::Packets(vec![7, 1, 3, 3])), ..clean() };
    let transits = stream(&direction, 10);
    let lost = transits.iter().filter(|transit| !transit.outcome.arrives());
    // Numbered from 1 in the scenario, from 0 here.
    assert_eq!(lost.map(|transit| transit.payload).collect::<Vec<_>>(), [0, 2, 6]);
}

#[test]
fn corruption_and_duplication_have_their_probabilities() {
    let direction = Direction { corrupt: Some(p(0.1)), duplicate: Some(p(0.05)), ..clean() };
    let transits = stream(&direction, 50_000);
    let count = |outcome| transits.iter().filter(|transit| transit.outcome == outcome).count();
    assert!(is_share(count(TransitOutcome::Corrupted), 50_000, 0.1));
    assert!(is_share(count(TransitOutcome::Duplicate), 50_000, 0.045));
    assert!(is_share(count(TransitOutcome::CorruptedDuplicate), 50_000, 0.005));
    for pair in transits.windows(2).filter(|pair| pair[1].outcome.is_duplicate()) {
        assert_eq!((pair[0].payload, pair[0].left), (pair[1].payload, pair[1].left));
        assert_eq!(pair[0].outcome.of_duplicate(), Some(pair[1].outcome));
    }
}

#[test]
fn undetected_corruption_has_its_probability_and_yields_to_detected() {
    let direction =
        Direction { corrupt: Some(p(0.5)), corrupt_undetected: Some(p(0.1)), ..clean() };
    let transits = stream(&direction, 50_000);
    let count = |outcome| transits.iter().filter(|transit| transit.outcome == outcome).count();
    assert!(is_share(count(TransitOutcome::Corrupted), 50_000, 0.5));
    assert!(is_share(count(TransitOutcome::CorruptedUndetected), 50_000, 0.05));
    assert!(transits.iter().all(|transit| transit.outcome.arrives()));
}

#[test]
fn jitter_adds_up_to_its_size_and_keeps_the_order() {
    let size = Duration::from_micros(300);
    let jitter = Some(Jitter { size, shape: JitterShape::Uniform });
    let transits = stream(&Direction { jitter, ..clean() }, 20_000);
    assert!(transits.is_sorted_by_key(|transit| transit.payload));
    let extra =
        |transit: &PacketTransit<u32>| transit.left.since(transit.sent).as_nanos() - 1_000_000;
    assert!(transits.iter().all(|transit| extra(transit) <= 300_000));
    // Packets 10 µs apart delay each other: most arrive closely after a late one.
    assert!(transits.iter().any(|transit| extra(transit) < 100_000));
}

#[test]
fn reordered_packets_are_overtaken_within_the_extra_delay() {
    let reorder = Some(Reorder { probability: p(0.01), delay: Duration::from_micros(25) });
    let transits = stream(&Direction { reorder, ..clean() }, 10_000);
    let delayed: Vec<_> = transits
        .iter()
        .enumerate()
        .filter(|(_, transit)| transit.left.since(transit.sent) > Duration::from_micros(1_000))
        .collect();
    assert!(is_share(delayed.len(), 10_000, 0.01));
    for (index, transit) in delayed {
        assert_eq!(transit.left, transit.sent + Duration::from_micros(1_025));
        // 25 µs with a packet every 10 µs: two packets overtake (fewer at the end, or if delayed
        // themselves).
        let overtakers = transits[..index].iter().filter(|other| other.payload > transit.payload);
        assert!((1..=2).contains(&overtakers.count()) || transit.payload > 9_996);
    }
}

#[test]
fn route_changes_alternate_the_delay_and_keep_the_order() {
    let (every, delay) = (Duration::from_micros(100), Duration::from_micros(25));
    let changing = Direction { route_change: Some(RouteChange { every, delay }), ..clean() };
    let extra = |transit: &PacketTransit<u32>| {
        (transit.left.since(transit.sent) - changing.delay).as_nanos() / 1_000
    };
    let extras: Vec<_> = stream(&changing, 25).iter().map(extra).collect();
    // Packet n leaves the transmitter at 10 (n + 1) µs: from packet 9 on the second route is in
    // use, from packet 19 on the first again. Packets 19 and 20 wait for packet 18, which arrives
    // 215 µs after the start.
    let expected = [vec![0; 9], vec![25; 10], vec![15, 5], vec![0; 4]].concat();
    assert_eq!(extras, expected);
}

#[test]
fn a_drop_outage_loses_and_a_hold_outage_delays_packets_in_transmission() {
    let outage = |mode| {
        let (start, length) = (Duration::from_micros(105), Duration::from_micros(20));
        Direction { outage: vec![Outage { start, length, every: None, mode }], ..clean() }
    };
    let lost = stream(&outage(OutageMode::Drop), 20);
    let lost =
        lost.iter().filter(|transit| transit.outcome == TransitOutcome::Lost(DropReason::Outage));
    // Packet 10 is in transmission from 100 to 110 µs, packet 12 from 120 to 130 µs.
    assert_eq!(lost.map(|transit| transit.payload).collect::<Vec<_>>(), [10, 11, 12]);

    let delayed = stream(&outage(OutageMode::Hold), 20);
    let times = |number: usize| (delayed[number].started, delayed[number].sent);
    assert_eq!(times(9), (at(90), at(100)));
    assert_eq!(times(10), (at(100), at(130)));
    assert_eq!(times(11), (at(130), at(140)));
    assert!(delayed.iter().all(|transit| transit.outcome == TransitOutcome::Arrived));
}

#[test]
fn packets_wait_in_the_queue_during_a_hold_outage() {
    let (start, length) = (Duration::ZERO, Duration::from_micros(50));
    let outage = vec![Outage { start, length, every: None, mode: OutageMode::Hold }];
    let limit = QueueLimit::Packets(2);
    let mut link = link(&Direction { outage, ..one_byte_a_microsecond(0, limit) });
    // The transmitter pauses, so the queue is not drained: two packets fit, not three.
    let accepted = (0..3).map(|n| link.handle_packet(at(10), 10, n).is_ok()).collect::<Vec<_>>();
    assert_eq!(accepted, [true, true, false]);
    assert_eq!((link.queue_packets(at(49)), link.queue_packets(at(50))), (2, 1));
}

/// Shadowing that changes every millisecond, with the signal below the threshold half of the time.
fn shadowing() -> Shadowing {
    let coherence = Some(Duration::from_micros(1_000));
    Shadowing { margin: Decibel::ZERO, deviation: Decibel::new(4), coherence, spans: 1 }
}

#[test]
fn shadowing_loses_whole_coherence_intervals() {
    // A packet every 10 µs: one hundred share an interval, and all are transmitted.
    let transits = stream(&Direction { shadowing: Some(shadowing()), ..clean() }, 20_000);
    assert_eq!(transits.last().unwrap().sent, at(200_000));
    let faded = |transit: &PacketTransit<u32>| {
        transit.outcome == TransitOutcome::Lost(DropReason::Shadowing)
    };
    let below = transits.chunks(100).filter(|interval| {
        assert!(interval.iter().all(|transit| faded(transit) == faded(&interval[0])));
        faded(&interval[0])
    });
    assert!(is_share(below.count(), 200, 0.5));
}

#[test]
fn the_first_cause_is_reported_and_causes_are_independent() {
    let noise = Noise {
        length: Duration::from_micros(100),
        gap: Duration::from_micros(900),
        loss: p(0.5),
        timing: NoiseTiming::Random,
    };
    let outage = Outage {
        start: Duration::from_micros(50_000),
        length: Duration::from_micros(50_000),
        every: None,
        mode: OutageMode::Drop,
    };
    let plain = Direction { loss: Some(Loss::Bernoulli(p(0.2))), ..clean() };
    let alone = |direction: &Direction| -> Vec<bool> {
        stream(direction, 20_000).iter().map(|transit| !transit.outcome.arrives()).collect()
    };
    let causes = [
        (DropReason::Outage, alone(&Direction { outage: vec![outage], ..clean() })),
        (DropReason::Shadowing, alone(&Direction { shadowing: Some(shadowing()), ..clean() })),
        (DropReason::Noise, alone(&Direction { noise: vec![noise], ..clean() })),
        (DropReason::Loss, alone(&plain)),
    ];
    let all = Direction {
        outage: vec![outage],
        shadowing: Some(shadowing()),
        noise: vec![noise],
        ..plain
    };
    for (number, transit) in stream(&all, 20_000).iter().enumerate() {
        let cause = causes.iter().find(|(_, lost)| lost[number]).map(|(reason, _)| *reason);
        let expected = cause.map_or(TransitOutcome::Arrived, TransitOutcome::Lost);
        assert_eq!(transit.outcome, expected, "{number}");
    }
}
