//! Discrete probability distributions of times, to add waiting times whose sum has no closed form.

use crate::queue::{Delay, FiniteSource};

/// The probability distribution of a non-negative time.
///
/// Values that differ by less than 3 % share one bin at their mean. Means are therefore exact, and
/// quantiles of the random part are accurate to about 1 %. The constant part is stored separately
/// and is exact.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeDistribution {
    /// Constant part that is added to all values, in seconds.
    fixed: f64,
    /// Value in seconds and probability, in rising order; the probabilities sum to 1.
    atoms: Vec<(f64, f64)>,
}

/// Values below this many seconds share one bin.
const SHORT: f64 = 1e-6;
/// The bits that remain of [`SHORT`], which are those of the first bin.
const LOWEST: u64 = SHORT.to_bits() >> COARSE;
/// Low bits of an `f64` that are ignored: five bits of the mantissa remain, so that bins are
/// 2 to 3 % wide.
const COARSE: u32 = 52 - 5;
/// Number of values for the uniform distribution of a blocked item.
const BLOCKED_STEPS: u32 = 8;
/// Probability below which a bin is dropped.
const NEGLIGIBLE: f64 = 1e-12;

impl TimeDistribution {
    /// The distribution of a constant.
    pub(crate) fn exactly(seconds: f64) -> Self {
        Self { fixed: seconds, atoms: vec![(0.0, 1.0)] }
    }

    /// A distribution from values and weights, which need not sum to 1. `None` if the weights sum
    /// to zero.
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

    /// The waiting time in a queue before the packet's own transmission; `service` is the service
    /// time in seconds.
    pub(crate) fn wait(delay: Delay, service: f64) -> Self {
        let wait = delay.wait();
        Self::from_shares(delay.longest(), service, |t| wait.within(t))
    }

    /// As [`Self::wait`], for a queue whose senders wait for their own messages.
    pub(crate) fn closed_wait(queue: &FiniteSource, service: f64) -> Self {
        Self::from_shares(queue.longest(), service, |t| queue.waits_within(t))
    }

