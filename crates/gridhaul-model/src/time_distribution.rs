//! Distributions of times, as weights at places: for sums of waits that have no formula together.

use crate::queue::Delay;

/// A distribution of a time that is not negative: how likely each of its values is.
///
/// Values nearer to each other than 3 % are taken together at their mean, so that means are kept and
/// quantiles are right to about a percent of what varies; what is fixed is kept apart and exact.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeDistribution {
    /// Added to all values, in seconds.
    fixed: f64,
    /// Value in seconds and weight, in rising order; weights sum to 1.
    atoms: Vec<(f64, f64)>,
}

/// Values below this many seconds are taken together.
const SHORT: f64 = 1e-6;
/// Bits of a number below those that tell it from its neighbours: 5 of the mantissa do, so that
/// between two places there are 2 to 3 %.
const COARSE: u32 = 52 - 5;
/// Weight below which a value is forgotten.
const NEGLIGIBLE: f64 = 1e-12;

impl TimeDistribution {
    /// Always the same.
    pub(crate) fn exactly(seconds: f64) -> Self {
        Self { fixed: seconds, atoms: vec![(0.0, 1.0)] }
    }

    /// Values with their weights, which need not sum to 1. `None` without any weight.
    pub(crate) fn of(values: Vec<(f64, f64)>) -> Option<Self> {
        let sum: f64 = values.iter().map(|value| value.1).sum();
        let possible = sum > 0.0 && sum.is_finite();
        possible.then(|| {
            let longest = values.iter().map(|value| value.0).fold(0.0, f64::max);
            let mut bins = Bins::up_to(longest);
            bins.add(values.into_iter());
            Self { fixed: 0.0, atoms: bins.atoms(sum) }
        })
    }

    /// The wait before the own transmission in a queue with this service time in seconds.
    pub(crate) fn wait(delay: Delay, service: f64) -> Self {
        // Denser near nothing, where most of a short queue's waits are.
        let end = delay.longest();
        let at = |step: u32| end * (f64::from(step) / f64::from(STEPS)).powi(2);
        let mut below = delay.waits_within(0.0);
        let mut atoms = vec![(0.0, below)];
        for step in 1..=STEPS {
            let within = if step < STEPS { delay.waits_within(at(step)) } else { 1.0 };
            let middle = f64::midpoint(at(step - 1), at(step));
            atoms.push((middle * service, (within - below).max(0.0)));
            below = within.max(below);
        }
        Self::of(atoms).unwrap_or_else(|| Self::exactly(0.0))
    }

    /// The sum of two independent times.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let fixed = self.fixed + other.fixed;
        if let [(at, _)] = other.atoms[..] {
            return Self { fixed: fixed + at, atoms: self.atoms.clone() };
        }
        if let [(at, _)] = self.atoms[..] {
            return Self { fixed: fixed + at, atoms: other.atoms.clone() };
        }
        let mut bins = Bins::up_to(self.longest() + other.longest());
        for &(a, weight) in &self.atoms {
            bins.add(other.atoms.iter().map(|&(b, share)| (a + b, weight * share)));
        }
        Self { fixed, atoms: bins.atoms(1.0) }
    }

    /// The sum of this many independent times like this one.
    pub(crate) fn times(&self, count: u32) -> Self {
        let mut sum = Self::exactly(0.0);
        let (mut power, mut left) = (self.clone(), count);
        while left > 0 {
            if left % 2 == 1 {
                sum = sum.plus(&power);
            }
            left /= 2;
            if left > 0 {
                power = power.plus(&power);
            }
        }
        sum
    }

    /// What is left of it after another time has gone by.
    pub(crate) fn after(&self, gone: &Self) -> Self {
        let ahead = self.fixed - gone.fixed;
        let mut bins = Bins::up_to((ahead + self.longest()).max(0.0));
        for &(a, weight) in &self.atoms {
            let all = gone.atoms.iter();
            bins.add(all.map(|&(b, share)| ((ahead + a - b).max(0.0), weight * share)));
        }
        Self { fixed: 0.0, atoms: bins.atoms(1.0) }
    }

    /// The longest value, without what is fixed.
    fn longest(&self) -> f64 {
        self.atoms.last().map_or(0.0, |atom| atom.0)
    }

    /// Mean, in seconds.
    pub(crate) fn mean(&self) -> f64 {
        self.fixed + self.atoms.iter().map(|&(at, weight)| at * weight).sum::<f64>()
    }

    /// Weight of what is at most this long.
    pub(crate) fn within(&self, seconds: f64) -> f64 {
        // From what is longer: shares near 1 keep their digits, and all of it is exactly 1.
        let beyond = self.atoms.iter().rev().take_while(|&&(at, _)| self.fixed + at > seconds);
        (1.0 - beyond.map(|atom| atom.1).sum::<f64>()).clamp(0.0, 1.0)
    }

    /// Time within which a share of it is.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut below = 0.0;
        for &(at, weight) in &self.atoms {
            below += weight;
            if below >= share - 1e-9 {
                return self.fixed + at;
            }
        }
        self.fixed + self.longest()
    }
}

/// Places at which the distribution of a wait is looked up.
const STEPS: u32 = 96;

