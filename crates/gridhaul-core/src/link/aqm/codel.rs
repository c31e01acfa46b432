//! Controlled delay, RFC 8289.

use gridhaul_scenario::units::{Duration, Instant};

use super::fifo::{Fifo, StoredPacket};

/// The state of CoDel for one queue. Names follow the pseudocode of RFC 8289, section 5.
#[derive(Debug, Clone)]
pub(super) struct Codel {
    target: Duration,
    interval: Duration,
    /// When the queueing delay will have been above the target for an interval, if it is above it.
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Codel {
    pub(super) const fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            first_above_time: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// The packet to transmit at `now`; packets dropped before it are added to `dropped` (RFC 8289,
    /// section 5.5).
    pub(super) fn take<P: Copy>(
        &mut self,
        now: Instant,
        queue: &mut Fifo<P>,
        dropped: &mut Vec<StoredPacket<P>>,
    ) -> Option<StoredPacket<P>> {
        let (mut packet, mut ok_to_drop) = self.dequeue(now, queue);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                dropped.extend(packet);
                self.count = self.count.saturating_add(1);
                (packet, ok_to_drop) = self.dequeue(now, queue);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok_to_drop {
            dropped.extend(packet);
            (packet, _) = self.dequeue(now, queue);
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

    /// The next packet, and whether it may be dropped: the queueing delay has been above the target
    /// for an interval, and more than one packet of full size remains (RFC 8289, section 5.6).
    fn dequeue<P: Copy>(
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

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    /// Packets of 100 B that were offered at these times in ms.
    fn queue(offered: impl IntoIterator<Item = u64>) -> Fifo<u32> {
        let mut queue = Fifo::new();
        for (number, offered) in (0..).zip(offered) {
            let (offered, enqueued) = (at(offered), at(offered));
            queue.push(StoredPacket { payload: number, bytes: 100, offered, enqueued });
        }
        queue
    }

    /// The transmitted and the dropped packets of dequeues at these times in ms.
    fn dequeues(queue: &mut Fifo<u32>, times: &[u64]) -> Vec<(u64, Option<u32>, Vec<u32>)> {
        let mut codel = Codel::new(MS(5), MS(100));
        let mut take = |&ms: &u64| {
            let mut dropped = Vec::new();
            let sent = codel.take(at(ms), queue, &mut dropped);
            let dropped = dropped.iter().map(|packet| packet.payload).collect();
            (ms, sent.map(|packet| packet.payload), dropped)
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
