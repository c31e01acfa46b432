//! On and off periods of an on-off load.

use gridhaul_scenario::scenario::{self, PeriodDistribution};
use gridhaul_scenario::units::{Duration, Instant};

use crate::random::RandomStream;

/// Alternating on and off periods, independent of the network.
///
/// The process starts in its stationary state: in an on period with probability `on / (on + off)`,
/// at a uniformly distributed position. With an on length of zero the process is always off.
#[derive(Debug, Clone)]
pub struct OnOffPeriods {
    on: Duration,
    off: Duration,
    spread: PeriodDistribution,
    active: bool,
    until: Instant,
    random: RandomStream,
}

impl OnOffPeriods {
    /// The process with the lengths in `keys`, from `start` on, in its stationary state.
    #[must_use]
    pub fn new(keys: &scenario::OnOff, start: Instant, random: RandomStream) -> Self {
        let mut periods = Self {
            on: keys.on,
            off: keys.off,
            spread: keys.spread,
            active: false,
            until: Instant::NEVER,
            random,
        };
        if keys.on.is_zero() {
            return periods;
        }
        let cycle = keys.on.as_nanos().saturating_add(keys.off.as_nanos());
        periods.active = periods.random.below(cycle) < keys.on.as_nanos();
        periods.until = start + periods.residual(if periods.active { keys.on } else { keys.off });
        periods
    }

    /// Whether the process is in an on period.
    #[inline]
    #[must_use]
    pub const fn active(&self) -> bool {
        self.active
    }

    /// End of the current period.
    #[inline]
    #[must_use]
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Advances over all periods that end at or before `now`.
    pub fn advance(&mut self, now: Instant) {
        while self.until <= now {
            self.switch();
        }
    }

    /// Ends the current period and starts the next one.
    fn switch(&mut self) {
        self.active = !self.active;
        let mean = if self.active { self.on } else { self.off };
        self.until += length(self.spread, mean, &mut self.random);
    }

    /// The random stream, for a caller that continues the process itself.
    pub(super) fn into_random(self) -> RandomStream {
        self.random
    }

    /// Residual length at a random time within a period: exponential lengths are memoryless, and
    /// for a fixed length the residual is uniform.
    fn residual(&mut self, mean: Duration) -> Duration {
        match self.spread {
            PeriodDistribution::Fixed => self.random.uniform(mean),
            PeriodDistribution::Exponential => self.random.exponential(mean),
        }
    }
}

/// Length of an on or off period.
pub(super) fn length(
    spread: PeriodDistribution,
    mean: Duration,
    random: &mut RandomStream,
) -> Duration {
    match spread {
        PeriodDistribution::Fixed => mean,
        PeriodDistribution::Exponential => random.exponential(mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::Bytes;

    fn periods(on_ms: u64, off_ms: u64, spread: PeriodDistribution, member: u64) -> OnOffPeriods {
        let keys = scenario::OnOff {
            on: Duration::from_millis(on_ms),
            off: Duration::from_millis(off_ms),
            rate: None,
            size: Bytes::new(200),
            spread,
            synchronised: false,
        };
        OnOffPeriods::new(
            &keys,
            Instant::ZERO,
            RandomStream::named(3, 0, "reading", member, "load"),
        )
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_share_of_members_in_an_on_period_is_stationary() {
        // 60,000 members, a quarter of them in an on period: the standard deviation is 106.
        for spread in [PeriodDistribution::Fixed, PeriodDistribution::Exponential] {
            for now in [0, 1, 130, 5_000] {
                let active = (0..60_000)
                    .filter(|&member| {
                        let mut periods = periods(100, 300, spread, member);
                        periods.advance(at(now));
                        periods.active()
                    })
                    .count();
                assert!((14_500..15_500).contains(&active), "{spread:?} at {now} ms: {active}");
            }
        }
    }

    #[test]
    fn fixed_lengths_alternate_after_the_first_period() {
        let mut periods = periods(100, 300, PeriodDistribution::Fixed, 1);
        let (first, was_active) = (periods.until(), periods.active());
        assert!(first <= at(if was_active { 100 } else { 300 }));
        periods.advance(first);
        assert_eq!(periods.active(), !was_active);
        let length = Duration::from_millis(if was_active { 300 } else { 100 });
        assert_eq!(periods.until(), first + length);
        // Advancing over many cycles at once gives the same result as single steps.
        periods.advance(first + Duration::from_millis(4_000));
        assert_eq!(
            (periods.active(), periods.until()),
            (!was_active, first + Duration::from_millis(4_000) + length)
        );
    }

    #[test]
    fn without_on_time_the_process_stays_off() {
        let periods = periods(0, 300, PeriodDistribution::Exponential, 0);
        assert_eq!((periods.active(), periods.until()), (false, Instant::NEVER));
    }

    #[test]
    fn the_state_of_a_meter_is_small() {
        // There may be a million meters, each with one state.
        assert!(size_of::<OnOffPeriods>() <= 64, "{}", size_of::<OnOffPeriods>());
    }
}
