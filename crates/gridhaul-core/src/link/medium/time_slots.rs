//! Time slots of a direction.

use std::collections::BTreeMap;

use gridhaul_scenario::units::Duration;

/// The time slots of a direction within a frame; the frames follow one another without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::link) struct TimeSlots {
    /// Starts of the slots, from the start of the frame.
    starts: Vec<Duration>,
    /// Usable length of a slot, without the guard time.
    length: Duration,
    frame: Duration,
}

/// A time without transmission that recurs with every frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::link) struct Gap {
    pub(in crate::link) start: Duration,
    pub(in crate::link) length: Duration,
    /// `None` for the time before the first slot of the first frame.
    pub(in crate::link) every: Option<Duration>,
}

impl TimeSlots {
    /// The slots of each direction; `slots` lists the directions in the order of the slots.
    pub(super) fn of_frame(slot: Duration, guard: Duration, slots: &[u32]) -> BTreeMap<u32, Self> {
        let frame = slot * slots.len() as u64;
        let mut by_direction: BTreeMap<u32, Self> = BTreeMap::new();
        for (index, &direction) in (0..).zip(slots) {
            let none = || Self { starts: Vec::new(), length: slot - guard, frame };
            by_direction.entry(direction).or_insert_with(none).starts.push(slot * index);
        }
        by_direction
    }

    /// The times between the slots.
    pub(in crate::link) fn gaps(&self) -> Vec<Gap> {
        let first = self.starts[0];
        let before = Gap { start: Duration::ZERO, length: first, every: None };
        let next = self.starts[1..].iter().copied().chain([self.frame + first]);
        let between = self.starts.iter().zip(next).map(|(&slot, next)| {
            let start = slot + self.length;
            Gap { start, length: next - start, every: Some(self.frame) }
        });
        [before].into_iter().chain(between).filter(|gap| !gap.length.is_zero()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn gaps(guard_ms: u64, slots: &[u32], direction: u32) -> Vec<[u64; 3]> {
        let frame = TimeSlots::of_frame(MS(10), MS(guard_ms), slots);
        let ms = |time: Duration| time.as_nanos() / 1_000_000;
        let gaps = frame[&direction].gaps().into_iter();
        gaps.map(|gap| [ms(gap.start), ms(gap.length), gap.every.map_or(0, ms)]).collect()
    }

    #[test]
    fn a_direction_pauses_outside_its_slots() {
        // Start, length and period in ms: the first and the second of three slots of 10 ms.
        assert_eq!(gaps(0, &[0, 1, 2], 0), [[10, 20, 30]]);
        assert_eq!(gaps(1, &[0, 1, 2], 1), [[0, 10, 0], [19, 21, 30]]);
    }

    #[test]
    fn a_direction_has_several_slots_of_a_frame() {
        assert_eq!(gaps(0, &[1, 0, 1, 0, 0], 0), [[0, 10, 0], [20, 10, 50], [50, 10, 50]]);
        assert_eq!(gaps(0, &[7, 7], 7), [[0; 3]; 0], "adjacent slots have no gap");
        assert_eq!(gaps(2, &[7, 7], 7), [[8, 2, 20], [18, 2, 20]]);
    }
}
