//! `ack` by small tables, under arbitrary acknowledgements, and over a narrow uplink.

use std::collections::BTreeSet;
use std::sync::Arc;

use gridhaul_scenario::scenario::{Profile, Stack};
use gridhaul_scenario::units::{BitRate, Bytes, Duration, Instant, WindowSize};
use proptest::prelude::*;

use super::chain::Chain;
use super::hop::schedules;
use super::host::{Application, Close};
use super::malformed_segments::segments;
use super::stack;
use super::two_hops::{Hop, Outcome, TwoHops};
use crate::pep::{AckFilter, PassThrough, Proxy, Side};
use crate::tcp::{Flags, SackBlocks, Segment, StackParams};

const HOLD: Duration = Duration::from_millis(100);

fn ack(ack: u32) -> Segment {
    Segment { ack, window: 5000, flags: Flags::ACK, header: 52, ..Segment::default() }
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Feeds segments from the right at these times; returns what goes to the left, and when.
fn thinned(hold: Duration, fed: &[(Instant, Segment)]) -> Vec<(Instant, Segment)> {
    let mut thin = AckFilter::new(Side::Client, hold);
    let mut gone = Vec::new();
    let mut collect = |thin: &mut AckFilter, now| {
        while let Some(out) = thin.poll_transmit(now) {
            assert_eq!(out.to, Side::Client);
            gone.push((now, out.segment));
        }
    };
    let end = (Instant::NEVER, Segment::default());
    for (at, segment) in fed.iter().chain([&end]) {
        while thin.next_deadline() < *at {
            let now = thin.next_deadline();
            thin.handle_timeout(now);
            collect(&mut thin, now);
        }
        if *at != Instant::NEVER {
            thin.handle_segment(*at, Side::Server, segment);
            collect(&mut thin, *at);
        }
    }
    gone
}

/// The numbers that go, with the millisecond.
fn numbers(fed: &[(u64, Segment)]) -> Vec<(u64, u32)> {
    let fed: Vec<_> = fed.iter().map(|&(at, segment)| (ms(at), segment)).collect();
    let gone = thinned(HOLD, &fed);
    gone.iter().map(|(at, segment)| (at.as_nanos() / 1_000_000, segment.ack)).collect()
}

#[test]
fn the_newest_goes_when_its_time_has_come() {
    let fed = [(0, ack(1)), (10, ack(2)), (20, ack(3)), (99, ack(4)), (150, ack(5)), (250, ack(6))];
    assert_eq!(numbers(&fed), [(0, 1), (100, 4), (200, 5), (300, 6)]);
    // After a pause, at once.
    assert_eq!(numbers(&[(0, ack(1)), (500, ack(2))]), [(0, 1), (500, 2)]);
}

#[test]
fn what_must_not_be_lost_goes_at_once_and_overtakes_nothing() {
    let sack = |number| {
        let mut segment = ack(number);
        segment.sack.push(900, 1000);
        segment
    };
    let duplicate = [(0, ack(1)), (10, ack(2)), (20, ack(2)), (30, ack(2))];
    assert_eq!(numbers(&duplicate), [(0, 1), (20, 2), (20, 2), (30, 2)]);
    // One with news of its own that acknowledges more replaces what waits.
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, sack(3))]), [(0, 1), (20, 3)]);
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, sack(2))]), [(0, 1), (20, 2), (20, 2)]);
    let data = Segment { len: 10, ..ack(2) };
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, data)]), [(0, 1), (20, 2)]);
    let fin = Segment { flags: Flags::ACK.with(Flags::FIN), ..ack(3) };
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, fin)]), [(0, 1), (20, 2), (20, 3)]);
    // Windows: one that shrinks, closes, opens again.
    let window = |number, window| Segment { window, ..ack(number) };
    let shrinks = [(0, ack(1)), (10, ack(2)), (20, window(3, 4000))];
    assert_eq!(numbers(&shrinks), [(0, 1), (20, 2), (20, 3)]);
    let closes = [(0, window(1, 10)), (10, window(11, 0)), (20, window(11, 9)), (30, ack(12))];
    assert_eq!(numbers(&closes), [(0, 1), (10, 11), (20, 11), (120, 12)]);
}

#[test]
fn without_a_time_to_hold_everything_goes_at_once() {
    let fed: Vec<_> = (0..5).map(|i| (ms(0), ack(i))).collect();
    assert_eq!(thinned(Duration::default(), &fed), fed);
}

/// What a sender has heard.
#[derive(Debug, Default, PartialEq)]
struct Knowledge {
    /// Highest number, and how many duplicates of it (RFC 5681, section 2).
    ack: u32,
    duplicates: u32,
    blocks: BTreeSet<(u32, u32)>,
    edge: u32,
    payload: u32,
    fins: u32,
    last: Option<Segment>,
}

impl Knowledge {
    fn of(segments: &[(Instant, Segment)], until: Instant) -> Self {
        let mut known = Self::default();
        for (_, segment) in segments.iter().filter(|(at, _)| *at <= until) {
            known.hear(segment);
        }
        known
    }

    fn hear(&mut self, segment: &Segment) {
        let window = self.last.map(|last| last.window);
        if segment.ack > self.ack {
            (self.ack, self.duplicates) = (segment.ack, 0);
        } else if segment.ack == self.ack && segment.len == 0 && window == Some(segment.window) {
            self.duplicates += 1;
        }
        self.blocks.extend(segment.sack.as_slice());
        self.edge = self.edge.max(segment.ack + segment.window);
        self.payload += segment.len;
        self.fins += u32::from(segment.flags.has(Flags::FIN));
        self.last = Some(*segment);
    }

