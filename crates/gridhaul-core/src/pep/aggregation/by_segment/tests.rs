//! What holds for a collector under every schedule.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Bytes, Duration};
use proptest::prelude::*;

use super::super::window_share;
use super::*;

#[derive(Debug, Clone)]
enum Step {
    /// A member sends a segment of so many bytes, so far behind what the collector has of it.
    Segment { member: usize, gap: u64, len: u64 },
    /// The upstream connection sends so many bytes more, if it has them.
    Send(u64),
    /// Its far end acknowledges so many bytes more of what was sent.
    Acknowledge(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let segment = (0..4_usize, prop_oneof![3 => Just(0), 1 => 1..400_u64], 1..400_u64)
        .prop_map(|(member, gap, len)| Step::Segment { member, gap, len });
    let step = prop_oneof![
        4 => segment,
        1 => (1..600_u64).prop_map(Step::Send),
        1 => (1..600_u64).prop_map(Step::Acknowledge),
    ];
    prop::collection::vec(step, 0..200)
}

fn limits() -> impl Strategy<Value = BufferLimit> {
    prop_oneof![
        (1..12_u32).prop_map(BufferLimit::Messages),
        (300..3_000_u64).prop_map(|bytes| BufferLimit::Bytes(Bytes::new(bytes))),
    ]
}

fn messages() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(1..300_u64, 0..12), 4)
}

/// A collector with its members and its upstream connection, and an account of its own.
struct Bench {
    now: Instant,
    machine: SegmentAggregator,
    limit: BufferLimit,
    members: Vec<Member>,
    /// Members and sizes in the order in which their messages became whole.
    whole: VecDeque<(usize, u64)>,
    sent: u64,
    acknowledged: u64,
}

/// A member's stream.
struct Member {
    sizes: Vec<u64>,
    ends: Vec<u64>,
    /// Bytes that the collector has, some beyond gaps.
    has: Vec<bool>,
    next: u64,
    /// Messages that are whole, and those that have left.
    whole: usize,
    gone: usize,
}

impl Member {
    fn new(sizes: Vec<u64>) -> Self {
        let mut end = 0;
        let ends: Vec<u64> = sizes
            .iter()
            .map(|size| {
                end += size;
                end
            })
            .collect();
        Self { sizes, ends, has: vec![false; end as usize], next: 0, whole: 0, gone: 0 }
    }
}

impl Bench {
    fn new(limit: BufferLimit, sizes: Vec<Vec<u64>>) -> Self {
        Self {
            now: Instant::ZERO,
            machine: SegmentAggregator::new(limit, 1),
            limit,
            members: sizes.into_iter().map(Member::new).collect(),
            whole: VecDeque::new(),
            sent: 0,
            acknowledged: 0,
        }
    }

    /// Returns whether the segment was taken in.
    fn segment(&mut self, index: usize, from: u64, until: u64) -> bool {
        let member = &mut self.members[index];
        let until = until.min(member.has.len() as u64);
        if from >= until {
            return true;
        }
        let ends = member.ends[member.whole..].iter().copied();
        let wanted = until;
        let until = self.machine.admit(self.now, (index as u32, 0), from..until, member.next, ends);
        assert!(until <= wanted);
        if until <= from {
            return false;
        }
        member.has[from as usize..until as usize].fill(true);
        while member.has.get(member.next as usize) == Some(&true) {
            member.next += 1;
        }
        while member.ends.get(member.whole).is_some_and(|&end| end <= member.next) {
            let (size, end) = (member.sizes[member.whole], member.ends[member.whole]);
            member.whole += 1;
            assert_eq!(self.machine.handle_message(self.now, (index as u32, 0), end), size);
            self.whole.push_back((index, size));
        }
        until == wanted
    }

    fn send(&mut self, bytes: u64) {
        self.sent = (self.sent + bytes).min(self.machine.written(0));
        while let Some(departed) = self.machine.poll_departed(self.now, 0, self.sent) {
            let (index, size) = self.whole.pop_front().expect("nothing leaves that is not whole");
            assert_eq!(
                (departed.connection as usize, departed.bytes),
                (index, size),
                "order, size"
            );
            let member = &mut self.members[index];
            assert_eq!(member.sizes[member.gone], size, "a member's messages keep their order");
            member.gone += 1;
        }
    }

