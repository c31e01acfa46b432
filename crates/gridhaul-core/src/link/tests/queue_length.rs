//! Mean and largest queue length: the integral of the length over time, and the measured time.

use gridhaul_scenario::scenario::{Aqm, Codel, FqCodel, Scheduler, SchedulerClass, Shaper};
use gridhaul_scenario::units::Bytes;

use super::super::{LinkAccount, LinkEntry, LinkSet};
use super::*;

/// 8 Mbit/s with at most 30 waiting packets.
fn plain() -> Direction {
    one_byte_a_microsecond(50, QueueLimit::Packets(30))
}

/// Directions with all kinds of queues; those with active queue management drop packets.
fn directions() -> [Direction; 6] {
    let (target, interval) = (Duration::from_micros(50), Duration::from_micros(400));
    let codel = Aqm::Codel(Codel { target, interval, ecn: false });
    let fq_codel = Aqm::FqCodel(FqCodel { target, interval, ..FqCodel::default() });
    let class = |aqm| SchedulerClass { aqm, ..SchedulerClass::default() };
    let control = SchedulerClass { dscp: Dscp::new(46).into_iter().collect(), ..class(None) };
    let classes =
        [("control".to_owned(), control), ("other".to_owned(), class(Some(codel.clone())))];
    let scheduler = Scheduler { quantum: Bytes::new(100), class: classes.into_iter().collect() };
    let shaper = Shaper {
        on: true,
        rate: BitRate::from_bits_per_sec(4_000_000),
        burst: Bytes::new(200),
        queue: QueueLimit::Packets(20),
        share: [].into_iter().collect(),
    };
    [
        plain(),
        Direction { duplicate: Some(p(0.5)), ..plain() },
        Direction { aqm: Some(codel), ..plain() },
        Direction { aqm: Some(fq_codel), ..plain() },
        Direction { scheduler: Some(scheduler), ..plain() },
        Direction { shaper: Some(shaper), ..plain() },
    ]
}

fn links(directions: &[Direction]) -> LinkSet<u32> {
    let entries = (0..).zip(directions).map(|(number, direction)| {
        LinkEntry::new(direction, LinkRandomStreams::named(1, 0, "link", number), ())
    });
    LinkSet::of_entries(entries)
}

fn accounts(links: &LinkSet<u32>, now: Instant) -> Vec<LinkAccount> {
    links.accounts(now).collect()
}

/// A packet of 100 B every 70 µs is more than a link transmits, and the queue grows up to 3 ms;
/// then it empties. The waits of all packets up to any time are the integral of the queue length
/// up to that time.
#[test]
fn the_waits_so_far_are_the_integral_of_the_queue_length() {
    let mut links = links(&directions());
    let mut integrals = [0; 6];
    for now in 0..9_000 {
        let found = accounts(&links, at(now));
        for (link, integral) in (0..).zip(&mut integrals) {
            assert_eq!(found[link as usize].waited_ns, *integral, "link {link} at {now} µs");
            let entry = links.entry_mut(link);
            while entry.front(at(now)).is_some() {
                entry.direction.drop_front();
            }
            if now < 3_000 && now % 70 == 0 {
                let _ = links.offer(at(now), link, 100, || (now / 70) as u32, |_, _| ());
            }
            let queued = links.entry_mut(link).direction.queue_packets(at(now));
            *integral += u64::from(queued) * 1_000;
        }
        let classes = found[6].waited_ns + found[7].waited_ns;
        assert_eq!(classes, found[4].waited_ns, "the classes of link 4 at {now} µs");
    }
    assert!(integrals.iter().all(|&integral| integral > 0), "{integrals:?}");
    let lengths = (0..6).map(|link| links.entry_mut(link).direction.queue_packets(at(9_000)));
    assert_eq!(lengths.sum::<u32>(), 0);
}

/// Of ten packets at 0, nine wait; at 650 µs, three are left, and the measured time begins.
#[test]
fn the_largest_length_is_that_of_the_measured_time() {
    let all = directions();
    let mut links = links(&[all[0].clone(), all[4].clone()]);
    for link in [0, 1] {
        for number in 0..10 {
            links.offer(at(0), link, 100, || 3 * number, |_, _| ()).unwrap();
            links.entry_mut(link).direction.queue_packets(at(0));
        }
        while links.entry_mut(link).front(at(650)).is_some() {
            links.entry_mut(link).direction.drop_front();
        }
    }
    let largest = |links: &LinkSet<u32>| -> Vec<u32> {
        accounts(links, at(650)).iter().map(|account| account.queue_max).collect()
    };
    // All packets belong to the class `control`, whose first one is counted before it is sent.
    assert_eq!(largest(&links), [9, 9, 9, 0]);
    links.restart_maxima(at(650));
    assert_eq!(largest(&links), [3, 3, 3, 0]);
}
