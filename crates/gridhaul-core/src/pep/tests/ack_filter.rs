//! `ack` by example, with arbitrary acknowledgements, and over a low-rate uplink.

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

const MAX_ACK_DELAY: Duration = Duration::from_millis(100);

fn ack(ack: u32) -> Segment {
    Segment { ack, window: 5000, flags: Flags::ACK, header: 52, ..Segment::default() }
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Passes segments from the server at these times; returns the segments to the client with their
/// times.
pub(super) fn filtered(
    max_ack_delay: Duration,
    incoming: &[(Instant, Segment)],
) -> Vec<(Instant, Segment)> {
    filtered_after(max_ack_delay, &[], incoming)
}

/// The same after these segments from the client.
pub(super) fn filtered_after(
    max_ack_delay: Duration,
    data: &[(Instant, Segment)],
    incoming: &[(Instant, Segment)],
) -> Vec<(Instant, Segment)> {
    let mut filter = AckFilter::new(Side::Client, max_ack_delay);
    for (at, segment) in data {
        filter.handle_segment(*at, Side::Client, segment);
        let forwarded = filter.poll_transmit(*at).expect("data is forwarded at once");
        assert_eq!((forwarded.to, forwarded.segment), (Side::Server, *segment));
    }
    let mut forwarded = Vec::new();
    let mut poll = |filter: &mut AckFilter, now| {
        while let Some(out) = filter.poll_transmit(now) {
            assert_eq!(out.to, Side::Client);
            forwarded.push((now, out.segment));
        }
    };
    let end = (Instant::NEVER, Segment::default());
    for (at, segment) in incoming.iter().chain([&end]) {
        while filter.next_deadline() < *at {
            let now = filter.next_deadline();
            filter.handle_timeout(now);
            poll(&mut filter, now);
        }
        if *at != Instant::NEVER {
            filter.handle_segment(*at, Side::Server, segment);
            poll(&mut filter, *at);
        }
    }
    forwarded
}

/// Acknowledgement numbers that are forwarded, with the time in milliseconds.
fn numbers(incoming: &[(u64, Segment)]) -> Vec<(u64, u32)> {
    let incoming: Vec<_> = incoming.iter().map(|&(at, segment)| (ms(at), segment)).collect();
    let forwarded = filtered(MAX_ACK_DELAY, &incoming);
    forwarded.iter().map(|(at, segment)| (at.as_nanos() / 1_000_000, segment.ack)).collect()
}

#[test]
fn the_newest_acknowledgement_is_sent_after_the_delay() {
    let incoming =
        [(0, ack(1)), (10, ack(2)), (20, ack(3)), (99, ack(4)), (150, ack(5)), (250, ack(6))];
    assert_eq!(numbers(&incoming), [(0, 1), (100, 4), (200, 5), (300, 6)]);
    // After a pause, an acknowledgement is forwarded at once.
    assert_eq!(numbers(&[(0, ack(1)), (500, ack(2))]), [(0, 1), (500, 2)]);
}

#[test]
fn other_segments_are_forwarded_at_once_and_in_order() {
    let sack = |number| {
        let mut segment = ack(number);
        segment.sack.push(900, 1000);
        segment
    };
    let duplicate = [(0, ack(1)), (10, ack(2)), (20, ack(2)), (30, ack(2))];
    assert_eq!(numbers(&duplicate), [(0, 1), (20, 2), (20, 2), (30, 2)]);
    // A segment with SACK blocks that acknowledges more replaces the delayed one.
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, sack(3))]), [(0, 1), (20, 3)]);
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, sack(2))]), [(0, 1), (20, 2), (20, 2)]);
    let data = Segment { len: 10, ..ack(2) };
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, data)]), [(0, 1), (20, 2)]);
    let fin = Segment { flags: Flags::ACK.with(Flags::FIN), ..ack(3) };
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, fin)]), [(0, 1), (20, 2), (20, 3)]);
    // Windows that shrink, close, or reopen.
    let window = |number, window| Segment { window, ..ack(number) };
    let shrinks = [(0, ack(1)), (10, ack(2)), (20, window(3, 4000))];
    assert_eq!(numbers(&shrinks), [(0, 1), (20, 2), (20, 3)]);
    let closes = [(0, window(1, 10)), (10, window(11, 0)), (20, window(11, 9)), (30, ack(12))];
    assert_eq!(numbers(&closes), [(0, 1), (10, 11), (20, 11), (120, 12)]);
    let reopens = [(0, window(1, 10)), (10, window(11, 0)), (20, ack(12))];
    assert_eq!(numbers(&reopens), [(0, 1), (10, 11), (20, 12)]);
}