    fn step(&mut self, step: &Step) {
        self.now += Duration::from_nanos(1);
        match *step {
            Step::Segment { member, gap, len } => {
                let from = self.members[member].next + gap;
                self.segment(member, from, from + len);
            }
            Step::Send(bytes) => self.send(bytes),
            Step::Acknowledge(bytes) => {
                self.acknowledged = (self.acknowledged + bytes).min(self.sent);
                self.machine.handle_acknowledged(self.now, 0, self.acknowledged);
            }
        }
        self.check();
    }

    fn check(&self) {
        let (messages, bytes) = self.machine.occupied();
        match self.limit {
            BufferLimit::Messages(limit) => assert!(messages <= u64::from(limit)),
            BufferLimit::Bytes(limit) => assert!(bytes <= limit.get()),
        }
        let taken: u64 = self.members.iter().map(|member| member.next).sum();
        let left: u64 = self
            .members
            .iter()
            .map(|member| member.gone.checked_sub(1).map_or(0, |last| member.ends[last]))
            .sum();
        assert!(taken - left <= bytes, "what is here has room: {} of {bytes}", taken - left);
        assert!(messages >= self.whole.len() as u64);
        assert_eq!(self.machine.waiting(0).value(), messages);
        let bytes_at_risk = self.machine.bytes_at_risk(0).value();
        assert_eq!(bytes_at_risk, self.machine.written(0) - self.acknowledged);
    }