    fn is_covered_by(&self, other: &Self) -> bool {
        let more = other.ack > self.ack;
        (more || other.ack == self.ack && other.duplicates >= self.duplicates)
            && other.blocks.is_superset(&self.blocks)
            && other.edge >= self.edge
            && other.payload >= self.payload
            && other.fins >= self.fins
    }
}

/// Acknowledgements as a receiver with gaps, data of its own and a moving window sends them,
/// sometimes in another order.
fn acknowledgements() -> impl Strategy<Value = Vec<(Instant, Segment)>> {
    let step = (0..60_u64, 0..4_u32, 0..6_u8, 0..4_u32, 0..8_u8);
    prop::collection::vec(step, 1..60).prop_map(|steps| {
        let (mut at, mut number) = (Instant::ZERO, 1);
        let segment = |(wait, more, kind, window, late)| {
            at += Duration::from_millis(wait);
            number += more;
            let mut sack = SackBlocks::default();
            if kind == 0 {
                sack.push(number + 10, number + 20);
            }
            let len = if kind == 1 { 5 } else { 0 };
            let fin = if kind == 2 && late == 0 { Flags::FIN } else { Flags::NONE };
            let number = if late == 1 { number.saturating_sub(3).max(1) } else { number };
            let window = if window == 0 { 1000 - number } else { 1000 * (window - 1) };
            (at, Segment { sack, len, window, flags: Flags::ACK.with(fin), ..ack(number) })
        };
        steps.into_iter().map(segment).collect()
    })
}

proptest! {
    #[test]
    fn a_sender_knows_all_within_the_time_to_hold(
        fed in acknowledgements(),
        hold in (0..300_u64).prop_map(Duration::from_millis),
    ) {
        let gone = thinned(hold, &fed);
        for &(at, _) in &fed {
            let before = Knowledge::of(&fed, at);
            let after = Knowledge::of(&gone, at + hold);
            prop_assert!(before.is_covered_by(&after), "at {at:?}: {before:?}\n{after:?}\n{gone:?}");
        }
        // In order, and nothing new.
        let mut rest = fed.iter();
        for (_, segment) in &gone {
            prop_assert!(rest.any(|(_, fed)| fed == segment));
        }
        prop_assert_eq!(gone.last().map(|last| last.1), fed.last().map(|last| last.1));
    }

    #[test]
    fn streams_arrive_through_any_number_of_them(
        impairments in schedules(150),
        towards in prop::collection::vec(prop_oneof![Just(Side::Client), Just(Side::Server)], 1..4),
        sizes in [0..6_000_u64, 0..6_000_u64],
        hold in (0..200_u64).prop_map(Duration::from_millis),
        handshake: bool,
    ) {
        let plans = [Application::new(sizes[0], Close::AtOnce), Application::new(sizes[1], Close::AfterPeer)];
        let proxies = towards.iter().map(|&toward| {
            Box::new(AckFilter::new(toward, hold)) as Box<dyn Proxy>
        }).collect();
        let params = stack(100, 1_500);
        let mut chain = if handshake {
            Chain::opening(&params, plans, proxies, 0, impairments)
        } else {
            Chain::established(&params, plans, proxies, 0, impairments)
        };
        chain.run_to_the_end();
    }

    #[test]
    fn garbage_goes_through(steps in segments(200)) {
        let mut thin = AckFilter::new(Side::Client, HOLD);
        let (mut now, mut fed, mut gone) = (Instant::ZERO, 0, 0);
        for (wait, from, segment) in steps {
            now += wait;
            if thin.next_deadline() <= now {
                thin.handle_timeout(now);
                prop_assert_eq!(thin.next_deadline(), Instant::NEVER);
            }
            thin.handle_segment(now, from, &segment);
            fed += 1;
            while thin.poll_transmit(now).is_some() {
                gone += 1;
            }
            prop_assert!(gone <= fed && thin.next_deadline().max(now) >= now);
        }
    }
}

/// 2 Mbit/s down, 4.8 kbit/s up with room for twenty acknowledgements, 20 ms each.
fn over_a_narrow_uplink(params: &Arc<StackParams>, proxy: impl Proxy + 'static) -> Outcome {
    let narrow = BitRate::from_bits_per_sec(4_800);
    let hop = |rate| Hop::new(rate, Duration::from_millis(10));
    let fast = || hop(BitRate::from_bits_per_sec(2_000_000));
    let up = hop(narrow).with_queue(narrow, 20 * 52);
    let hops = [fast(), fast(), fast(), up];
    TwoHops::new(params, Box::new(proxy), hops).run(ms(60_000), |_| {})
}

#[test]
fn a_narrow_uplink_carries_a_fast_downlink() {
    let stack = Stack {
        profile: Profile::Linux,
        receive_window: Some(WindowSize::Bytes(Bytes::new(64_000))),
        ..Stack::default()
    };
    let params = Arc::new(StackParams::resolve(&stack));
    let bare = over_a_narrow_uplink(&params, PassThrough::default());
    let thin = over_a_narrow_uplink(&params, AckFilter::new(Side::Client, HOLD));
    println!("bare {bare:?} thin {thin:?}");
    assert!(thin.delivered > 2 * bare.delivered, "{bare:?}\n{thin:?}");
    assert_eq!((thin.stats.retransmissions, thin.stats.timeouts), (0, 0), "{thin:?}");
}
