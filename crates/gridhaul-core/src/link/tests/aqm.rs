//! Active queue management on complete directions.

use gridhaul_scenario::scenario::{Aqm, Codel, FqCodel, Outage, OutageMode, Pie, Red};
use gridhaul_scenario::units::Bytes;

use super::super::{DropReason, TransitOutcome};
use super::*;

fn with_aqm(aqm: Aqm, queue: QueueLimit) -> Direction {
    Direction { aqm: Some(aqm), ..one_byte_a_microsecond(500, queue) }
}

fn codel(target_us: u64, interval_us: u64) -> Aqm {
    Aqm::Codel(Codel {
        target: Duration::from_micros(target_us),
        interval: Duration::from_micros(interval_us),
        ecn: false,
    })
}

fn fq_codel() -> Aqm {
    Aqm::FqCodel(FqCodel::default())
}

/// Number, transmission start and departure in µs, and outcome of all departing packets.
fn rows(link: &mut LinkDirection<u32>) -> Vec<(u32, u64, u64, TransitOutcome)> {
    let micros = |at: Instant| at.as_nanos() / 1_000;
    let row = |transit: &PacketTransit<u32>| {
        (transit.payload, micros(transit.started), micros(transit.left), transit.outcome)
    };
    drain_all(link).iter().map(row).collect()
}

/// As [`drain`], for directions whose deadlines include ends of transmissions.
fn drain_all(link: &mut LinkDirection<u32>) -> Vec<PacketTransit<u32>> {
    let mut left = Vec::new();
    while link.next_deadline() != Instant::NEVER {
        left.extend(link.poll_output(link.next_deadline()));
    }
    left
}

#[test]
fn without_aqm_drops_a_queue_behaves_like_drop_tail() {
    // The same packets on a plain direction and with each discipline, with thresholds out of reach.
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
        assert_eq!(transits(&with_aqm(aqm.clone(), limit)), plain, "{aqm:?}");
    }
}

#[test]
fn codel_drops_on_dequeue() {
    // Ten packets of 100 µs at once; target 150 µs, interval 300 µs. The third packet starts at 200
    // µs and is the first above the target; the sixth, dequeued at 500 µs, is dropped.
    let mut link = link(&with_aqm(codel(150, 300), QueueLimit::Unlimited));
    (0..10).for_each(|number| link.handle_packet(at(0), 100, number).unwrap());
    assert_eq!((link.inside(), link.queue_packets(at(0))), (10, 9));
    let dropped = TransitOutcome::Lost(DropReason::Aqm);
    let expected = [
        (0, 0, 600, TransitOutcome::Arrived),
        (1, 100, 700, TransitOutcome::Arrived),
        // A dropped packet departs at the time of the drop: before the packets in propagation.
        (5, 500, 500, dropped),
        (2, 200, 800, TransitOutcome::Arrived),
    ];
    let mut all = rows(&mut link);
    assert_eq!(all[0], expected[2], "a dropped packet departs immediately");
    all.sort_by_key(|row| row.1);
    assert_eq!(all[..3], [expected[0], expected[1], expected[3]]);
    assert_eq!(all.iter().filter(|row| row.3 == dropped).count(), 1);
    assert_eq!((link.inside(), link.next_deadline()), (0, Instant::NEVER));
}