    /// Members repeat what is missing, in segments of 100 bytes, and upstream sends everything.
    /// Every round must get on.
    fn drain(&mut self) {
        loop {
            let before: u64 = self.members.iter().map(|member| member.next).sum();
            self.send(u64::MAX / 2);
            for index in 0..self.members.len() {
                let from = self.members[index].next;
                self.segment(index, from, from + 100);
                self.check();
            }
            let after: u64 = self.members.iter().map(|member| member.next).sum();
            if self.members.iter().all(|member| member.next == member.has.len() as u64) {
                self.send(u64::MAX / 2);
                break;
            }
            assert!(after > before, "a round that takes nothing in will be followed by its like");
        }
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_doubled_torn_or_stuck(
        limit in limits(),
        sizes in messages(),
        steps in steps(),
    ) {
        let mut bench = Bench::new(limit, sizes);
        for step in &steps {
            bench.step(step);
        }
        bench.drain();
        for member in &bench.members {
            prop_assert_eq!(member.gone, member.sizes.len());
        }
        prop_assert_eq!(bench.machine.occupied(), (0, 0));
        prop_assert!(bench.machine.begun.is_empty());
    }

    /// The null case: with room for all, a collector of one member refuses nothing.
    #[test]
    fn without_a_limit_everything_is_taken_in(
        sizes in prop::collection::vec(1..300_u64, 0..30),
        steps in steps(),
    ) {
        let mut bench = Bench::new(BufferLimit::Messages(u32::MAX), vec![sizes]);
        for step in steps {
            if let Step::Segment { gap, len, .. } = step {
                let from = bench.members[0].next + gap;
                prop_assert!(bench.segment(0, from, from + len));
            } else {
                bench.step(&step);
            }
        }
    }

    /// Members that keep to their share are never refused, as long as there is a message for each.
    #[test]
    fn shares_are_promises_that_can_be_kept(
        limit in limits(),
        members in 1..5_usize,
        size in 1..200_u64,
        order in prop::collection::vec((0..4_usize, any::<bool>()), 0..200),
    ) {
        let share = window_share(limit, members as u64, (size, size));
        let enough = match limit {
            BufferLimit::Messages(limit) => u64::from(limit) >= members as u64,
            BufferLimit::Bytes(limit) => limit.get() >= size * members as u64,
        };
        prop_assume!(enough);
        let mut bench = Bench::new(limit, vec![vec![size; 20]; members]);
        for (index, send) in order {
            let index = index % members;
            let member = &bench.members[index];
            let edge = member.gone as u64 * size + share;
            let (from, until) = (member.next, edge.min(member.next + size / 2 + 1));
            prop_assert!(bench.segment(index, from, until));
            if send {
                bench.send(size);
            }
        }
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[test]
fn a_begun_message_has_room_until_its_end() {
    // Room for two messages. Both are begun by the first byte that arrives; a third must wait,
    // although hardly a byte is here.
    let mut machine = SegmentAggregator::new(BufferLimit::Messages(2), 1);
    assert_eq!(machine.admit(at(0), (0, 0), 0..1, 0, [500]), 1);
    assert_eq!(machine.admit(at(0), (1, 0), 0..1, 0, [500]), 1);
    assert_eq!(machine.admit(at(0), (2, 0), 0..1, 0, [500]), 0);
    assert_eq!(machine.admit(at(0), (1, 0), 1..500, 1, [500]), 500);
    machine.handle_message(at(5), (1, 0), 500);
    assert_eq!(machine.admit(at(5), (2, 0), 0..1, 0, [500]), 0, "it leaves when it is sent");
    assert_eq!(machine.poll_departed(at(7), 0, 499), None);
    let departed = machine.poll_departed(at(9), 0, 500).unwrap();
    assert_eq!(departed, Departed { connection: 1, bytes: 500, waited: Duration::from_nanos(4) });
    assert_eq!(machine.admit(at(9), (2, 0), 0..1, 0, [500]), 1);
    // Two from 0 to 9 ns, then two again.
    assert_eq!(machine.waiting(0).integral_at(at(10)), 20);
    machine.handle_connection_failed(at(10), 0);
    assert_eq!(machine.occupied(), (1, 500));
}

#[test]
fn data_beyond_a_gap_reserves_the_gap() {
    // The third message arrives first: there is room for it only with the two before it.
    let ends = [100, 200, 300];
    let mut machine = SegmentAggregator::new(BufferLimit::Messages(2), 1);
    assert_eq!(machine.admit(at(0), (0, 0), 200..300, 0, ends), 0);
    assert_eq!(machine.occupied(), (0, 0));
    assert_eq!(machine.admit(at(0), (0, 0), 100..200, 0, ends), 200);
    assert_eq!(machine.admit(at(0), (1, 0), 0..10, 0, [10]), 0);
    assert_eq!(machine.admit(at(0), (0, 0), 0..100, 0, ends), 100);
}

#[test]
fn a_segment_is_cut_where_the_room_ends() {
    // Five messages in one segment, room for two: refused whole it would never get through.
    let mut machine = SegmentAggregator::new(BufferLimit::Bytes(Bytes::new(29)), 1);
    assert_eq!(machine.admit(at(0), (0, 0), 0..50, 0, [10, 20, 30, 40, 50]), 20);
    assert_eq!(machine.occupied(), (2, 20));
}

#[test]
fn outlets_share_the_room_and_keep_their_own_order() {
    let mut machine = SegmentAggregator::new(BufferLimit::Bytes(Bytes::new(300)), 2);
    for (member, outlet) in [(0, 0), (1, 1), (2, 0)] {
        assert_eq!(machine.admit(at(0), (member, outlet), 0..100, 0, [100]), 100);
        machine.handle_message(at(0), (member, outlet), 100);
    }
    assert_eq!(machine.admit(at(0), (3, 1), 0..100, 0, [100]), 0);
    assert_eq!((machine.written(0), machine.written(1)), (200, 100));
    assert_eq!(machine.poll_departed(at(0), 0, 200).unwrap().connection, 0);
    assert_eq!(machine.poll_departed(at(0), 0, 200).unwrap().connection, 2);
    assert_eq!(machine.poll_departed(at(0), 0, 200), None);
    assert_eq!((machine.waiting(0).value(), machine.waiting(1).value()), (0, 1));
}
