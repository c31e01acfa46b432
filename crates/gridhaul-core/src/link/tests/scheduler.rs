//! Schedulers: classes of packets with their own queues.

use gridhaul_scenario::scenario::{
    Aqm, Codel, Direction, Dscp, FqCodel, Scheduler, SchedulerClass,
};
use gridhaul_scenario::units::{BitRate, Bytes, Duration, Instant, QueueLimit};
use proptest::prelude::*;

use super::{CODE_POINTS, LinkDirection, PacketTransit, at, link, one_byte_a_microsecond};
use crate::link::LinkPayload;

/// A class of packets of one of the three flows.
fn class(flow: usize) -> SchedulerClass {
    let dscp = Dscp::new(CODE_POINTS[flow]).filter(|dscp| dscp.number() > 0);
    SchedulerClass { dscp: dscp.into_iter().collect(), ..SchedulerClass::default() }
}

fn scheduler(classes: [SchedulerClass; 3]) -> Scheduler {
    let class = ["control", "alarm", "other"].map(str::to_owned).into_iter().zip(classes);
    Scheduler { quantum: Bytes::new(1_600), class: class.collect() }
}

/// Schedulers with all kinds of classes.
pub(super) fn schedulers() -> impl Strategy<Value = Scheduler> {
    let queue = prop_oneof![
        (0_u32..20).prop_map(QueueLimit::Packets),
        (0_u64..20_000).prop_map(|bytes| QueueLimit::Bytes(Bytes::new(bytes))),
        Just(QueueLimit::Unlimited),
    ];
    let aqm = prop_oneof![
        Just(Aqm::Codel(Codel::default())),
        (1_u32..5).prop_map(|flows| Aqm::FqCodel(FqCodel { flows, ..FqCodel::default() })),
    ];
    let rate = (10_000_u64..100_000_000).prop_map(BitRate::from_bits_per_sec);
    let keys = (
        prop::option::of(queue),
        prop::option::of(aqm),
        prop::option::of((rate, (1_u64..5_000).prop_map(Bytes::new))),
        any::<bool>(),
        1_u32..5,
    );
    prop::collection::vec(keys, 3).prop_map(|keys| {
        let mut flow = 0;
        let classes = keys.into_iter().map(|(queue, aqm, bucket, is_strict, weight)| {
            let (rate, burst) = bucket.unzip();
            let priority = is_strict.then_some(flow as u8 + 1);
            let weight = (!is_strict).then_some(weight);
            flow += 1;
            SchedulerClass { queue, aqm, rate, burst, priority, weight, ..class(flow - 1) }
        });
        scheduler(classes.collect::<Vec<_>>().try_into().expect("three classes"))
    })
}

/// Flow 0 has strict priority; the other two share the rest three to one.
fn priority() -> Direction {
    let plain = one_byte_a_microsecond(100, QueueLimit::Packets(10));
    let control = SchedulerClass { priority: Some(1), ..class(0) };
    let alarm = SchedulerClass { weight: Some(3), ..class(1) };
    Direction { scheduler: Some(scheduler([control, alarm, class(2)])), ..plain }
}

/// All departing packets, in order. The end of a transmission is a deadline without a packet.
fn drain(link: &mut LinkDirection<u32>) -> Vec<PacketTransit<u32>> {
    let mut left = Vec::new();
    while link.next_deadline() != Instant::NEVER {
        left.extend(link.poll_output(link.next_deadline()));
    }
    left
}

fn started(link: &mut LinkDirection<u32>) -> Vec<(u32, u64)> {
    let transits = drain(link).into_iter();
    transits.map(|transit| (transit.payload, transit.started.as_nanos() / 1_000)).collect()
}

#[test]
fn a_packet_with_priority_waits_for_the_packet_in_transmission_only() {
    let mut link = link(&priority());
    for number in [2, 5, 8] {
        link.handle_packet(at(0), 1_000, number).unwrap();
    }
    link.handle_packet(at(300), 100, 0).unwrap();
    link.handle_packet(at(400), 100, 3).unwrap();
    assert_eq!(started(&mut link), [(2, 0), (0, 1_000), (3, 1_100), (5, 1_200), (8, 2_200)]);
}

#[test]
fn classes_without_priority_share_by_weight() {
    let mut link = link(&priority());
    for number in 0..8 {
        // Flows 1 and 2.
        link.handle_packet(at(0), 1_600, number * 3 + 1).unwrap();
        link.handle_packet(at(0), 1_600, number * 3 + 2).unwrap();
    }
    let flows: Vec<_> = started(&mut link).iter().map(|(number, _)| number % 3).collect();
    // The first packet was alone when its transmission began; then flow 2 was the first to queue.
    assert_eq!(flows[..12], [1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1, 2]);
}