    /// A distribution of times up to `end` from the probabilities of at most t service times.
    fn from_shares(end: f64, service: f64, waits_within: impl Fn(f64) -> f64) -> Self {
        // The grid is denser near zero, where most waiting times of a short queue are.
        let at = |step: u32| end * (f64::from(step) / f64::from(STEPS)).powi(2);
        let mut below = waits_within(0.0);
        let mut atoms = vec![(0.0, below)];
        for step in 1..=STEPS {
            let within = if step < STEPS { waits_within(at(step)) } else { 1.0 };
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
        for &(at, weight) in &self.atoms {
            bins.add_sums(at, weight, &other.atoms);
        }
        Self { fixed, atoms: bins.atoms(1.0) }
    }

    /// The sum of `count` independent times with this distribution.
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

    /// The remainder max(self − elapsed, 0), with `elapsed` independent.
    pub(crate) fn after(&self, elapsed: &Self) -> Self {
        let offset = self.fixed - elapsed.fixed;
        let mut bins = Bins::up_to((offset + self.longest()).max(0.0));
        for &(a, weight) in &self.atoms {
            let all = elapsed.atoms.iter();
            bins.add(all.map(|&(b, share)| ((offset + a - b).max(0.0), weight * share)));
        }
        Self { fixed: 0.0, atoms: bins.atoms(1.0) }
    }

    /// The delays in a stream delivered in order, of which `self` is the delay of each item by
    /// itself: an item that is delayed by t also blocks the items that follow within t, at this
    /// mean rate.
    pub(crate) fn in_order(&self, per_second: f64) -> Self {
        let mut values = Vec::with_capacity(self.atoms.len() * (1 + BLOCKED_STEPS as usize));
        let mut blocked = 0.0;
        for &(at, weight) in self.atoms.iter().filter(|atom| atom.0 > SHORT) {
            // The items arrive at uniformly distributed times within the delay.
            let part = per_second * at * weight / f64::from(BLOCKED_STEPS);
            let left = |step: u32| at * (f64::from(step) + 0.5) / f64::from(BLOCKED_STEPS);
            values.extend((0..BLOCKED_STEPS).map(|step| (left(step), part)));
            blocked += part * f64::from(BLOCKED_STEPS);
        }
        for &(at, weight) in &self.atoms {
            let weight = if at > SHORT { weight } else { (weight - blocked).max(0.0) };
            values.push((at, weight));
        }
        let random = Self::of(values).unwrap_or_else(|| self.clone());
        Self { fixed: self.fixed + random.fixed, ..random }
    }

    /// The longest value of the random part.
    fn longest(&self) -> f64 {
        self.atoms.last().map_or(0.0, |atom| atom.0)
    }

    /// Mean, in seconds.
    pub(crate) fn mean(&self) -> f64 {
        self.fixed + self.atoms.iter().map(|&(at, weight)| at * weight).sum::<f64>()
    }

    /// Probability of at most this time.
    pub(crate) fn within(&self, seconds: f64) -> f64 {
        // Computed from the complement, so that probabilities near 1 keep their digits and the full
        // range gives exactly 1.
        let beyond = self.atoms.iter().rev().take_while(|&&(at, _)| self.fixed + at > seconds);
        (1.0 - beyond.map(|atom| atom.1).sum::<f64>()).clamp(0.0, 1.0)
    }

    /// Quantile: the time that is not exceeded with probability `share`.
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

/// Grid points at which the distribution of a waiting time is evaluated.
const STEPS: u32 = 96;

/// A histogram with logarithmic bins.
struct Bins {
    /// Per bin: sum of the values times their weights, and sum of the weights.
    bins: Vec<(f64, f64)>,
}

impl Bins {
    /// Bins for values up to `longest`.
    fn up_to(longest: f64) -> Self {
        Self { bins: vec![(0.0, 0.0); Self::place(longest) + 1] }
    }

    fn place(at: f64) -> usize {
        // The bit patterns of positive numbers have the order of the numbers.
        (at.max(SHORT).to_bits() >> COARSE).saturating_sub(LOWEST) as usize
    }

    /// Adds values with their weights; fastest when values of the same bin are adjacent.
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

    /// Adds the sum of a value and each of some others, which are in rising order, with the product
    /// of their weights: as [`Self::add`], but a bin is left at its end, which takes a comparison.
    fn add_sums(&mut self, at: f64, weight: f64, others: &[(f64, f64)]) {
        let (mut place, mut end, mut moment, mut mass) = (0, 0, 0.0, 0.0);
        for &(other, share) in others {
            let sum = at + other;
            if sum.to_bits() >= end {
                self.put(place, moment, mass);
                let bits = sum.max(SHORT).to_bits() >> COARSE;
                (place, end) = ((bits - LOWEST) as usize, (bits + 1) << COARSE);
                (moment, mass) = (0.0, 0.0);
            }
            let part = weight * share;
            moment += sum * part;
            mass += part;
        }
        self.put(place, moment, mass);
    }

    fn put(&mut self, place: usize, moment: f64, mass: f64) {
        let (all, sum) = &mut self.bins[place];
        *all += moment;
        *sum += mass;
    }

    /// The mean and the weight of each non-empty bin; weights are divided by their sum.
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
    fn sums_of_two_values_by_hand() {
        let value = of(&[(1.0, 0.5), (3.0, 0.5)]);
        let both = value.plus(&value).plus(&TimeDistribution::exactly(10.0));
        for (within, share) in [(11.9, 0.0), (12.0, 0.25), (14.0, 0.75), (16.0, 1.0)] {
            assert!((both.within(within + 1e-9) - share).abs() < 1e-12, "{within}");
        }
        assert!((both.quantile(0.5) - 14.0).abs() < 1e-9 && (both.mean() - 14.0).abs() < 1e-12);
        assert!((value.times(5).mean() - 10.0).abs() < 1e-12 && value.times(0).mean() == 0.0);
        // 1 or 3 seconds minus 2: nothing or one second remains.
        let left = value.after(&TimeDistribution::exactly(2.0));
        assert!((left.mean() - 0.5).abs() < 1e-12 && (left.within(0.0) - 0.5).abs() < 1e-12);
        assert!(TimeDistribution::of(vec![(1.0, 0.0)]).is_none());
    }

    #[test]
    fn a_delayed_item_blocks_the_items_that_follow() {
        // 1 % of the items wait for 2 s, in which 4 others arrive at 2 per second: 4 % wait for 1 s
        // on average.
        let single = of(&[(0.0, 0.99), (2.0, 0.01)]);
        let all = single.in_order(2.0);
        assert!((all.mean() - (0.01 * 2.0 + 0.04 * 1.0)).abs() < 1e-9, "{}", all.mean());
        assert!((all.within(1e-3) - 0.95).abs() < 1e-9 && (all.within(1.0) - 0.97).abs() < 1e-9);
        assert_eq!(single.in_order(0.0), single);
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
            prop_assert!(
                (wait.mean() - mean).abs() < 0.03 * mean + 1e-3,
                "{} {}", wait.mean(), mean
            );
        }

        #[test]
        fn the_sums_of_a_row_are_in_the_bins_of_single_values(
            at in 0.0..10.0_f64,
            values in proptest::collection::vec((0.0..1e3_f64, 1e-6..1.0_f64), 1..200),
        ) {
            let others = of(&values).atoms;
            let longest = at + others.last().map_or(0.0, |other| other.0);
            let (mut row, mut single) = (Bins::up_to(longest), Bins::up_to(longest));
            row.add_sums(at, 0.3, &others);
            single.add(others.iter().map(|&(other, share)| (at + other, 0.3 * share)));
            prop_assert_eq!(row.bins, single.bins);
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
