//! The queue of all events but those of links: a hierarchical timing wheel (Varghese and Lauck,
//! "Hashed and hierarchical timing wheels", SOSP 1987, scheme 7) that keeps the exact order.
//!
//! Each of a million meters has timers seconds or minutes ahead. In a heap, an insertion and a
//! removal read a cache line at each of its levels. Here, an entry is appended to a slot, and it
//! moves to a finer slot once or twice while its time approaches. The entries of a tick are sorted
//! when it begins; a heap has those that are added for the same tick later.

mod entry_lists;

use std::cmp::Reverse;

use gridhaul_scenario::units::Instant;

use self::entry_lists::EntryLists;
use crate::heap::{Heap, NOTHING};

/// Entries in order of their values. The upper half of an entry is its time in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct TimingWheel {
    /// The entries of the last tick before `horizon`, the first one last.
    sorted: Vec<u128>,
    /// Number of entries at the beginning of `sorted` that [`upcoming`](Self::upcoming) has not
    /// returned.
    later: usize,
    /// The entries that were added after `horizon` had passed their times.
    added: Heap,
    /// The entry that is in no slot, or [`NOTHING`].
    single: u128,
    /// The first entry before `horizon`, unless `is_stale`.
    first: u128,
    /// Whether `first` has to be determined again: it was removed, there is none, or an entry was
    /// added.
    is_stale: bool,
    /// No entry is before this time. Most events are those of links before it.
    earliest: Instant,
    /// First tick whose entries are in slots.
    horizon: u64,
    /// The slots of all levels. A slot of the first level has the entries of a tick, and a slot of
    /// each other level those of a whole level below it: a tick is a number of one digit for each
    /// level, and an entry is in the level of the highest digit that differs from `horizon`.
    slots: EntryLists,
    /// The slots with entries of each level, as bits.
    occupied: [u64; LEVELS],
}

/// Length of a tick in nanoseconds, as a shift: 17 ms. It is short compared with most timers of
/// TCP, and long enough to sort several entries at once.
const TICK_SHIFT: u32 = 24;
/// Ticks without entries that are passed at once: an event of a link seldom comes later.
const TICKS_AHEAD: u64 = 8;
/// Entries that [`TimingWheel::upcoming`] returns at once: a processor waits for some ten cache
/// lines at a time.
const UPCOMING_MAX: usize = 16;
/// Bits of a digit: the slots of a level are the bits of an integer.
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
/// Levels whose digits cover every time.
const LEVELS: usize = (u64::BITS - TICK_SHIFT).div_ceil(DIGIT_BITS) as usize;

impl TimingWheel {
    /// A wheel without entries.
    pub(crate) fn new() -> Self {
        Self {
            sorted: Vec::new(),
            later: 0,
            added: Heap::default(),
            single: NOTHING,
            first: NOTHING,
            is_stale: true,
            earliest: Instant::ZERO,
            horizon: 0,
            slots: EntryLists::new(LEVELS * SLOTS),
            occupied: [0; LEVELS],
        }
    }

    /// Whether all entries are known to be after `limit`.
    #[inline]
    pub(crate) fn is_after(&self, limit: Instant) -> bool {
        limit < self.earliest
    }

    /// The first entry, if its time is `limit` or earlier; otherwise any later entry, or
    /// [`NOTHING`].
    #[inline]
    pub(crate) fn first_until(&mut self, limit: Instant) -> u128 {
        if self.is_after(limit) {
            return NOTHING;
        }
        if self.is_stale {
            self.find_first(limit);
        }
        self.first
    }

    #[inline(never)]
    fn find_first(&mut self, limit: Instant) {
        self.first = self.added.first().min(self.first_sorted()).min(self.passed_single());
        if self.first == NOTHING {
            self.advance(limit.min(time(self.single)));
            self.first = self.first.min(self.passed_single());
        }
        self.is_stale = self.first == NOTHING;
        self.earliest = if self.is_stale { begin_of_tick(self.horizon) } else { time(self.first) };
    }

    /// Removes the entry that [`first_until`](Self::first_until) has just returned.
    #[inline]
    pub(crate) fn take_first(&mut self) {
        // Entries differ at least in their sequence numbers.
        if self.first_sorted() == self.first {
            self.sorted.pop();
        } else if self.single == self.first {
            self.single = NOTHING;
        } else {
            self.added.take_first();
        }
        self.is_stale = true;
    }

    /// The next entries of the tick, at most [`UPCOMING_MAX`], and each only once: none while
    /// entries that were returned before are left.
    #[inline]
    pub(crate) fn upcoming(&mut self) -> &[u128] {
        let end = self.sorted.len();
        if end > self.later {
            return &[];
        }
        self.later = end.saturating_sub(UPCOMING_MAX);
        &self.sorted[self.later..]
    }