/// RFC 6675, section 2: with SACK, data may be a duplicate acknowledgement as well, but only for a
/// sender that has received the acknowledgement before it.
#[test]
fn data_with_a_selective_acknowledgement_does_not_replace_an_acknowledgement_of_its_number() {
    let mut data = Segment { len: 10, ..ack(2) };
    data.sack.push(900, 1000);
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, data)]), [(0, 1), (20, 2), (20, 2)]);
    let more = Segment { ack: 3, ..data };
    assert_eq!(numbers(&[(0, ack(1)), (10, ack(2)), (20, more)]), [(0, 1), (20, 3)]);
}

/// A sender that has received the data drops a retransmission, and its acknowledgement (RFC 9293,
/// section 3.10.7.4, first check).
#[test]
fn a_retransmission_does_not_replace_an_acknowledgement() {
    let at = |seq, number| Segment { seq, ..ack(number) };
    let data = |seq, number| Segment { len: 10, ..at(seq, number) };
    let acknowledgements = [(0, at(10, 1)), (10, at(10, 2))];
    let with = |last| [acknowledgements[0], acknowledgements[1], (20, last)];
    assert_eq!(numbers(&with(data(10, 2))), [(0, 1), (20, 2)]);
    assert_eq!(numbers(&with(data(0, 2))), [(0, 1), (20, 2), (20, 2)]);
    assert_eq!(numbers(&with(data(0, 3))), [(0, 1), (20, 2), (20, 3)]);
    assert_eq!(numbers(&with(at(0, 3))), [(0, 1), (20, 2), (20, 3)]);
}

/// Each acknowledgement counts in the loss recovery of the sender: partial ones (RFC 6582), the
/// number and the timestamp of the first ones (RFC 5682, RFC 3522).
#[test]
fn after_a_retransmission_everything_is_forwarded_until_all_data_is_acknowledged() {
    let data = |seq| (ms(0), Segment { seq, len: 10, flags: Flags::ACK, ..Segment::default() });
    let incoming: Vec<_> = (1..8_u32).map(|i| (ms(u64::from(i)), ack(10 * i))).collect();
    let after = |data: &[(Instant, Segment)]| {
        let forwarded = filtered_after(MAX_ACK_DELAY, data, &incoming);
        forwarded.into_iter().map(|(_, segment)| segment.ack).collect::<Vec<_>>()
    };
    let sent = [0, 10, 20, 30, 40].map(data);
    assert_eq!(after(&sent), [10, 70]);
    let retransmitted: Vec<_> = sent.into_iter().chain([data(10)]).collect();
    assert_eq!(after(&retransmitted), [10, 20, 30, 40, 50, 70]);
}

#[test]
fn a_duplicate_after_a_late_acknowledgement_is_forwarded_at_once() {
    assert_eq!(numbers(&[(0, ack(5)), (10, ack(3)), (20, ack(5))]), [(0, 5), (10, 3), (20, 5)]);
}

#[test]
fn a_handshake_with_fast_open_passes_unchanged() {
    // RFC 7413, section 2: SYN with data, and SYN-ACK that acknowledges it.
    let flags = Flags::SYN.with(Flags::ACK);
    let syn_ack = Segment { seq: 77, flags, sack_permitted: true, header: 60, ..ack(201) };
    let data = Segment { seq: 78, len: 10, flags: Flags::ACK, ..syn_ack };
    let acknowledgement = Segment { len: 0, seq: 88, ..data };
    let later = Segment { ack: 301, ..acknowledgement };
    let incoming = [(ms(0), syn_ack), (ms(1), data), (ms(2), acknowledgement), (ms(3), later)];
    let through = filtered(Duration::from_millis(50), &incoming);
    assert_eq!(through[..3], incoming[..3], "SYN-ACK, data, and the duplicate after it");
    assert_eq!(through[3..], [(ms(52), later)], "acknowledgements are filtered from then on");
}

