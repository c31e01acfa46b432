//! Several links together: counters, observers, paired directions and the order of deadlines.

use gridhaul_scenario::scenario::{
    COMPRESSIBLE_HEADER, Codel, Compression, Directions, Loss, Scenario,
};
use gridhaul_scenario::units::Bytes;
use proptest::prelude::*;

use super::super::{DropReason, LinkEntry, LinkObserver, LinkSet, TimedLinks};
use super::*;

/// Counts the notifications.
#[derive(Debug, Default)]
struct CountingObserver {
    offered: u64,
    accepted_bytes: u64,
    transits: u64,
}

impl LinkObserver<u32> for CountingObserver {
    fn observes_offers(&self) -> bool {
        true
    }
    fn on_offered(&mut self, _now: Instant, _packet: &u32) {
        self.offered += 1;
    }
    fn on_accepted(&mut self, _now: Instant, bytes: u32) {
        self.accepted_bytes += u64::from(bytes);
    }
    fn on_transit(&mut self, _now: Instant, _transit: &PacketTransit<u32>) {
        self.transits += 1;
    }
}

/// Links with different delays and disciplines; the queue of each has space for three packets.
fn directions() -> [Direction; 4] {
    let plain = |delay_us| one_byte_a_microsecond(delay_us, QueueLimit::Packets(3));
    let (target, interval) = (Duration::from_micros(50), Duration::from_micros(200));
    let codel = gridhaul_scenario::scenario::Aqm::Codel(Codel { target, interval, ecn: false });
    [
        plain(100),
        plain(0),
        Direction { aqm: Some(codel), ..plain(30) },
        Direction { duplicate: Some(p(0.5)), ..plain(100) },
    ]
}

fn timed<O: LinkObserver<u32>>(observer: impl Fn() -> O) -> TimedLinks<u32, O> {
    let entry = |(number, direction): (u64, &Direction)| {
        LinkEntry::new(
            direction,
            LinkRandomStreams::named(1, 0, "link.forward", number),
            observer(),
        )
    };
    TimedLinks::new(LinkSet::of_entries((0..).zip(&directions()).map(entry)))
}

#[test]
fn at_equal_deadlines_the_smallest_number_comes_first() {
    let mut links = timed(|| ());
    // 100 B take 100 µs: link 1 is due at 100 µs, link 2 at 130 µs, links 0 and 3 at 200 µs.
    for link in [3, 0, 2, 1] {
        links.offer(at(0), link, 100, link).unwrap();
    }
    assert_eq!(links.next_deadline(), at(100));
    let order: Vec<_> = std::iter::from_fn(|| links.poll(at(200))).map(|(link, _)| link).collect();
    let originals: Vec<_> = order.iter().copied().take(4).collect();
    assert_eq!(originals, [1, 2, 0, 3]);
    assert_eq!(links.next_deadline(), Instant::NEVER);
}

#[test]
fn a_packet_queued_after_others_reports_no_deadline() {
    let plain = one_byte_a_microsecond(10, QueueLimit::Packets(3));
    let entry = LinkEntry::new(&plain, LinkRandomStreams::named(1, 0, "link.forward", 0), ());
    let mut links: LinkSet<u32> = LinkSet::of_entries([entry]);
    let mut scheduled = Vec::new();
    for number in 0..3 {
        links.offer(at(0), 0, 100, || number, |_, deadline| scheduled.push(deadline)).unwrap();
    }
    assert_eq!(scheduled, [at(110)]);
}

#[test]
fn a_packet_written_in_place_is_counted_like_others() {
    let plain = one_byte_a_microsecond(10, QueueLimit::Packets(1));
    let entry = |number| LinkEntry::new(&plain, LinkRandomStreams::named(1, 0, "link", number), ());
    let mut links: LinkSet<u32> = LinkSet::of_entries([0, 1].map(entry));
    for number in 0..3 {
        let offered = links.offer(at(0), 0, 100, || number, |_, _| ());
        let entry = links.entry_mut(1);
        assert!(entry.is_plain());
        *entry.packet_slot(|| 0) = number;
        let placed = entry.offer_slot(at(0), 100, |_| ());
        assert_eq!(placed, offered.is_ok());
    }
    let [first, second] = [0, 1].map(|link| format!("{:?}", links.entry(link).account));
    assert_eq!(first, second);
    assert_eq!(links.entry(1).account.refused, 1, "one is sent, one waits");
}