/// Values in bins: neighbours are taken together.
struct Bins {
    /// Values times their weights, and weights.
    bins: Vec<(f64, f64)>,
}

impl Bins {
    /// Bins for values up to the longest.
    fn up_to(longest: f64) -> Self {
        Self { bins: vec![(0.0, 0.0); Self::place(longest) + 1] }
    }

    fn place(at: f64) -> usize {
        // The bits of positive numbers are in their order.
        let lowest = SHORT.to_bits() >> COARSE;
        (at.max(SHORT).to_bits() >> COARSE).saturating_sub(lowest) as usize
    }

    /// Adds values with their weights: fastest where neighbours follow each other.
    fn add(&mut self, values: impl Iterator<Item = (f64, f64)>) {
        let (mut place, mut moment, mut mass) = (0, 0.0, 0.0);
        for (at, weight) in values {
            let next = Self::place(at);
            if next != place {
                self.put(place, moment, mass);
                (place, moment, mass) = (next, 0.0, 0.0);
            }
            moment += at * weight;
            mass += weight;
        }
        self.put(place, moment, mass);
    }

    fn put(&mut self, place: usize, moment: f64, mass: f64) {
        let (all, sum) = &mut self.bins[place];
        *all += moment;
        *sum += mass;
    }

    /// The mean and the weight of each box in which there is something, weights divided by their sum.
    fn atoms(self, sum: f64) -> Vec<(f64, f64)> {
        let full = self.bins.into_iter().filter(|(_, mass)| *mass > NEGLIGIBLE * sum);
        let mut atoms: Vec<(f64, f64)> = full.map(|(moment, mass)| (moment / mass, mass)).collect();
        let kept: f64 = atoms.iter().map(|atom| atom.1).sum();
        for atom in &mut atoms {
            atom.1 /= kept;
        }
        atoms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Mm1b;
    use proptest::prelude::*;

    fn of(values: &[(f64, f64)]) -> TimeDistribution {
        TimeDistribution::of(values.to_vec()).unwrap()
    }

    #[test]
    fn two_dice_by_hand() {
        let coin = of(&[(1.0, 0.5), (3.0, 0.5)]);
        let both = coin.plus(&coin).plus(&TimeDistribution::exactly(10.0));
        for (within, share) in [(11.9, 0.0), (12.0, 0.25), (14.0, 0.75), (16.0, 1.0)] {
            assert!((both.within(within + 1e-9) - share).abs() < 1e-12, "{within}");
        }
        assert!((both.quantile(0.5) - 14.0).abs() < 1e-9 && (both.mean() - 14.0).abs() < 1e-12);
        assert!((coin.times(5).mean() - 10.0).abs() < 1e-12 && coin.times(0).mean() == 0.0);
        // Of 1 or 3 seconds, 2 have gone by: nothing or one is left.
        let left = coin.after(&TimeDistribution::exactly(2.0));
        assert!((left.mean() - 0.5).abs() < 1e-12 && (left.within(0.0) - 0.5).abs() < 1e-12);
        assert!(TimeDistribution::of(vec![(1.0, 0.0)]).is_none());
    }

    #[test]
    fn the_wait_of_a_queue_without_limit_is_exponential() {
        // M/M/1 at ρ = 0.8, services of 10 ms: P(W > t) = 0.8 e^(−20 t), mean 40 ms.
        let wait = TimeDistribution::wait(Mm1b::new(0.8, 10_000).unwrap().delay(), 0.01);
        assert!((wait.within(0.0) - 0.2).abs() < 1e-9);
        assert!((wait.mean() / 0.04 - 1.0).abs() < 0.01, "{}", wait.mean());
        for share in [0.5, 0.9, 0.98, 0.999] {
            let exact = -((1.0_f64 - share) / 0.8).ln() / 20.0;
            assert!((wait.quantile(share) / exact - 1.0).abs() < 0.03, "{share}");
        }
    }

    proptest! {
        #[test]
        fn waits_have_the_mean_of_their_queue(log in -5.0..5.0_f64, b in 1_u32..10_000) {
            let queue = Mm1b::new(log.exp(), b).unwrap();
            let wait = TimeDistribution::wait(queue.delay(), 1.0);
            let mean = queue.sojourn() - 1.0;
            prop_assert!((wait.mean() - mean).abs() < 0.03 * mean + 1e-3, "{} {}", wait.mean(), mean);
        }

        #[test]
        fn sums_keep_mass_mean_and_order(
            values in proptest::collection::vec((1e-9..1e5_f64, 1e-6..1.0_f64), 1..200),
            more in proptest::collection::vec((1e-9..1e5_f64, 1e-6..1.0_f64), 1..200),
        ) {
            let (a, b) = (of(&values), of(&more));
            let sum = a.plus(&b);
            prop_assert!((sum.mean() / (a.mean() + b.mean()) - 1.0).abs() < 1e-6);
            prop_assert!((sum.within(f64::INFINITY) - 1.0).abs() < 1e-9);
            prop_assert!(sum.quantile(0.5) <= sum.quantile(0.98) && sum.quantile(0.0) >= 0.0);
        }
    }
}
