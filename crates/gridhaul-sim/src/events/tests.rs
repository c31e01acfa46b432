use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use gridhaul_scenario::units::Duration;
use proptest::prelude::*;

use super::*;

/// The specification of the queue: a binary heap of time, whether the target is no link, sequence
/// number and target.
#[derive(Default)]
struct Specification {
    heap: BinaryHeap<Reverse<(Instant, bool, u64, u32)>>,
    /// Time of the valid entry of each target.
    scheduled: BTreeMap<u32, Instant>,
    sequence: u64,
}

impl Specification {
    fn schedule(&mut self, (target, is_link): (u32, bool), at: Instant) {
        if self.scheduled.get(&target).is_none_or(|&scheduled| at < scheduled) {
            self.sequence += 1;
            self.scheduled.insert(target, at);
            self.heap.push(Reverse((at, !is_link, self.sequence, target)));
        }
    }

    fn pop(&mut self, end: Instant) -> Option<(Instant, u32)> {
        while let Some(&Reverse((at, _, _, target))) = self.heap.peek()
            && at <= end
        {
            self.heap.pop();
            if self.scheduled.get(&target) == Some(&at) {
                self.scheduled.remove(&target);
                return Some((at, target));
            }
        }
        None
    }
}

#[test]
fn at_equal_times_links_come_first_then_the_order_of_scheduling() {
    let mut events = Events::new(3, 2, 0, 0);
    let at = Instant::from_nanos(5);
    for target in [Target::App(1), Target::Link(2), Target::App(0), Target::Link(0)] {
        events.schedule(target, at);
    }
    let order: Vec<_> = std::iter::from_fn(|| events.pop(Instant::NEVER)).collect();
    let expected = [Target::Link(2), Target::Link(0), Target::App(1), Target::App(0)];
    assert_eq!(order, expected.map(|target| (at, target)));
}

#[test]
fn an_earlier_time_reindices_a_later_one() {
    let mut events = Events::new(1, 0, 0, 0);
    for nanos in [9, 4, 7] {
        events.schedule(Target::Link(0), Instant::from_nanos(nanos));
    }
    assert_eq!(events.pop(Instant::NEVER), Some((Instant::from_nanos(4), Target::Link(0))));
    assert_eq!(events.pop(Instant::NEVER), None, "superseded entries are dropped");
}

#[test]
fn a_stopped_timer_has_no_event_until_the_end_is_scheduled_again() {
    let at = Instant::from_nanos;
    let [end, other] = [0, 3].map(EndId::from_index);
    let mut events = Events::new(1, 2, 0, 0);
    events.schedule(Target::End(end), at(4));
    events.schedule_end(end, Instant::NEVER, || true);
    events.schedule(Target::End(other), at(5));
    events.schedule_end(other, Instant::NEVER, || false);
    assert_eq!(events.next_time(), at(4));
    assert_eq!(events.pop(Instant::NEVER), Some((at(5), Target::End(other))));
    // A later time restores the event, and an earlier one reindices it.
    for again in [9, 7] {
        events.schedule(Target::End(end), at(8));
        events.schedule_end(end, Instant::NEVER, || true);
        events.schedule(Target::End(end), at(again));
        let first = Some((at(again.min(8)), Target::End(end)));
        assert_eq!(events.pop(Instant::NEVER), first);
        assert_eq!(events.pop(Instant::NEVER), None);
    }
}

#[test]
fn every_target_has_its_own_index() {
    let events = Events::new(0, 3, 2, 2).with_routers(2);
    let ends = (0..6).map(EndId::from_index).map(Target::End);
    let targets = ends
        .chain((0..3).map(Target::App))
        .chain([Target::Sampling])
        .chain((0..2).map(Target::Trace))
        .chain((0..2).map(Target::Proxy))
        .chain((0..2).map(Target::Router));
    let mut indices: Vec<_> = targets
        .map(|target| {
            let index = events.index_of(target);
            assert_eq!(events.target_of(index as u32), target);
            index
        })
        .collect();
    indices.sort_unstable();
    assert_eq!(indices, (0..16).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn the_queue_for_few_links_agrees_with_the_heap(
        links in 1_usize..6,
        steps in prop::collection::vec((0_u32..8, 0_u64..50, any::<bool>()), 1..200),
    ) {
        let events = || Events::new(links, 8, 0, 0);
        let mut queues = [events().with_monotonic_links(), events()];
        let mut pending = vec![false; links];
        for (number, nanos, pops) in steps {
            let at = Instant::from_nanos(nanos);
            let target = match pending.get_mut(number as usize) {
                Some(true) => continue,
                Some(pending) => {
                    *pending = true;
                    Target::Link(number)
                }
                None => Target::End(EndId::from_index(number)),
            };
            let popped = queues.each_mut().map(|events| {
                events.schedule(target, at);
                if pops { events.pop(Instant::from_nanos(40)) } else { None }
            });
            if let Some((_, Target::Link(link))) = popped[0] {
                pending[link as usize] = false;
            }
            prop_assert_eq!(popped[0], popped[1]);
            prop_assert_eq!(queues[0].entries(), queues[1].entries());
        }
    }

    #[test]
    fn events_are_popped_in_order(times in prop::collection::vec(0_u64..1000, 1..300)) {
        let mut events = Events::new(times.len(), 0, 0, 0);
        for (index, &nanos) in times.iter().enumerate() {
            events.schedule(Target::Link(index as u32), Instant::from_nanos(nanos));
        }
        let mut expected: Vec<_> = times.iter().copied().zip(0_u32..).collect();
        expected.sort_unstable();
        let got: Vec<_> = std::iter::from_fn(|| events.pop(Instant::NEVER))
            .map(|(at, target)| match target {
                Target::Link(index) => (at.as_nanos(), index),
                other => panic!("unexpected {other:?}"),
            })
            .collect();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn the_queue_agrees_with_a_binary_heap(
        steps in prop::collection::vec((0_u32..12, 0_u64..40, 0_u32..40, 0_usize..4), 1..300),
    ) {
        let (mut events, mut specification) =
            (Events::new(3, 2, 1, 1), Specification::default());
        let mut now = Instant::ZERO;
        for (number, units, bits, pops) in steps {
            let target = match number {
                link @ 0..3 => Target::Link(link),
                end @ 3..7 => Target::End(EndId::from_index(end - 3)),
                app @ 7..9 => Target::App(app - 7),
                9 => Target::Sampling,
                10 => Target::Trace(0),
                _ => Target::Proxy(0),
            };
            let at = now + Duration::from_nanos(units << bits);
            events.schedule(target, at);
            specification.schedule((number, number < 3), at);
            for _ in 0..pops {
                let end = now + Duration::from_nanos(20 << bits);
                let expected = specification.pop(end);
                let popped = events.pop(end);
                prop_assert_eq!(popped.map(|event| event.0), expected.map(|event| event.0));
                let numbers = popped.map(|(_, target)| match target {
                    Target::Link(link) => link,
                    Target::End(end) => 3 + end.index(),
                    Target::App(app) => 7 + app,
                    Target::Sampling => 9,
                    Target::Trace(_) => 10,
                    Target::Proxy(_) => 11,
                    Target::Router(_) => unreachable!("the queue has no routers"),
                });
                prop_assert_eq!(numbers, expected.map(|event| event.1));
                now = now.max(popped.map_or(Instant::ZERO, |event| event.0));
            }
        }
    }
}