#[test]
fn an_observed_direction_is_not_plain() {
    let mut links = timed(CountingObserver::default).links;
    assert!(!links.entry_mut(0).is_plain());
}

#[test]
fn paired_directions_are_notified_of_use() {
    let scenario = Scenario::from_toml(
        r#"
        title = "One radio link"
        duration = "10 s"
        [node]
        a = {}
        b = {}
        [link.radio]
        from = "a"
        to = "b"
        [link.radio.forward]
        rate = "1 Mbit/s"
        delay = "10 ms"
        [link.radio.reverse]
        rate = "1 Mbit/s"
        delay = "10 ms"
        load_latency = { idle = "100 ms", critical = "10 kbit/s", stationary = "100 ms", paired = "500 ms", paired_with = "radio.forward" }
        [flow.bulk]
        from = "a"
        to = "b"
        load = "bulk"
        "#,
        "radio.toml",
    )
    .unwrap();
    let directions = Directions::new(&scenario);
    let latency = |uses: bool| {
        let links = LinkSet::of_scenario(&scenario, &directions, 0, |_, _, _| ()).unwrap();
        let mut links = TimedLinks::new(links);
        if uses {
            links.offer(at(0), 0, 100, 1).unwrap();
        }
        links.offer(at(0), 1, 100, 2).unwrap();
        let mut left = std::iter::from_fn(|| links.poll(at(10_000_000)));
        left.find(|(link, _)| *link == 1).expect("it arrives").1.left
    };
    assert!(latency(true) > latency(false), "{:?} {:?}", latency(true), latency(false));
}

/// Four packets of 100 B at the same time, 100 µs of transmission each: one is transmitted, two
/// wait, and the queue refuses the last one.
#[test]
fn offers_departures_and_losses_are_counted_for_each_direction() {
    let plain = one_byte_a_microsecond(10, QueueLimit::Packets(2));
    let lossy = Direction { loss: Some(Loss::Bernoulli(p(1.0))), ..plain.clone() };
    let entry = |(number, direction): (u64, &Direction)| {
        LinkEntry::new(direction, LinkRandomStreams::named(1, 0, "link", number), ())
    };
    let idle = plain.clone();
    let entries = (0..).zip([&plain, &lossy, &idle]).map(entry);
    let mut links: LinkSet<u32> = LinkSet::of_entries(entries);
    for link in [0, 1] {
        for number in 0..4 {
            let offered = links.offer(at(0), link, 100, || number, |_, _| ());
            assert_eq!(offered.is_ok(), number < 3);
        }
    }
    let depart = |links: &mut LinkSet<u32>, now| {
        for entry in links.iter_mut() {
            while entry.front(now).is_some() {
                entry.direction.drop_front();
            }
        }
    };
    depart(&mut links, at(150));
    let halfway: Vec<_> = links.accounts(at(150)).collect();
    assert_eq!((halfway[0].offered, halfway[0].refused, halfway[0].arrived), (4, 1, 1));
    assert_eq!(halfway[0].wire_bytes, 150, "half of the second packet is transmitted");
    assert_eq!(halfway[0].queue_max, 2);
    // The second packet has waited for 100 µs, and the third for 150 µs so far.
    assert_eq!(halfway[0].waited_ns, 250_000);

    depart(&mut links, at(310));
    let end: Vec<_> = links.accounts(at(310)).collect();
    let [plain, lossy, idle] = &end[..] else { panic!("{end:?}") };
    assert_eq!((plain.arrived, plain.arrived_bytes, plain.wire_bytes), (3, 300, 300));
    assert_eq!((plain.dropped_queue, plain.refused, plain.dropped_loss), (1, 1, 0));
    // Transmission starts at 0, 100 and 200 µs; the packets arrive at 110, 210 and 310 µs.
    assert_eq!((plain.waited_ns, plain.delay_ns), (300_000, 630_000));
    assert_eq!((lossy.arrived, lossy.dropped_loss, lossy.wire_bytes), (0, 3, 300));
    assert_eq!((idle.offered, idle.arrived, idle.queue_max), (0, 0, 0));
}

