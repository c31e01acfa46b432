//! Rate, delay and loss of a link that change in steps.

use crate::units::{BitRate, Duration, Instant, Probability};

/// Values of a link from a time on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkStep {
    /// Time from the beginning of a period.
    pub at: Duration,
    /// Rate; 0 stops the transmitter.
    pub rate: BitRate,
    /// Delay in addition to that of the direction.
    pub delay: Duration,
    /// Probability of an independent loss.
    pub loss: Probability,
}

/// The values of a link as a function of time.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSteps {
    /// In order of time, the first at time 0.
    steps: Vec<LinkStep>,
    every: Option<Duration>,
}

impl LinkSteps {
    /// These steps, which recur with the period `every`. `None` without a step at time 0, or if the
    /// steps are not in order, not within the period, or all of rate 0.
    #[must_use]
    pub fn new(steps: Vec<LinkStep>, every: Option<Duration>) -> Option<Self> {
        let last = steps.last()?.at;
        let is_valid = steps[0].at.is_zero()
            && steps.is_sorted_by_key(|step| step.at)
            && every.is_none_or(|every| every > last)
            && steps.iter().any(|step| step.rate.as_bits_per_sec() > 0);
        is_valid.then_some(Self { steps, every })
    }

    /// The values at a time: of several steps at the same time, those of the last one.
    #[must_use]
    pub fn at(&self, at: Instant) -> &LinkStep {
        let (_, within) = self.split(at);
        &self.steps[self.after(within) - 1]
    }

    /// The first step after a time; [`Instant::NEVER`] if there is none.
    #[must_use]
    pub fn next_change(&self, after: Instant) -> Instant {
        let (start, within) = self.split(after);
        match (self.steps.get(self.after(within)), self.every) {
            (Some(step), _) => start + step.at,
            (None, Some(every)) => start + every,
            (None, None) => Instant::NEVER,
        }
    }

    /// The largest rate.
    #[must_use]
    pub fn rate_max(&self) -> BitRate {
        self.steps.iter().map(|step| step.rate).max().unwrap_or_default()
    }

    /// Start of the period of a time, and the time since then.
    fn split(&self, at: Instant) -> (Instant, Duration) {
        let Some(every) = self.every else { return (Instant::ZERO, at.since(Instant::ZERO)) };
        let start = Instant::ZERO + every * (at.as_nanos() / every.as_nanos());
        (start, at.since(start))
    }

    /// Index of the first step after this time of a period; at least 1.
    fn after(&self, within: Duration) -> usize {
        self.steps.partition_point(|step| step.at <= within)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::scenario::RateSchedule;

    fn step(at_s: u64, kbit: u64) -> LinkStep {
        LinkStep {
            at: Duration::from_secs(at_s),
            rate: BitRate::from_bits_per_sec(kbit * 1_000),
            delay: Duration::ZERO,
            loss: Probability::ZERO,
        }
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn kbit(steps: &LinkSteps, secs: u64) -> u64 {
        steps.at(at(secs)).rate.as_bits_per_sec() / 1_000
    }

    #[test]
    fn a_step_applies_until_the_next_one() {
        let steps = vec![step(0, 100), step(10, 0), step(20, 300), step(20, 50)];
        let steps = LinkSteps::new(steps, None).expect("valid steps");
        assert_eq!([0, 9, 10, 20, 99].map(|secs| kbit(&steps, secs)), [100, 100, 0, 50, 50]);
        let next = [0, 10, 19, 20].map(|secs| steps.next_change(at(secs)));
        assert_eq!(next, [at(10), at(20), at(20), Instant::NEVER]);
        let mean = RateSchedule::of_steps(Arc::new(steps.clone())).mean_rate(at(5), at(25));
        assert_eq!(mean.as_bits_per_sec(), (5 * 100 + 5 * 50) * 1_000 / 20);
        assert_eq!(steps.rate_max().as_bits_per_sec(), 300_000);
    }

    #[test]
    fn steps_recur_with_the_period() {
        let steps = LinkSteps::new(vec![step(0, 100), step(4, 200)], Some(Duration::from_secs(10)));
        let steps = steps.expect("valid steps");
        assert_eq!(
            [0, 4, 9, 10, 14, 25].map(|secs| kbit(&steps, secs)),
            [100, 200, 200, 100, 200, 200]
        );
        assert_eq!([0, 4, 12].map(|secs| steps.next_change(at(secs))), [4, 10, 14].map(at));
        let mean = RateSchedule::of_steps(Arc::new(steps)).mean_rate(at(0), at(40));
        assert_eq!(mean.as_bits_per_sec(), 160_000);
    }

    #[test]
    fn invalid_steps_are_none() {
        let every = Some(Duration::from_secs(5));
        let cases = [
            (vec![], None),
            (vec![step(1, 1)], None),
            (vec![step(0, 1), step(2, 1), step(1, 1)], None),
            (vec![step(0, 1), step(5, 1)], every),
            (vec![step(0, 0)], None),
        ];
        for (steps, every) in cases {
            assert!(LinkSteps::new(steps.clone(), every).is_none(), "{steps:?}");
        }
    }
}
