//! Rates of a direction that change at stated times.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Direction, LinkQuality, LinkSteps, Scenario};
use crate::units::{BitRate, Duration, Instant};

/// A change of the rate at a stated time, as of a modem that adapts to its line. A packet in
/// transmission at that time is continued at the new rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RateChange {
    /// Time of the change, from the beginning of the run. Of two changes at the same time, the
    /// later one in the list applies.
    pub at: Duration,
    /// Rate from then on, until the next change.
    pub rate: BitRate,
    /// Period of a recurring change, such as `"24 h"` for a table of rates per time of day. Absent:
    /// a single change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
}

/// The rate of a direction as a function of time.
#[derive(Debug, Clone)]
pub struct RateSchedule(Rates);

#[derive(Debug, Clone)]
enum Rates {
    Changes(RateChanges),
    /// The steps of a trace.
    Steps(Arc<LinkSteps>),
}

/// The rates of a direction with `rate_change`.
#[derive(Debug, Clone)]
struct RateChanges {
    initial: BitRate,
    changes: Vec<RateChange>,
}

impl RateSchedule {
    /// Largest number of changes of a direction in a run: more are probably typing errors.
    pub const CHANGES_MAX: u64 = 10_000_000;

    /// The schedule of a direction without a trace.
    #[must_use]
    pub fn of(direction: &Direction) -> Self {
        let (initial, changes) = (direction.rate, direction.rate_change.clone());
        Self(Rates::Changes(RateChanges { initial, changes }))
    }

    /// The schedule of a trace.
    #[must_use]
    pub const fn of_steps(steps: Arc<LinkSteps>) -> Self {
        Self(Rates::Steps(steps))
    }

    /// The rate at a time: that of the latest change so far.
    #[must_use]
    pub fn rate_at(&self, at: Instant) -> BitRate {
        match &self.0 {
            Rates::Changes(rates) => rates.rate_at(at),
            Rates::Steps(steps) => steps.at(at).rate,
        }
    }

    /// The first change after a time; [`Instant::NEVER`] if there is none.
    #[must_use]
    pub fn next_change(&self, after: Instant) -> Instant {
        match &self.0 {
            Rates::Changes(rates) => rates.next_change(after),
            Rates::Steps(steps) => steps.next_change(after),
        }
    }

    /// The largest rate.
    #[must_use]
    pub fn rate_max(&self) -> BitRate {
        match &self.0 {
            Rates::Changes(rates) => rates.rate_max(),
            Rates::Steps(steps) => steps.rate_max(),
        }
    }

    /// The mean rate from `start` to `end`.
    #[must_use]
    pub fn mean_rate(&self, start: Instant, end: Instant) -> BitRate {
        let (mut at, mut bits) = (start, 0_u128);
        while at < end {
            let until = self.next_change(at).min(end);
            let rate = self.rate_at(at).as_bits_per_sec();
            bits += u128::from(rate) * u128::from(until.since(at).as_nanos());
            at = until;
        }
        let span = u128::from(end.since(start).as_nanos());
        let mean = bits.checked_div(span).map(|mean| BitRate::from_bits_per_sec(mean as u64));
        mean.unwrap_or_else(|| self.rate_at(start))
    }
}

impl RateChanges {
    fn rate_at(&self, at: Instant) -> BitRate {
        let latest = self.changes.iter().filter_map(|change| Some((change.latest(at)?, change)));
        // Of several maxima, `max_by_key` returns the last one.
        latest.max_by_key(|(time, _)| *time).map_or(self.initial, |(_, change)| change.rate)
    }

    fn next_change(&self, after: Instant) -> Instant {
        self.changes.iter().map(|change| change.next(after)).min().unwrap_or(Instant::NEVER)
    }

    fn rate_max(&self) -> BitRate {
        self.changes.iter().map(|change| change.rate).fold(self.initial, BitRate::max)
    }
}

impl RateChange {
    /// The latest occurrence at or before `at`.
    fn latest(&self, at: Instant) -> Option<Instant> {
        let first = Instant::ZERO + self.at;
        if at < first {
            return None;
        }
        let Some(every) = self.every else { return Some(first) };
        Some(first + every * (at.since(first).as_nanos() / every.as_nanos().max(1)))
    }

    /// The first occurrence after `after`.
    fn next(&self, after: Instant) -> Instant {
        match (self.latest(after), self.every) {
            (None, _) => Instant::ZERO + self.at,
            (Some(latest), Some(every)) => latest + every,
            (Some(_), None) => Instant::NEVER,
        }
    }

    /// Number of occurrences in a run of this length.
    pub(super) const fn occurrences(&self, duration: Duration) -> u64 {
        let left = duration.saturating_sub(self.at).as_nanos();
        match self.every {
            Some(every) if !every.is_zero() => left / every.as_nanos() + 1,
            _ => 1,
        }
    }
}

impl Direction {
    /// Mean rate over the measured time of a scenario, of all members; 0 with a trace, which is a
    /// file.
    #[must_use]
    pub fn mean_rate(&self, scenario: &Scenario) -> BitRate {
        if self.rate_change.is_empty() {
            let quality = self.quality.as_ref().and_then(LinkQuality::mean_rate);
            return quality.unwrap_or(self.rate);
        }
        let [start, end] = [scenario.warmup, scenario.duration].map(|time| Instant::ZERO + time);
        RateSchedule::of(self).mean_rate(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(at_s: u64, kbit: u64, every_s: Option<u64>) -> RateChange {
        RateChange {
            at: Duration::from_secs(at_s),
            rate: BitRate::from_bits_per_sec(kbit * 1_000),
            every: every_s.map(Duration::from_secs),
        }
    }

    fn schedule(changes: &[RateChange]) -> RateSchedule {
        let initial = BitRate::from_bits_per_sec(100_000);
        RateSchedule(Rates::Changes(RateChanges { initial, changes: changes.to_vec() }))
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn the_latest_change_determines_the_rate() {
        let rates = schedule(&[change(10, 200, None), change(20, 300, None), change(20, 50, None)]);
        let kbit = [0, 9, 10, 19, 20, 99].map(|secs| rates.rate_at(at(secs)).as_bits_per_sec());
        assert_eq!(kbit, [100, 100, 200, 200, 50, 50].map(|kbit| kbit * 1_000));
        let next = [0, 10, 19, 20].map(|secs| rates.next_change(at(secs)));
        assert_eq!(next, [at(10), at(20), at(20), Instant::NEVER]);
    }

    #[test]
    fn recurring_changes_are_a_table_of_a_period() {
        // 200 kbit/s in the first 3 s of each 10 s from 5 s on, 50 kbit/s in the other 7 s.
        let rates = schedule(&[change(5, 200, Some(10)), change(8, 50, Some(10))]);
        let kbit = [4, 5, 7, 8, 14, 15, 18].map(|secs| rates.rate_at(at(secs)).as_bits_per_sec());
        assert_eq!(kbit, [100, 200, 200, 50, 50, 200, 50].map(|kbit| kbit * 1_000));
        assert_eq!([5, 8, 20].map(|secs| rates.next_change(at(secs))), [8, 15, 25].map(at));
        // (3 · 200 + 7 · 50) / 10 over whole periods.
        assert_eq!(rates.mean_rate(at(5), at(45)).as_bits_per_sec(), 95_000);
        // (5 · 100 + 3 · 200 + 2 · 50) / 10 over the first 10 s.
        assert_eq!(rates.mean_rate(at(0), at(10)).as_bits_per_sec(), 120_000);
        assert_eq!(rates.rate_max().as_bits_per_sec(), 200_000);
    }
}