#[test]
fn a_full_class_drops_its_own_packets_only() {
    let mut direction = priority();
    let classes = &mut direction.scheduler.as_mut().unwrap().class;
    classes["other"].queue = Some(QueueLimit::Packets(1));
    let mut link = link(&direction);
    let accepted =
        |link: &mut LinkDirection<u32>, number| link.handle_packet(at(0), 1_000, number).is_ok();
    // One in transmission, one in the queue.
    assert_eq!([2, 5, 8].map(|number| accepted(&mut link, number)), [true, true, false]);
    assert_eq!([0, 3, 1].map(|number| accepted(&mut link, number)), [true; 3]);
    let accounts = link.class_accounts(at(0));
    let counts: Vec<_> = accounts.iter().map(|class| (class.offered, class.refused)).collect();
    assert_eq!(counts, [(2, 0), (1, 0), (3, 1)]);
}

#[test]
fn a_class_without_tokens_leaves_the_link_to_the_others() {
    let mut direction = priority();
    let control = &mut direction.scheduler.as_mut().unwrap().class["control"];
    // 1 Mbit/s: a byte takes 8 µs.
    control.rate = Some(BitRate::from_bits_per_sec(1_000_000));
    control.burst = Some(Bytes::new(100));
    let mut link = link(&direction);
    for number in [0, 3, 6] {
        link.handle_packet(at(0), 100, number).unwrap();
    }
    link.handle_packet(at(0), 1_000, 2).unwrap();
    // The bucket is full again after 800 µs, when packet 2 is in transmission, and after 1.9 ms.
    assert_eq!(started(&mut link), [(0, 0), (2, 100), (3, 1_100), (6, 1_900)]);
}

#[test]
fn a_class_with_codel_has_its_own_delay_target() {
    let mut direction = priority();
    let codel =
        Codel { target: Duration::from_millis(1), interval: Duration::from_millis(5), ecn: false };
    direction.scheduler.as_mut().unwrap().class["other"].aqm = Some(Aqm::Codel(codel));
    direction.queue = QueueLimit::Unlimited;
    let mut link = link(&direction);
    for number in 0..40 {
        link.handle_packet(at(0), 1_000, number * 3 + 1).unwrap();
        link.handle_packet(at(0), 1_000, number * 3 + 2).unwrap();
    }
    let transits = drain(&mut link);
    let lost = |flow: u64| {
        let of_flow = transits.iter().filter(|transit| transit.payload.flow() == flow);
        of_flow.filter(|transit| !transit.outcome.arrives()).count()
    };
    assert_eq!(lost(1), 0);
    assert!(lost(2) > 3, "{}", lost(2));
    let dropped: Vec<_> =
        link.class_accounts(at(100_000)).iter().map(|class| class.dropped_queue).collect();
    assert_eq!(dropped, [0, 0, lost(2) as u64]);
}

#[test]
fn the_classes_of_a_direction_sum_to_its_counters() {
    let mut link = link(&priority());
    for number in 0..9 {
        link.handle_packet(at(u64::from(number) * 100), 500, number).unwrap();
    }
    // Four packets of 500 B have been transmitted, and half of the fifth.
    link.queue_packets(at(2_250));
    let sent: u64 = link.class_accounts(at(2_250)).iter().map(|class| class.wire_bytes).sum();
    assert_eq!((sent, link.sent_inside(at(2_250))), (2_250, 2_250));
    drain(&mut link);
    let accounts = link.class_accounts(at(9_000));
    let arrived: Vec<_> = accounts.iter().map(|class| class.arrived_bytes).collect();
    assert_eq!(arrived, [1_500; 3]);
}

proptest! {
    #[test]
    fn the_transmitter_is_never_idle_while_a_packet_waits(
        mut scheduler in schedulers(),
        offers in prop::collection::vec((0_u64..3_000, 1_u32..1_600), 1..100),
    ) {
        for class in scheduler.class.values_mut() {
            (class.rate, class.burst) = (None, None);
        }
        let plain = one_byte_a_microsecond(0, QueueLimit::Packets(5));
        let mut link = link(&Direction { scheduler: Some(scheduler), ..plain });
        let mut now = 0;
        for (number, (gap, bytes)) in (0..).zip(offers) {
            now += gap;
            let _ = link.handle_packet(at(now), bytes, number);
        }
        let mut sent = drain(&mut link);
        sent.retain(|transit| transit.outcome.arrives());
        sent.sort_by_key(|transit| transit.started);
        let mut free_at = Instant::ZERO;
        for (index, transit) in sent.iter().enumerate() {
            let first_offer = sent[index..].iter().map(|later| later.offered).min();
            prop_assert_eq!(Some(transit.started), first_offer.map(|offer| offer.max(free_at)));
            free_at = transit.sent;
        }
    }
}
