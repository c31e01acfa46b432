//! Managed queues as links: what waits, what is dropped and when.

use gridhaul_scenario::scenario::{Aqm, Codel, FqCodel, Outage, OutageMode, Pie, Red};
use gridhaul_scenario::units::Bytes;

use super::super::{DropReason, TransitOutcome};
use super::*;

fn managed(aqm: Aqm, queue: QueueLimit) -> Direction {
    Direction { aqm: Some(aqm), ..one_byte_a_microsecond(500, queue) }
}

fn codel(target_us: u64, interval_us: u64) -> Aqm {
    Aqm::Codel(Codel {
        target: Duration::from_micros(target_us),
        interval: Duration::from_micros(interval_us),
    })
}

fn fq_codel() -> Aqm {
    Aqm::FqCodel(FqCodel::default())
}

/// Number, beginning and departure in µs, and outcome of all that leaves.
fn rows(link: &mut LinkDirection<u32>) -> Vec<(u32, u64, u64, TransitOutcome)> {
    let micros = |at: Instant| at.as_nanos() / 1_000;
    let row = |transit: &PacketTransit<u32>| {
        (transit.payload, micros(transit.started), micros(transit.left), transit.outcome)
    };
    drain_all(link).iter().map(row).collect()
}

/// As [`drain`], also where a deadline is the end of a transmission only.
fn drain_all(link: &mut LinkDirection<u32>) -> Vec<PacketTransit<u32>> {
    let mut left = Vec::new();
    while link.next_deadline() != Instant::NEVER {
        left.extend(link.poll_output(link.next_deadline()));
    }
    left
}

#[test]
fn a_queue_that_has_nothing_to_drop_is_drop_tail() {
    // The same packets on a plain link and under each discipline with thresholds far away.
    let limit = QueueLimit::Packets(5);
    let red =
        Red { min: QueueLimit::Packets(4_000), max: QueueLimit::Packets(5_000), ..Red::default() };
    let pie = Pie { target: Duration::from_secs(9), ..Pie::default() };
    let transits = |direction: &Direction| {
        let mut link = link(direction);
        let accepted: Vec<_> = (0..40)
            .map(|n| link.handle_packet(at(u64::from(n) * 70), 100, n * 3).is_ok())
            .collect();
        (accepted, drain_all(&mut link))
    };
    let plain = transits(&one_byte_a_microsecond(500, limit));
    assert!(plain.0.contains(&false));
    for aqm in [codel(1_000_000, 2_000_000), Aqm::Red(red), Aqm::Pie(pie)] {
        assert_eq!(transits(&managed(aqm.clone(), limit)), plain, "{aqm:?}");
    }
}

#[test]
fn codel_drops_on_the_way_out() {
    // Ten packets of 100 µs at once; at most 150 µs of wait for at most 300 µs. The third begins
    // at 200 µs and is the first that waited too long; the sixth is looked at 500 µs: dropped.
    let mut link = link(&managed(codel(150, 300), QueueLimit::Unlimited));
    (0..10).for_each(|number| link.handle_packet(at(0), 100, number).unwrap());
    assert_eq!((link.inside(), link.queue_packets(at(0))), (10, 9));
    let dropped = TransitOutcome::Lost(DropReason::Aqm);
    let expected = [
        (0, 0, 600, TransitOutcome::Arrived),
        (1, 100, 700, TransitOutcome::Arrived),
        // It leaves, as lost, when it is dropped: before those that are on the way.
        (5, 500, 500, dropped),
        (2, 200, 800, TransitOutcome::Arrived),
    ];
    let mut all = rows(&mut link);
    assert_eq!(all[0], expected[2], "what is dropped leaves at once");
    all.sort_by_key(|row| row.1);
    assert_eq!(all[..3], [expected[0], expected[1], expected[3]]);
    assert_eq!(all.iter().filter(|row| row.3 == dropped).count(), 1);
    assert_eq!((link.inside(), link.next_deadline()), (0, Instant::NEVER));
}

#[test]
fn the_hard_limit_refuses_or_takes_from_the_longest() {
    let limit = QueueLimit::Packets(3);
    let offer = |aqm, numbers: &[u32]| {
        let mut link = link(&managed(aqm, limit));
        let accepted: Vec<_> =
            numbers.iter().filter(|&&n| link.handle_packet(at(0), 100, n).is_ok()).collect();
        (accepted.len(), link)
    };
    // CoDel: one on the wire, three wait, the fifth is refused.
    let (accepted, mut link) = offer(codel(5_000, 100_000), &[0, 3, 6, 9, 12]);
    assert_eq!((accepted, link.queue_packets(at(0))), (4, 3));
    // FQ-CoDel takes a packet of flow 1 and drops the oldest of flow 0.
    let (accepted, mut link) = offer(fq_codel(), &[0, 3, 6, 9, 1]);
    assert_eq!((accepted, link.queue_packets(at(0)), link.inside()), (5, 3, 5));
    assert_eq!(link.next_deadline(), at(0));
    let expected = [
        (3, 0, 0, TransitOutcome::Lost(DropReason::QueueFull)),
        (0, 0, 600, TransitOutcome::Arrived),
        (6, 100, 700, TransitOutcome::Arrived),
        (9, 200, 800, TransitOutcome::Arrived),
        (1, 300, 900, TransitOutcome::Arrived),
    ];
    let all = rows(&mut link);
    assert_eq!(all.len(), expected.len());
    assert!(all.iter().all(|row| expected.iter().any(|other| row.0 == other.0)));
    assert_eq!(all[0], expected[0]);
}

