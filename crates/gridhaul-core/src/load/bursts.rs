//! When bursts begin and end.

use gridhaul_scenario::scenario::{self, PeriodDistribution};
use gridhaul_scenario::units::{Duration, Instant};

use crate::random::RandomStream;

/// Bursts and the silences between them, independent of everything else.
///
/// They start in their stationary state: within a burst with probability `on / (on + off)`, at a
/// random place of it. A burst of no length never begins.
#[derive(Debug, Clone)]
pub struct Bursts {
    on: Duration,
    off: Duration,
    spread: PeriodDistribution,
    active: bool,
    until: Instant,
    chance: RandomStream,
}

impl Bursts {
    /// Bursts as `keys` have them, from `start` on, in their stationary state.
    #[must_use]
    pub fn new(keys: &scenario::OnOff, start: Instant, chance: RandomStream) -> Self {
        let mut bursts = Self {
            on: keys.on,
            off: keys.off,
            spread: keys.spread,
            active: false,
            until: Instant::NEVER,
            chance,
        };
        if keys.on.is_zero() {
            return bursts;
        }
        let cycle = keys.on.as_nanos().saturating_add(keys.off.as_nanos());
        bursts.active = bursts.chance.below(cycle) < keys.on.as_nanos();
        bursts.until = start + bursts.residual(if bursts.active { keys.on } else { keys.off });
        bursts
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
        self.until += length(self.spread, mean, &mut self.chance);
    }

    /// The stream of chance, for whoever goes on alone.
    pub(super) fn into_random(self) -> RandomStream {
        self.chance
    }

    /// What is left of a length at a random time within it. An exponential length has no memory;
    /// of a fixed one any part is left with equal probability.
    fn residual(&mut self, mean: Duration) -> Duration {
        match self.spread {
            PeriodDistribution::Fixed => self.chance.uniform(mean),
            PeriodDistribution::Exponential => self.chance.exponential(mean),
        }
    }
}

/// A length of a burst or a silence.
pub(super) fn length(
    spread: PeriodDistribution,
    mean: Duration,
    chance: &mut RandomStream,
) -> Duration {
    match spread {
        PeriodDistribution::Fixed => mean,
        PeriodDistribution::Exponential => chance.exponential(mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::Bytes;

    fn bursts(on_ms: u64, off_ms: u64, spread: PeriodDistribution, member: u64) -> Bursts {
        let keys = scenario::OnOff {
            on: Duration::from_millis(on_ms),
            off: Duration::from_millis(off_ms),
            rate: None,
            size: Bytes::new(200),
            spread,
            synchronised: false,
        };
        Bursts::new(&keys, Instant::ZERO, RandomStream::named(3, 0, "reading", member, "load"))
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn at_any_time_the_share_in_a_burst_is_the_stationary_one() {
        // 60,000 members, a quarter of them in a burst: the standard deviation is 106.
        for spread in [PeriodDistribution::Fixed, PeriodDistribution::Exponential] {
            for now in [0, 1, 130, 5_000] {
                let active = (0..60_000)
                    .filter(|&member| {
                        let mut bursts = bursts(100, 300, spread, member);
                        bursts.advance(at(now));
                        bursts.active()
                    })
                    .count();
                assert!((14_500..15_500).contains(&active), "{spread:?} at {now} ms: {active}");
            }
        }
    }

    #[test]
    fn fixed_lengths_alternate_after_the_first() {
        let mut bursts = bursts(100, 300, PeriodDistribution::Fixed, 1);
        let (first, was_active) = (bursts.until(), bursts.active());
        assert!(first <= at(if was_active { 100 } else { 300 }));
        bursts.advance(first);
        assert_eq!(bursts.active(), !was_active);
        let length = Duration::from_millis(if was_active { 300 } else { 100 });
        assert_eq!(bursts.until(), first + length);
        // Many cycles at once end where single steps do.
        bursts.advance(first + Duration::from_millis(4_000));
        assert_eq!(
            (bursts.active(), bursts.until()),
            (!was_active, first + Duration::from_millis(4_000) + length)
        );
    }

    #[test]
    fn a_burst_of_no_length_never_begins() {
        let bursts = bursts(0, 300, PeriodDistribution::Exponential, 0);
        assert_eq!((bursts.active(), bursts.until()), (false, Instant::NEVER));
    }

    #[test]
    fn the_state_of_a_meter_is_small() {
        // A million meters have one each.
        assert!(size_of::<Bursts>() <= 64, "{}", size_of::<Bursts>());
    }
}