    /// Adds an entry of any time, also of one that has passed.
    #[inline]
    pub(crate) fn push(&mut self, entry: u128) {
        let tick = tick_of(entry);
        if tick >= self.horizon {
            self.push_to_slot(tick, entry);
            return;
        }
        self.earliest = self.earliest.min(time(entry));
        self.is_stale = true;
        self.added.push(entry);
    }

    /// Adds an entry that is in no slot and replaces the last one of this kind. An event that
    /// occurs at each tick, such as a sample, would make every slot be sorted for a single entry.
    #[inline]
    pub(crate) fn push_single(&mut self, entry: u128) {
        self.single = entry;
        self.earliest = self.earliest.min(time(entry));
        self.is_stale = true;
    }

    /// The entry that is in no slot, once all entries in slots are after it.
    #[inline]
    const fn passed_single(&self) -> u128 {
        if tick_of(self.single) < self.horizon { self.single } else { NOTHING }
    }

    #[inline]
    fn first_sorted(&self) -> u128 {
        self.sorted.last().copied().unwrap_or(NOTHING)
    }

    fn push_to_slot(&mut self, tick: u64, entry: u128) {
        let level = (tick ^ self.horizon).checked_ilog2().unwrap_or(0) / DIGIT_BITS;
        let (level, slot) = (level as usize, digit(tick, level));
        self.occupied[level] |= 1 << slot;
        self.slots.push(level * SLOTS + slot, entry);
    }

    /// Without entries before `horizon`: sorts those of the next tick, if that tick begins at or
    /// before `limit`. Sets `first` to the first of them.
    ///
    /// Otherwise, `horizon` moves a few ticks beyond `limit`. Entries that are added before it go
    /// to the heap, which is slow if they are many.
    #[inline(never)]
    fn advance(&mut self, limit: Instant) {
        let last = tick(limit);
        if self.horizon > last {
            return;
        }
        while let Some(begin) = self.first_occupied() {
            if begin > last {
                self.move_horizon(begin.min(last + TICKS_AHEAD));
                return;
            }
            self.move_horizon(begin);
            let slot = digit(begin, 0);
            if self.occupied[0] & 1 << slot != 0 {
                self.occupied[0] &= !(1 << slot);
                self.slots.drain_to(slot, &mut self.sorted);
                self.sorted.sort_unstable_by_key(|&entry| Reverse(entry));
                self.later = self.sorted.len();
                self.move_horizon(begin + 1);
                self.first = self.first_sorted();
                return;
            }
        }
        if limit != Instant::NEVER {
            self.move_horizon(last + TICKS_AHEAD);
        }
    }

    /// The first tick of the first slot with entries.
    fn first_occupied(&self) -> Option<u64> {
        // All entries of a level are before those of the levels above.
        let level = self.occupied.iter().position(|slots| *slots != 0)?;
        let slot = u64::from(self.occupied[level].trailing_zeros());
        let shift = level as u32 * DIGIT_BITS;
        Some((self.horizon >> shift >> DIGIT_BITS << DIGIT_BITS | slot) << shift)
    }

    /// Moves `horizon` to a tick that is not after the first slot with entries, and the entries of
    /// the slots that begin there to the levels below.
    #[inline]
    fn move_horizon(&mut self, to: u64) {
        self.horizon = to;
        if to.is_multiple_of(SLOTS as u64) {
            self.divide_slots();
        }
    }

    /// Moves the entries of the slots above the first level that begin at `horizon` to the levels
    /// below.
    #[inline(never)]
    fn divide_slots(&mut self) {
        let levels = (self.horizon.trailing_zeros() / DIGIT_BITS + 1).min(LEVELS as u32);
        for level in 1..levels {
            let slot = digit(self.horizon, level);
            let level = level as usize;
            if self.occupied[level] & 1 << slot == 0 {
                continue;
            }
            self.occupied[level] &= !(1 << slot);
            while let Some(block) = self.slots.take_block(level * SLOTS + slot) {
                for &entry in block.entries() {
                    self.push_to_slot(tick_of(entry), entry);
                }
            }
        }
    }
}

#[inline]
const fn time(entry: u128) -> Instant {
    Instant::from_nanos((entry >> u64::BITS) as u64)
}

#[inline]
const fn begin_of_tick(tick: u64) -> Instant {
    Instant::from_nanos(tick.saturating_mul(1 << TICK_SHIFT))
}

#[inline]
const fn tick(at: Instant) -> u64 {
    at.as_nanos() >> TICK_SHIFT
}