#[test]
fn one_too_long_for_the_whole_queue_leaves_no_deadline() {
    // 98 B may wait: 99 B take the byte that waits with them.
    let mut link = link(&managed(fq_codel(), QueueLimit::Bytes(Bytes::new(98))));
    for (number, bytes) in [(0, 1), (3, 1), (6, 99)] {
        link.handle_packet(at(0), bytes, number).unwrap();
    }
    let dropped = TransitOutcome::Lost(DropReason::QueueFull);
    assert_eq!(rows(&mut link)[..2], [(3, 0, 0, dropped), (6, 0, 0, dropped)]);
    assert_eq!((link.queue_packets(at(0)), link.next_deadline()), (0, Instant::NEVER));
    // The next one is sent as if nothing had been.
    link.handle_packet(at(700), 1, 9).unwrap();
    assert_eq!(rows(&mut link), [(9, 700, 1_201, TransitOutcome::Arrived)]);
}

#[test]
fn an_outage_that_holds_keeps_packets_in_the_queue() {
    let outage = Outage {
        start: Duration::from_micros(150),
        length: Duration::from_micros(1_000),
        every: None,
        mode: OutageMode::Hold,
    };
    for aqm in [codel(5_000, 100_000), fq_codel()] {
        let direction = Direction { outage: vec![outage], ..managed(aqm, QueueLimit::Packets(2)) };
        let mut link = link(&direction);
        // On the wire; waits and is stopped half-way; nothing else until 1,200.
        (0..2).for_each(|number| link.handle_packet(at(0), 100, number * 3).unwrap());
        link.handle_packet(at(500), 100, 6).unwrap();
        let expected = [
            (0, 0, 600, TransitOutcome::Arrived),
            (3, 100, 1_700, TransitOutcome::Arrived),
            (6, 1_200, 1_800, TransitOutcome::Arrived),
        ];
        assert_eq!(rows(&mut link), expected);
        // One that comes to an idle wire that stands still waits as well.
        let mut link = self::link(&direction);
        link.handle_packet(at(200), 100, 0).unwrap();
        assert_eq!(link.queue_packets(at(1_149)), 1);
        assert_eq!(rows(&mut link), [(0, 1_150, 1_750, TransitOutcome::Arrived)]);
    }
}

#[test]
fn red_and_pie_drop_what_arrives() {
    // RED without memory: below 2 packets none, from 4 on all; so the queue stays at 4 at most.
    let red = Red {
        min: QueueLimit::Packets(2),
        max: QueueLimit::Packets(4),
        weight: 1.0,
        gentle: false,
        ..Red::default()
    };
    let mut link = link(&managed(Aqm::Red(red), QueueLimit::Unlimited));
    let results: Vec<_> = (0..50).map(|number| link.handle_packet(at(0), 100, number)).collect();
    assert_eq!(link.queue_packets(at(0)), 4);
    assert_eq!(results[..3], [Ok(()); 3]);
    assert_eq!(results[49], Err(DropReason::Aqm));
    assert_eq!(drain_all(&mut link).len(), 5);
}

#[test]
fn an_outage_that_holds_lets_a_managed_queue_wait_as_well() {
    let held = Outage {
        start: Duration::from_micros(150),
        length: Duration::from_micros(1_000),
        every: None,
        mode: OutageMode::Hold,
    };
    let direction = Direction {
        outage: vec![held],
        ..managed(codel(1_000_000, 1_000_000), QueueLimit::Unlimited)
    };
    let mut link = link(&direction);
    (0..3).for_each(|number| link.handle_packet(at(0), 100, number).unwrap());
    // The second stands still after 50 of its 100 us; the third, and what comes meanwhile, begin behind it.
    link.handle_packet(at(160), 100, 3).unwrap();
    let begins: Vec<_> = rows(&mut link).iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(begins, [(0, 0), (1, 100), (2, 1_200), (3, 1_300)]);

    // The wire is free at the very begin of the outage, and takes the next one at its end.
    let mut link = super::link(&direction);
    (0..4).for_each(|number| link.handle_packet(at(0), 50, number).unwrap());
    let begins: Vec<_> = rows(&mut link).iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(begins, [(0, 0), (1, 50), (2, 100), (3, 1_150)]);
}
