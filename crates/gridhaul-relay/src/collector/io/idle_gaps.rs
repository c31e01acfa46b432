//! Ends of messages by a pause: the meters that have sent data after which no pause was noticed
//! yet.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use gridhaul_scenario::units::{Duration, Instant};

use crate::collector::MeterId;

/// Meters whose message ends if no byte arrives for some time.
///
/// Each meter has at most one entry, however often it sends: a long pause must not let a meter that
/// sends single bytes fill the memory. The pauses of listeners differ.
#[derive(Debug, Default)]
pub(super) struct IdleGaps {
    meters: BTreeMap<u64, Awaiting>,
    /// When to look at a meter, by its number.
    due: BTreeSet<(Instant, u64)>,
    /// Numbers of meters of which bytes have arrived that are not read.
    suspended: BTreeSet<u64>,
}

#[derive(Debug)]
struct Awaiting {
    id: MeterId,
    /// When the message ends, unless a byte arrives.
    end: Instant,
    /// The entry in `due`, which is moved only when it is reached.
    due: Instant,
}

impl IdleGaps {
    /// Data of a meter has arrived, after which a pause ends the message.
    pub(super) fn handle_data(&mut self, now: Instant, id: MeterId, gap: Duration) {
        let end = now + gap;
        self.suspended.remove(&id.number);
        match self.meters.entry(id.number) {
            Entry::Occupied(mut entry) => {
                let meter = entry.get_mut();
                meter.end = end;
                // A reload may have shortened the pause.
                if end < meter.due {
                    self.due.remove(&(meter.due, id.number));
                    self.due.insert((end, id.number));
                    meter.due = end;
                }
            }
            Entry::Vacant(entry) => {
                entry.insert(Awaiting { id, end, due: end });
                self.due.insert((end, id.number));
            }
        }
    }

    /// A meter whose message has ended by a pause.
    pub(super) fn poll(&mut self, now: Instant) -> Option<MeterId> {
        loop {
            let (at, number) = *self.due.first().filter(|(at, _)| *at <= now)?;
            self.due.remove(&(at, number));
            let Some(meter) = self.meters.get_mut(&number) else { continue };
            if meter.end > now {
                meter.due = meter.end;
                self.due.insert((meter.due, number));
                continue;
            }
            return self.meters.remove(&number).map(|meter| meter.id);
        }
    }

    /// Bytes of a meter of [`Self::poll`] have arrived and are not read: its message may continue.
    /// The pause is waited for after they are read, and [`Self::poll`] returns the meter after
    /// `wait` if they are not. Returns whether this has happened before.
    pub(super) fn suspend(&mut self, now: Instant, id: MeterId, wait: Duration) -> bool {
        let is_repeated = self.suspended.contains(&id.number);
        self.handle_data(now, id, wait);
        self.suspended.insert(id.number);
        is_repeated
    }

    /// There is nothing to read of a meter. One that was suspended is waited for again.
    pub(super) fn handle_empty(&mut self, now: Instant, id: MeterId, gap: Duration) {
        if self.suspended.contains(&id.number) {
            self.handle_data(now, id, gap);
        }
    }

    /// The connection of a meter has ended.
    pub(super) fn remove(&mut self, id: MeterId) {
        self.suspended.remove(&id.number);
        if let Some(meter) = self.meters.remove(&id.number) {
            self.due.remove(&(meter.due, id.number));
        }
    }

    /// Whether a pause would end a message of a meter.
    pub(super) fn contains(&self, id: MeterId) -> bool {
        self.meters.contains_key(&id.number)
    }

    /// When [`Self::poll`] must be called.
    pub(super) fn deadline(&self) -> Instant {
        self.due.first().map_or(Instant::NEVER, |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn meter(number: u64) -> MeterId {
        MeterId { index: 0, number }
    }

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_meter_that_sends_single_bytes_has_one_entry() {
        let mut gaps = IdleGaps::default();
        let gap = Duration::from_millis(1_000);
        for time in 0..10_000 {
            gaps.handle_data(at(time), meter(1), gap);
            assert_eq!(gaps.poll(at(time)), None);
        }
        assert_eq!((gaps.meters.len(), gaps.due.len()), (1, 1));
        assert_eq!(gaps.poll(at(10_998)), None);
        assert_eq!(gaps.poll(at(10_999)), Some(meter(1)));
        assert_eq!((gaps.poll(at(99_999)), gaps.deadline()), (None, Instant::NEVER));
    }

    #[test]
    fn a_short_pause_does_not_wait_for_a_long_one() {
        let mut gaps = IdleGaps::default();
        gaps.handle_data(at(0), meter(1), Duration::from_millis(10_000));
        gaps.handle_data(at(1), meter(2), Duration::from_millis(20));
        assert_eq!(gaps.deadline(), at(21));
        assert_eq!(gaps.poll(at(21)), Some(meter(2)));
        // A reload has shortened the pause.
        gaps.handle_data(at(30), meter(1), Duration::from_millis(20));
        assert_eq!(gaps.poll(at(50)), Some(meter(1)));
    }

    #[test]
    fn a_meter_with_unread_bytes_is_not_idle_until_they_are_read() {
        let mut gaps = IdleGaps::default();
        let gap = Duration::from_millis(20);
        gaps.handle_data(at(0), meter(1), gap);
        gaps.handle_empty(at(10), meter(1), gap);
        assert_eq!(gaps.poll(at(20)), Some(meter(1)), "reads that find nothing prolong no pause");
        let wait = Duration::from_millis(1_000);
        assert!(!gaps.suspend(at(20), meter(1), wait) && gaps.contains(meter(1)));
        assert_eq!(gaps.poll(at(1_019)), None);
        assert_eq!(gaps.poll(at(1_020)), Some(meter(1)), "its part is recorded");
        assert!(gaps.suspend(at(1_020), meter(1), wait));
        gaps.handle_data(at(1_100), meter(1), gap);
        assert_eq!(gaps.poll(at(1_120)), Some(meter(1)));
        assert!(!gaps.suspend(at(1_120), meter(1), wait));
        gaps.handle_empty(at(1_200), meter(1), gap);
        assert_eq!(gaps.poll(at(1_220)), Some(meter(1)));
        gaps.suspend(at(1_220), meter(1), wait);
        gaps.remove(meter(1));
        assert!(!gaps.contains(meter(1)) && gaps.due.is_empty() && gaps.suspended.is_empty());
    }

    #[test]
    fn an_ended_connection_has_no_entry() {
        let mut gaps = IdleGaps::default();
        gaps.handle_data(at(0), meter(1), Duration::from_millis(20));
        gaps.remove(meter(1));
        assert!(!gaps.contains(meter(1)) && gaps.due.is_empty());
    }
}
