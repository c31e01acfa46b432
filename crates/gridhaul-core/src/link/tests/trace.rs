//! Delivery opportunities compared with the procedure of Mahimahi, one opportunity after another.

use std::collections::VecDeque;
use std::sync::Arc;

use gridhaul_scenario::scenario::{Aqm, Codel, Deliveries, LinkStep, LinkSteps, LinkTraceContent};
use proptest::prelude::*;

use super::*;

/// A packet that is offered to a link: time in ms, and size in bytes.
#[derive(Debug, Clone, Copy)]
struct Offered {
    at_ms: u64,
    bytes: u32,
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A direction with a queue of this many packets that follows a trace.
fn following(trace: &LinkTraceContent, queue: u32, aqm: Option<Aqm>) -> LinkDirection<u32> {
    let keys = Direction { aqm, ..one_byte_a_microsecond(3_000, QueueLimit::Packets(queue)) };
    let random = LinkRandomStreams::named(1, 0, "link.forward", 0);
    let mut link = LinkDirection::new(&keys, random);
    link.follow(trace, &keys, random);
    link
}

/// Number and time of each packet at the end of its transmission.
fn deliveries(link: &mut LinkDirection<u32>, packets: &[Offered]) -> Vec<(u32, Instant)> {
    let mut delivered = Vec::new();
    for (number, packet) in (0..).zip(packets) {
        let now = millis(packet.at_ms);
        while let Some(transit) = link.poll_output(now) {
            delivered.push((transit.payload, transit.sent));
        }
        let _ = link.handle_packet(now, packet.bytes, number);
    }
    // The times at which stored packets are taken are deadlines as well.
    while link.next_deadline() != Instant::NEVER {
        let now = link.next_deadline();
        while let Some(transit) = link.poll_output(now) {
            delivered.push((transit.payload, transit.sent));
        }
    }
    delivered
}

/// The procedure of `link_queue.cc`: at each opportunity, in order, packets are taken from the
/// queue until 1504 B are used; a packet has 4 B more than its size. The packet in transit is not
/// in the queue.
#[derive(Default)]
struct Reference {
    queue: VecDeque<(u32, u32)>,
    in_transit: Option<(u32, u32)>,
    next: u64,
    delivered: Vec<(u32, Instant)>,
}

impl Reference {
    fn use_opportunities(&mut self, trace: &Deliveries, until: Instant) {
        while trace.time(self.next) <= until && trace.time(self.next) != Instant::NEVER {
            let at = trace.time(self.next);
            self.next += 1;
            let mut room = 1_504;
            while room > 0 {
                let Some((number, left)) =
                    self.in_transit.take().or_else(|| self.queue.pop_front())
                else {
                    break;
                };
                let sent = room.min(left);
                room -= sent;
                if sent == left {
                    self.delivered.push((number, at));
                } else {
                    self.in_transit = Some((number, left - sent));
                }
            }
        }
    }

    fn deliveries(trace: &Deliveries, limit: u32, packets: &[Offered]) -> Vec<(u32, Instant)> {
        let mut reference = Self::default();
        for (number, packet) in (0..).zip(packets) {
            reference.use_opportunities(trace, millis(packet.at_ms));
            if (reference.queue.len() as u32) < limit {
                reference.queue.push_back((number, packet.bytes + 4));
            }
        }
        reference.use_opportunities(trace, millis(1_000_000));
        reference.delivered
    }
}

fn offered() -> impl Strategy<Value = Vec<Offered>> {
    let packet = (0..400_u64, prop_oneof![Just(1_500_u32), 20..1_500_u32, 1_501..9_000_u32]);
    proptest::collection::vec(packet, 1..120).prop_map(|mut packets| {
        packets.sort_unstable();
        packets.into_iter().map(|(at_ms, bytes)| Offered { at_ms, bytes }).collect()
    })
}

fn trace() -> impl Strategy<Value = Arc<Deliveries>> {
    let lines = proptest::collection::vec(0..60_u32, 1..80);
    (lines, any::<bool>()).prop_filter_map("a trace has a length", |(mut lines, repeat)| {
        lines.sort_unstable();
        Deliveries::new(lines, repeat).map(Arc::new)
    })
}

proptest! {
    #[test]
    fn deliveries_are_those_of_mahimahi(
        trace in trace(),
        packets in offered(),
        limit in 1..40_u32,
    ) {
        let content = LinkTraceContent::Deliveries(Arc::clone(&trace));
        let mut link = following(&content, limit, None);
        let expected = Reference::deliveries(&trace, limit, &packets);
        prop_assert_eq!(deliveries(&mut link, &packets), expected);
    }

    #[test]
    fn a_queue_that_drops_at_dequeue_has_the_same_times(
        trace in trace(),
        packets in offered(),
    ) {
        // With a target that no packet exceeds, CoDel drops nothing.
        let (target, interval) = (Duration::from_secs(1_000), Duration::from_secs(2_000));
        let content = LinkTraceContent::Deliveries(Arc::clone(&trace));
        let codel = Codel { target, interval, ecn: false };
        let mut link = following(&content, 1_000, Some(Aqm::Codel(codel)));
        let expected = Reference::deliveries(&trace, 1_000, &packets);
        prop_assert_eq!(deliveries(&mut link, &packets), expected);
    }
}

#[test]
fn delay_and_loss_follow_the_steps_of_a_trace() {
    let step = |at_ms: u64, kbit: u64, delay_ms: u64, loss: f64| LinkStep {
        at: Duration::from_millis(at_ms),
        rate: BitRate::from_bits_per_sec(kbit * 1_000),
        delay: Duration::from_millis(delay_ms),
        loss: p(loss),
    };
    // 1 B in 1 ms, then nothing for 100 ms, then 1 B in 0.1 ms with loss.
    let steps = vec![step(0, 8, 20, 0.0), step(100, 0, 0, 0.0), step(200, 80, 0, 1.0)];
    let steps = LinkSteps::new(steps, None).expect("valid steps");
    let mut link = following(&LinkTraceContent::Steps(Arc::new(steps)), 100, None);
    for (number, at_ms) in [0, 60, 80, 150].into_iter().enumerate() {
        link.handle_packet(millis(at_ms), 50, number as u32).expect("the queue has space");
    }
    let left: Vec<_> = drain(&mut link)
        .into_iter()
        .map(|transit| (transit.sent, transit.left, transit.outcome.arrives()))
        .collect();
    // The second packet has 40 B before the pause and 10 B after it; the first has a delay of 20 ms
    // in addition to the 3 ms of the direction.
    assert_eq!(
        left,
        [
            (millis(50), millis(73), true),
            (millis(201), millis(204), false),
            (millis(206), millis(209), false),
            (millis(211), millis(214), false),
        ]
    );
}
