//! When periods begin and end.

use gridhaul_scenario::scenario::{self, Spread};
use gridhaul_scenario::units::{Duration, Instant};

use crate::random::RandomStream;

/// OnOffPeriods and the silences between them, independent of everything else.
///
/// They start in their stationary state: within a burst with probability `on / (on + off)`, at a
/// random place of it. A burst of no length never begins.
#[derive(Debug, Clone)]
pub struct OnOffPeriods {
    on: Duration,
    off: Duration,
    spread: Spread,
    active: bool,
    until: Instant,
    random: RandomStream,
}

impl OnOffPeriods {
    /// OnOffPeriods as `keys` have them, from `start` on, in their stationary state.
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

    /// Whether a burst is under way.
    #[inline]
    #[must_use]
    pub const fn active(&self) -> bool {
        self.active
    }

    /// When the burst or the silence that is under way ends.
    #[inline]
    #[must_use]
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Takes every burst and silence that ends at or before `now`.
    pub fn advance(&mut self, now: Instant) {
        while self.until <= now {
            self.switch();
        }
    }

    /// Ends the burst or the silence that is under way, and begins the next.
    fn switch(&mut self) {
        self.active = !self.active;
        let mean = if self.active { self.on } else { self.off };
        self.until += length(self.spread, mean, &mut self.random);
    }

    /// The stream of chance, for whoever goes on alone.
    pub(super) fn into_random(self) -> RandomStream {
        self.random
    }

    /// What is left of a length at a random time within it. An exponential length has no memory;
    /// of a fixed one any part is left with equal probability.
    fn residual(&mut self, mean: Duration) -> Duration {
        match self.spread {
            Spread::Fixed => self.random.uniform(mean),
            Spread::Exponential => self.random.exponential(mean),
        }
    }
}

/// A length of a burst or a silence.
pub(super) fn length(spread: Spread, mean: Duration, random: &mut RandomStream) -> Duration {
    match spread {
        Spread::Fixed => mean,
        Spread::Exponential => random.exponential(mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::Bytes;

    fn periods(on_ms: u64, off_ms: u64, spread: Spread, member: u64) -> OnOffPeriods {
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
    fn at_any_time_the_share_in_a_burst_is_the_stationary_one() {
        // 60,000 members, a quarter of them in a burst: the standard deviation is 106.
        for spread in [Spread::Fixed, Spread::Exponential] {
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
    fn fixed_lengths_alternate_after_the_first() {
        let mut periods = periods(100, 300, Spread::Fixed, 1);
        let (first, was_active) = (periods.until(), periods.active());
        assert!(first <= at(if was_active { 100 } else { 300 }));
        periods.advance(first);
        assert_eq!(periods.active(), !was_active);
        let length = Duration::from_millis(if was_active { 300 } else { 100 });
        assert_eq!(periods.until(), first + length);
        // Many cycles at once end where single steps do.
        periods.advance(first + Duration::from_millis(4_000));
        assert_eq!(
            (periods.active(), periods.until()),
            (!was_active, first + Duration::from_millis(4_000) + length)
        );
    }

    #[test]
    fn a_burst_of_no_length_never_begins() {
        let periods = periods(0, 300, Spread::Exponential, 0);
        assert_eq!((periods.active(), periods.until()), (false, Instant::NEVER));
    }

    #[test]
    fn the_state_of_a_meter_is_small() {
        // A million meters have one each.
        assert!(size_of::<OnOffPeriods>() <= 64, "{}", size_of::<OnOffPeriods>());
    }
}