#[test]
fn without_a_delay_everything_is_forwarded_at_once() {
    let incoming: Vec<_> = (0..5).map(|i| (ms(0), ack(i))).collect();
    assert_eq!(filtered(Duration::default(), &incoming), incoming);
}

#[test]
fn the_delayed_acknowledgement_is_sent_at_once_when_the_delay_is_switched_off() {
    let mut filter = AckFilter::new(Side::Client, MAX_ACK_DELAY);
    filter.handle_segment(ms(0), Side::Server, &ack(1));
    filter.handle_segment(ms(10), Side::Server, &ack(2));
    assert_eq!(filter.next_deadline(), ms(100));
    filter.set_max_ack_delay(ms(20), Duration::ZERO);
    filter.handle_segment(ms(30), Side::Server, &ack(3));
    let forwarded = std::iter::from_fn(|| filter.poll_transmit(ms(30)));
    assert_eq!(forwarded.map(|out| out.segment.ack).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(filter.next_deadline(), Instant::NEVER);
}

/// The numbers of one connection state nothing about those of the next one.
#[test]
fn the_first_acknowledgement_after_syn_or_rst_of_either_host_is_forwarded_at_once() {
    for (from, flags) in [
        (Side::Client, Flags::SYN),
        (Side::Client, Flags::RST),
        (Side::Server, Flags::SYN.with(Flags::ACK)),
        (Side::Server, Flags::RST),
    ] {
        let mut filter = AckFilter::new(Side::Client, MAX_ACK_DELAY);
        filter.handle_segment(ms(0), Side::Server, &ack(1));
        filter.handle_segment(ms(10), from, &Segment { flags, ..Segment::default() });
        filter.handle_segment(ms(20), Side::Server, &ack(2));
        let forwarded = std::iter::from_fn(|| filter.poll_transmit(ms(20)));
        assert_eq!(forwarded.count(), 3, "{from:?} {flags:?}");
        assert_eq!(filter.next_deadline(), Instant::NEVER);
    }
}

#[test]
fn a_filter_is_finished_once_nothing_waits_in_it() {
    let mut filter = AckFilter::new(Side::Client, MAX_ACK_DELAY);
    assert!(filter.is_finished());
    filter.handle_segment(ms(0), Side::Server, &ack(1));
    assert!(!filter.is_finished(), "a segment waits to be polled");
    filter.poll_transmit(ms(0));
    assert!(filter.is_finished());
    filter.handle_segment(ms(10), Side::Server, &ack(2));
    assert_eq!(filter.poll_transmit(ms(10)), None);
    assert!(!filter.is_finished(), "an acknowledgement is delayed");
    filter.drain(ms(20));
    assert!(!filter.is_finished());
    filter.poll_transmit(ms(20));
    assert!(filter.is_finished());
}

/// Information that a sender has received.
#[derive(Debug, Default, PartialEq)]
struct SenderView {
    /// Highest acknowledgement number, and the number of its duplicates (RFC 5681, section 2).
    ack: u32,
    duplicates: u32,
    blocks: BTreeSet<(u32, u32)>,
    edge: u32,
    payload: u32,
    fins: u32,
    last: Option<Segment>,
}

impl SenderView {
    fn of(segments: &[(Instant, Segment)], until: Instant) -> Self {
        let mut known = Self::default();
        for (_, segment) in segments.iter().filter(|(at, _)| *at <= until) {
            known.receive(segment);
        }
        known
    }

    fn receive(&mut self, segment: &Segment) {
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

/// Acknowledgements of a receiver with gaps, its own data and a changing window, sometimes
/// reordered.
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
    fn a_sender_receives_all_information_within_the_delay(
        incoming in acknowledgements(),
        max_ack_delay in (0..300_u64).prop_map(Duration::from_millis),
    ) {
        let forwarded = filtered(max_ack_delay, &incoming);
        for &(at, _) in &incoming {
            let before = SenderView::of(&incoming, at);
            let after = SenderView::of(&forwarded, at + max_ack_delay);
            prop_assert!(before.is_covered_by(&after), "at {at:?}: \
                                                        {before:?}\n{after:?}\n{forwarded:?}");
        }
        // Forwarded segments are a subsequence of the incoming ones.
        let mut rest = incoming.iter();
        for (_, segment) in &forwarded {
            prop_assert!(rest.any(|(_, incoming)| incoming == segment));
        }
        prop_assert_eq!(forwarded.last().map(|last| last.1), incoming.last().map(|last| last.1));
    }

    #[test]
    fn streams_arrive_through_any_number_of_filters(
        impairments in schedules(150),
        towards in prop::collection::vec(prop_oneof![Just(Side::Client), Just(Side::Server)], 1..4),
        sizes in [0..6_000_u64, 0..6_000_u64],
        max_ack_delay in (0..200_u64).prop_map(Duration::from_millis),
        handshake: bool,
    ) {
        let applications =
            [Application::new(sizes[0], Close::AtOnce), Application::new(sizes[1],
                Close::AfterPeer)];
        let proxies = towards.iter().map(|&toward| {
            Box::new(AckFilter::new(toward, max_ack_delay)) as Box<dyn Proxy>
        }).collect();
        let params = stack(100, 1_500);
        let mut chain = if handshake {
            Chain::opening(&params, applications, proxies, 0, impairments)
        } else {
            Chain::established(&params, applications, proxies, 0, impairments)
        };
        chain.run_to_completion();
    }

    #[test]
    fn malformed_segments_are_not_multiplied(steps in segments(200)) {
        let mut filter = AckFilter::new(Side::Client, MAX_ACK_DELAY);
        let (mut now, mut incoming, mut forwarded) = (Instant::ZERO, 0, 0);
        for (wait, from, segment) in steps {
            now += wait;
            if filter.next_deadline() <= now {
                filter.handle_timeout(now);
                prop_assert_eq!(filter.next_deadline(), Instant::NEVER);
            }
            filter.handle_segment(now, from, &segment);
            incoming += 1;
            while filter.poll_transmit(now).is_some() {
                forwarded += 1;
            }
            prop_assert!(forwarded <= incoming && filter.next_deadline().max(now) >= now);
        }
    }
}

/// A transfer over a downlink of 2 Mbit/s and an uplink of 4.8 kbit/s, whose queue has space for
/// twenty acknowledgements, with a one-way delay of 20 ms.
fn over_a_low_rate_uplink(params: &Arc<StackParams>, proxy: impl Proxy + 'static) -> Outcome {
    let low_rate = BitRate::from_bits_per_sec(4_800);
    let hop = |rate| Hop::new(rate, Duration::from_millis(10));
    let high_rate = || hop(BitRate::from_bits_per_sec(2_000_000));
    let up = hop(low_rate).with_queue(low_rate, 20 * 52);
    let hops = [high_rate(), high_rate(), high_rate(), up];
    TwoHops::new(params, Box::new(proxy), hops).run(ms(60_000), |_| {})
}

#[test]
fn the_filter_raises_the_throughput_over_a_low_rate_uplink() {
    let stack = Stack {
        profile: Profile::Linux,
        receive_window: Some(WindowSize::Bytes(Bytes::new(64_000))),
        ..Stack::default()
    };
    let params = Arc::new(StackParams::resolve(&stack));
    let pass_through = over_a_low_rate_uplink(&params, PassThrough::default());
    let filter = over_a_low_rate_uplink(&params, AckFilter::new(Side::Client, MAX_ACK_DELAY));
    println!("pass-through {pass_through:?} filter {filter:?}");
    assert!(filter.delivered > 2 * pass_through.delivered, "{pass_through:?}\n{filter:?}");
    assert_eq!((filter.stats.retransmissions, filter.stats.timeouts), (0, 0), "{filter:?}");
}