#[test]
fn at_the_limit_codel_drops_the_new_packet_and_fq_codel_from_the_longest_queue() {
    let limit = QueueLimit::Packets(3);
    let offer = |aqm, numbers: &[u32]| {
        let mut link = link(&with_aqm(aqm, limit));
        let accepted: Vec<_> =
            numbers.iter().filter(|&&n| link.handle_packet(at(0), 100, n).is_ok()).collect();
        (accepted.len(), link)
    };
    // CoDel: one in transmission, three queued, the fifth is dropped.
    let (accepted, mut link) = offer(codel(5_000, 100_000), &[0, 3, 6, 9, 12]);
    assert_eq!((accepted, link.queue_packets(at(0))), (4, 3));
    // FQ-CoDel accepts a packet of flow 1 and drops the oldest of flow 0.
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
fn a_packet_larger_than_the_queue_leaves_no_deadline() {
    // The limit is 98 B: a packet of 99 B evicts the queued byte and itself.
    let mut link = link(&with_aqm(fq_codel(), QueueLimit::Bytes(Bytes::new(98))));
    for (number, bytes) in [(0, 1), (3, 1), (6, 99)] {
        link.handle_packet(at(0), bytes, number).unwrap();
    }
    let dropped = TransitOutcome::Lost(DropReason::QueueFull);
    assert_eq!(rows(&mut link)[..2], [(3, 0, 0, dropped), (6, 0, 0, dropped)]);
    assert_eq!((link.queue_packets(at(0)), link.next_deadline()), (0, Instant::NEVER));
    // The next packet is transmitted as on an idle link.
    link.handle_packet(at(700), 1, 9).unwrap();
    assert_eq!(rows(&mut link), [(9, 700, 1_201, TransitOutcome::Arrived)]);
}

#[test]
fn a_hold_outage_keeps_packets_in_an_aqm_queue() {
    let outage = Outage {
        start: Duration::from_micros(150),
        length: Duration::from_micros(1_000),
        every: None,
        mode: OutageMode::Hold,
    };
    for aqm in [codel(5_000, 100_000), fq_codel()] {
        let direction = Direction { outage: vec![outage], ..with_aqm(aqm, QueueLimit::Packets(2)) };
        let mut link = link(&direction);
        // In transmission; queued and paused half-way; the third starts at 1,200.
        (0..2).for_each(|number| link.handle_packet(at(0), 100, number * 3).unwrap());
        link.handle_packet(at(500), 100, 6).unwrap();
        let expected = [
            (0, 0, 600, TransitOutcome::Arrived),
            (3, 100, 1_700, TransitOutcome::Arrived),
            (6, 1_200, 1_800, TransitOutcome::Arrived),
        ];
        assert_eq!(rows(&mut link), expected);
        // A packet that arrives during the outage waits as well, although the transmitter is idle.
        let mut link = self::link(&direction);
        link.handle_packet(at(200), 100, 0).unwrap();
        assert_eq!(link.queue_packets(at(1_149)), 1);
        assert_eq!(rows(&mut link), [(0, 1_150, 1_750, TransitOutcome::Arrived)]);
    }
}

#[test]
fn red_drops_on_arrival() {
    // RED without memory drops none below 2 packets and all from 4 on, so at most 4 are queued.
    let red = Red {
        min: QueueLimit::Packets(2),
        max: QueueLimit::Packets(4),
        weight: 1.0,
        gentle: false,
        ..Red::default()
    };
    let mut link = link(&with_aqm(Aqm::Red(red), QueueLimit::Unlimited));
    let results: Vec<_> = (0..50).map(|number| link.handle_packet(at(0), 100, number)).collect();
    assert_eq!(link.queue_packets(at(0)), 4);
    assert_eq!(results[..3], [Ok(()); 3]);
    assert_eq!(results[49], Err(DropReason::Aqm));
    assert_eq!(drain_all(&mut link).len(), 5);
}

#[test]
fn transmissions_resume_after_a_hold_outage() {
    let outage = Outage {
        start: Duration::from_micros(150),
        length: Duration::from_micros(1_000),
        every: None,
        mode: OutageMode::Hold,
    };
    let direction = Direction {
        outage: vec![outage],
        ..with_aqm(codel(1_000_000, 1_000_000), QueueLimit::Unlimited)
    };
    let mut link = link(&direction);
    (0..3).for_each(|number| link.handle_packet(at(0), 100, number).unwrap());
    // The second pauses after 50 of its 100 µs; the third and the packet offered meanwhile follow
    // it.
    link.handle_packet(at(160), 100, 3).unwrap();
    let starts: Vec<_> = rows(&mut link).iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(starts, [(0, 0), (1, 100), (2, 1_200), (3, 1_300)]);

    // The transmitter is free at the very start of the outage, and starts the next packet at its
    // end.
    let mut link = super::link(&direction);
    (0..4).for_each(|number| link.handle_packet(at(0), 50, number).unwrap());
    let starts: Vec<_> = rows(&mut link).iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(starts, [(0, 0), (1, 50), (2, 100), (3, 1_150)]);
}