#[inline]
const fn tick_of(entry: u128) -> u64 {
    (entry >> (u64::BITS + TICK_SHIFT)) as u64
}

/// The digit of a tick at a level.
#[inline]
const fn digit(tick: u64, level: u32) -> usize {
    (tick >> (level * DIGIT_BITS)) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::*;

    /// A step of a simulation.
    #[derive(Debug, Clone)]
    enum Step {
        /// An event is scheduled this long after the present, or before it.
        Push { after: u64, is_past: bool, is_single: bool },
        /// The events of this time are handled, at most this many of them.
        Pop { time: u64, count: usize },
    }

    /// Times from nanoseconds to centuries, often close to the ends of slots.
    fn times() -> impl Strategy<Value = u64> {
        let near_power = (0_u32..62, -2_i64..3)
            .prop_map(|(bits, offset)| (1_u64 << bits).saturating_add_signed(offset));
        prop_oneof![
            (0_u32..62).prop_flat_map(|bits| 0..1_u64 << bits),
            near_power,
            0_u64..5_000_000
        ]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let push = (times(), prop::bool::weighted(0.05), prop::bool::weighted(0.3))
            .prop_map(|(after, is_past, is_single)| Step::Push { after, is_past, is_single });
        let pop = (times(), 1_usize..6).prop_map(|(time, count)| Step::Pop { time, count });
        prop::collection::vec(prop_oneof![2 => push, 1 => pop], 1..400)
    }

    /// The first entry until a limit, as a binary heap finds it.
    fn first_until(heap: &BinaryHeap<Reverse<u128>>, limit: u64) -> Option<u128> {
        heap.peek().map(|first| first.0).filter(|first| (first >> 64) as u64 <= limit)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn entries_leave_in_the_order_of_a_binary_heap(steps in steps()) {
            let (mut wheel, mut heap) = (TimingWheel::new(), BinaryHeap::new());
            let (mut now, mut single) = (0_u64, None);
            for (number, step) in (0_u128..).zip(steps) {
                let (limit, count) = match step {
                    Step::Push { after, is_past, is_single } => {
                        let at = if is_past {
                            now.saturating_sub(after)
                        } else {
                            now.saturating_add(after)
                        };
                        // Entries of the same time are in the order of their sequence numbers.
                        let entry = u128::from(at.min(u64::MAX - 1)) << 64 | number;
                        if is_single {
                            heap.retain(|other: &Reverse<u128>| Some(other.0) != single);
                            single = Some(entry);
                            wheel.push_single(entry);
                        } else {
                            wheel.push(entry);
                        }
                        heap.push(Reverse(entry));
                        continue;
                    }
                    Step::Pop { time, count } => (now.saturating_add(time), count),
                };
                for _ in 0..count {
                    let expected = first_until(&heap, limit);
                    let first = wheel.first_until(Instant::from_nanos(limit));
                    let found = (first >> 64) as u64 <= limit && first != NOTHING;
                    prop_assert_eq!(found.then_some(first), expected);
                    let Some(entry) = expected else { break };
                    wheel.take_first();
                    heap.pop();
                    now = now.max((entry >> 64) as u64);
                }
            }
            while let Some(Reverse(entry)) = heap.pop() {
                prop_assert_eq!(wheel.first_until(Instant::NEVER), entry);
                wheel.take_first();
            }
            prop_assert_eq!(wheel.first_until(Instant::NEVER), NOTHING);
        }
    }

    #[test]
    fn upcoming_entries_are_returned_once() {
        let (mut wheel, mut returned) = (TimingWheel::new(), Vec::new());
        (0..100).for_each(|entry| wheel.push(entry));
        for taken in 0..100 {
            assert_eq!(wheel.first_until(Instant::NEVER), taken);
            wheel.take_first();
            let upcoming = wheel.upcoming();
            assert!(upcoming.len() <= UPCOMING_MAX);
            returned.extend_from_slice(upcoming);
            assert!(taken == 99 || returned.contains(&(taken + 1)), "entry {taken} is next");
        }
        returned.sort_unstable();
        assert_eq!(returned, (1..100).collect::<Vec<_>>());
    }

    /// A packet every microsecond beside a timer of a minute: the horizon follows the packets, so
    /// that timers in between are not in the heap.
    #[test]
    fn the_horizon_stays_close_to_the_limit() {
        let mut wheel = TimingWheel::new();
        wheel.push(60_000_000_000 << 64);
        for micros in 0..10_000 {
            let limit = Instant::from_nanos(micros * 1_000);
            assert_eq!(wheel.first_until(limit), NOTHING);
            assert!(wheel.horizon <= tick(limit) + TICKS_AHEAD);
        }
    }
}