proptest! {
    /// The directions of a set behave as they do alone, and the counters are consistent.
    #[test]
    fn links_of_a_set_are_independent(
        steps in prop::collection::vec((0_u32..4, 0_u64..120, 1_u32..300, any::<bool>()), 1..200),
    ) {
        let mut links = timed(CountingObserver::default);
        let mut alone = Vec::from_iter((0..).zip(&directions()).map(|(number, direction)| {
            LinkDirection::new(direction, LinkRandomStreams::named(1, 0, "link.forward", number))
        }));
        let mut left = [const { Vec::new() }; 4];
        let (mut now, mut bytes_in) = (0, [0_u64; 4]);
        for (packet, (link, gap, bytes, polls)) in (0_u32..).zip(steps) {
            now += gap;
            let offered = links.offer(at(now), link, bytes, packet);
            let expected: Result<(), DropReason> =
                alone[link as usize].handle_packet(at(now), bytes, packet);
            prop_assert_eq!(offered, expected);
            bytes_in[link as usize] += offered.map_or(0, |()| u64::from(bytes));
            if polls {
                while let Some((from, transit)) = links.poll(at(now)) {
                    left[from as usize].push(transit);
                }
                prop_assert!(links.next_deadline() > at(now));
            }
        }
        while let Some((from, transit)) = links.poll(at(10_000_000)) {
            left[from as usize].push(transit);
        }
        for (number, direction) in alone.iter_mut().enumerate() {
            let entry = links.links.entry(number as u32);
            let CountingObserver { offered, accepted_bytes, transits } = entry.observer;
            prop_assert_eq!(offered, entry.account.offered);
            prop_assert_eq!(accepted_bytes, bytes_in[number]);
            prop_assert_eq!(transits, left[number].len() as u64);
            let inside = entry.direction.inside() as u64;
            let made = entry.account.offered + entry.direction.copies();
            prop_assert_eq!(made, entry.account.refused + transits + inside);
            if direction.is_plain() {
                prop_assert_eq!(&left[number], &drain(direction));
            }
        }
    }
}

#[test]
fn a_compressed_packet_has_its_size_on_the_link_everywhere_on_this_link() {
    let compression = Compression {
        header: Bytes::new(22),
        compressible: COMPRESSIBLE_HEADER,
        payload_ratio: 0.5,
        overhead: Bytes::new(8),
    };
    // 40 B and 1500 B become 22 + 8 and 22 + 730 + 8 B. The second waits in a queue of 760 B; a
    // third is dropped.
    let direction = Direction {
        compression: Some(compression),
        ..one_byte_a_microsecond(0, QueueLimit::Bytes(Bytes::new(760)))
    };
    let random = LinkRandomStreams::named(1, 0, "link.forward", 0);
    let entry = LinkEntry::new(&direction, random, CountingObserver::default());
    let mut links = LinkSet::of_entries([entry]);
    let mut offer = |bytes| links.offer(Instant::ZERO, 0, bytes, || 0, |_, _| ());
    assert_eq!([offer(40), offer(1500)], [Ok(()), Ok(())]);
    assert_eq!(offer(1500), Err(DropReason::QueueFull));
    let entry = links.entry_mut(0);
    assert_eq!(entry.observer.accepted_bytes, 30 + 760);
    for (end_us, bytes) in [(30, 30), (790, 760)] {
        let now = Instant::ZERO + Duration::from_micros(end_us);
        let transit = *entry.front(now).expect("transmission ends");
        entry.direction.drop_front();
        assert_eq!((transit.bytes, transit.left), (bytes, now));
    }
    assert_eq!(entry.account.arrived_bytes, 30 + 760);
}
