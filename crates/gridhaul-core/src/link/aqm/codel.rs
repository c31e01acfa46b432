//! Controlled delay, RFC 8289.

use gridhaul_scenario::units::{Duration, Instant};

use super::fifo::{Fifo, StoredPacket};
use crate::link::LinkPayload;

/// The state of CoDel for one queue. Names follow the pseudocode of RFC 8289, section 5.
#[derive(Debug, Clone)]
pub(super) struct Codel {
    target: Duration,
    interval: Duration,
    /// Whether packets with ECN are marked instead of dropped.
    ecn: bool,
    /// When the queueing delay will have been above the target for an interval, if it is above it.
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Codel {
    pub(super) const fn new(target: Duration, interval: Duration, ecn: bool) -> Self {
        Self {
            target,
            interval,
            ecn,
            first_above_time: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// The packet to transmit at `now`; packets dropped before it are added to `dropped` (RFC 8289,
    /// section 5.5). A packet that is marked instead is transmitted itself, and counts as dropped
    /// for the control law (Linux, `codel_dequeue`).
    pub(super) fn take<P: LinkPayload>(
        &mut self,
        now: Instant,
        queue: &mut Fifo<P>,
        dropped: &mut Vec<StoredPacket<P>>,
    ) -> Option<StoredPacket<P>> {
        let (mut packet, mut ok_to_drop) = self.dequeue(now, queue);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if self.marks(packet.as_mut()) {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                dropped.extend(packet);
                (packet, ok_to_drop) = self.dequeue(now, queue);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok_to_drop {
            if !self.marks(packet.as_mut()) {
                dropped.extend(packet);
                (packet, _) = self.dequeue(now, queue);
            }
            self.dropping = true;
            // A dropping state that ended recently is resumed near its previous drop rate.
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.since(self.drop_next) < self.interval * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        packet
    }

    /// Marks a packet that would be dropped, if it and the queue permit that. Returns whether they
    /// do.
    fn marks<P: LinkPayload>(&self, packet: Option<&mut StoredPacket<P>>) -> bool {
        self.ecn && packet.is_some_and(StoredPacket::mark)
    }

    /// The next packet, and whether it may be dropped: the queueing delay has been above the target
    /// for an interval, and more than one packet of full size remains (RFC 8289, section 5.6).
    fn dequeue<P: LinkPayload>(
        &mut self,
        now: Instant,
        queue: &mut Fifo<P>,
    ) -> (Option<StoredPacket<P>>, bool) {
        let Some(packet) = queue.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        let sojourn_time = now.since(packet.enqueued);
        if sojourn_time < self.target || queue.bytes() <= u64::from(queue.largest()) {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        let since = *self.first_above_time.get_or_insert(now + self.interval);
        (Some(packet), now >= since)
    }

    /// The control law: the next drop follows after interval / √count (RFC 8289, section 3.3).
    fn control_law(&self, at: Instant) -> Instant {
        at + self.interval.mul_f64(1.0 / f64::from(self.count.max(1)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::EcnCodePoint;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    /// A packet with its number and ECN field.
    #[derive(Debug, Clone, Copy)]
    struct Packet(u32, EcnCodePoint);

    impl LinkPayload for Packet {
        fn ecn(&self) -> EcnCodePoint {
            self.1
        }
        fn mark(&mut self) {
            self.1 = EcnCodePoint::Ce;
        }
    }

    /// Packets of 100 B that were offered at these times in ms.
    fn queue_of(ecn: EcnCodePoint, offered: impl IntoIterator<Item = u64>) -> Fifo<Packet> {
        let mut queue = Fifo::new();
        for (number, offered) in (0..).zip(offered) {
            queue.push(StoredPacket::new(Packet(number, ecn), 100, at(offered)));
        }
        queue
    }

    fn queue(offered: impl IntoIterator<Item = u64>) -> Fifo<Packet> {
        queue_of(EcnCodePoint::NotEct, offered)
    }

    /// The transmitted and the dropped packets of dequeues at these times in ms.
    fn dequeues(queue: &mut Fifo<Packet>, times: &[u64]) -> Vec<(u64, Option<u32>, Vec<u32>)> {
        let mut codel = Codel::new(MS(5), MS(100), true);
        let mut take = |&ms: &u64| {
            let mut dropped = Vec::new();
            let sent = codel.take(at(ms), queue, &mut dropped);
            let dropped =
                dropped.iter().map(|packet: &StoredPacket<Packet>| packet.payload.0).collect();
            (ms, sent.map(|packet| packet.payload.0), dropped)
        };
        times.iter().map(&mut take).collect()
    }

    #[test]
    fn the_drop_rate_increases_while_the_delay_stays_above_the_target() {
        // All packets arrived at 0. The first dequeue above the target is at 10 ms, so the first
        // drop is at 110 ms. The next: 110 + 100/√1 = 210, then + 100/√2 = 280.7, + 100/√3 = 338.4.
        let mut queue = queue([0; 20]);
        let expected = [
            (10, Some(0), vec![]),
            (109, Some(1), vec![]),
            (110, Some(3), vec![2]),
            (209, Some(4), vec![]),
            (210, Some(6), vec![5]),
            (280, Some(7), vec![]),
            (281, Some(9), vec![8]),
            (338, Some(10), vec![]),
            (339, Some(12), vec![11]),
        ];
        let times = expected.iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(dequeues(&mut queue, &times), expected);
    }

    #[test]
    fn packets_that_support_marks_are_marked_at_the_times_of_drops() {
        // The times of the test above; no packet leaves the queue without being transmitted.
        let mut queue = queue_of(EcnCodePoint::Ect0, [0; 20]);
        let mut codel = Codel::new(MS(5), MS(100), true);
        let mut dropped = Vec::new();
        let mut is_marked = |ms| {
            let packet = codel.take(at(ms), &mut queue, &mut dropped).unwrap();
            assert_eq!(packet.is_marked, packet.payload.ecn() == EcnCodePoint::Ce);
            packet.is_marked
        };
        let marks = [10, 109, 110, 209, 210, 280, 281, 338, 339].map(&mut is_marked);
        assert_eq!(marks, [false, false, true, false, true, false, true, false, true]);
        // Of two overdue marks, each packet has one.
        assert_eq!([500, 501, 502, 503].map(is_marked), [true, true, true, false]);
        assert!(dropped.is_empty());
    }

    #[test]
    fn all_overdue_drops_happen_at_the_next_dequeue() {
        // At 300 ms the drops of 210 and 280.7 ms are due.
        let mut queue = queue([0; 20]);
        let rows = dequeues(&mut queue, &[10, 110, 300]);
        assert_eq!(rows[2], (300, Some(5), vec![3, 4]));
    }

    #[test]
    fn a_delay_below_the_target_ends_the_dropping_state() {
        // The packet dequeued at 200 ms waited 4 ms: a new interval starts at 210 ms.
        let mut queue = queue([0, 0, 0, 196, 196, 196, 196, 196, 196]);
        let expected = [
            (10, Some(0), vec![]),
            (110, Some(2), vec![1]),
            (200, Some(3), vec![]),
            (210, Some(4), vec![]),
            (309, Some(5), vec![]),
            (310, Some(7), vec![6]),
        ];
        let times = expected.iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(dequeues(&mut queue, &times), expected);
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        // With one packet of full size left after it, no packet is dropped, however long it waited.
        let mut queue = queue([0; 4]);
        let rows = dequeues(&mut queue, &[10, 150, 200, 10_000, 10_001]);
        assert_eq!(rows.iter().filter_map(|row| row.1).collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(rows[1].2, [1]);
    }

    #[test]
    fn a_recent_dropping_state_is_resumed_at_its_rate() {
        // Three drops (count 3 from 1), then a short delay, then an interval above the target: the
        // count resumes with 3 − 1 = 2, so the next drop is 100/√2 = 70.7 ms after the first.
        let early = [0; 8];
        let late = [296; 12];
        let mut queue = queue(early.into_iter().chain(late));
        let rows = dequeues(&mut queue, &[10, 110, 210, 281, 298, 299, 310, 410, 480, 481]);
        let dropped: Vec<_> = rows.iter().map(|row| (row.0, row.2.len())).collect();
        let expected = [
            (10, 0),
            (110, 1),
            (210, 1),
            (281, 1),
            (298, 0),
            (299, 0),
            (310, 0),
            (410, 1),
            (480, 0),
            (481, 1),
        ];
        assert_eq!(dropped, expected);
    }
}
