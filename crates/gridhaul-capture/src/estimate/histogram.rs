//! Distributions of delays in a fixed amount of memory.

use gridhaul_scenario::units::Duration;

/// Weights of delays, in classes whose limits grow by a factor of 2^(1/8).
#[derive(Debug, Clone, Default)]
pub(crate) struct DelayHistogram {
    classes: Vec<u64>,
    total: u64,
    max: Duration,
    sum_s: f64,
}

/// Classes of a doubling.
const CLASSES: f64 = 8.0;

impl DelayHistogram {
    /// Adds a delay with a weight.
    pub(crate) fn add(&mut self, delay: Duration, weight: u64) {
        let class = Self::class_of(delay);
        if self.classes.len() <= class {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += weight;
        self.total += weight;
        self.max = self.max.max(delay);
        self.sum_s += delay.as_secs_f64() * weight as f64;
    }

    /// Weight of delays that are longer.
    pub(crate) fn above(&self, delay: Duration) -> u64 {
        self.classes.iter().skip(Self::class_of(delay) + 1).sum()
    }

    /// Weight of the classes before this one.
    pub(super) fn below(&self, class: usize) -> u64 {
        self.classes.iter().take(class).sum()
    }

    /// Number of classes up to that of the longest delay.
    pub(super) const fn classes(&self) -> usize {
        self.classes.len()
    }

    /// The class of a delay: 0 is below a microsecond.
    pub(super) fn class_of(delay: Duration) -> usize {
        let micros = delay.as_nanos() as f64 / 1e3;
        if micros < 1.0 { 0 } else { 1 + (micros.log2() * CLASSES) as usize }
    }

    /// The smallest delay of a class.
    pub(super) fn lower_limit(class: usize) -> Duration {
        let exponent = class.saturating_sub(1) as f64 / CLASSES;
        Duration::from_secs_f64(if class == 0 { 0.0 } else { exponent.exp2() * 1e-6 })
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }
    pub(crate) fn mean_s(&self) -> f64 {
        self.sum_s / self.total.max(1) as f64
    }
    pub(crate) const fn max(&self) -> Duration {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_above_a_delay_does_not_include_its_own_class() {
        let mut histogram = DelayHistogram::default();
        for millis in [1, 10, 100] {
            histogram.add(Duration::from_millis(millis), millis);
        }
        assert_eq!(histogram.above(Duration::from_millis(10)), 100);
        assert_eq!(histogram.above(Duration::from_millis(5)), 110);
        assert_eq!((histogram.total(), histogram.max()), (111, Duration::from_millis(100)));
        let class = DelayHistogram::class_of(Duration::from_millis(10));
        assert_eq!((histogram.below(class), histogram.below(class + 1)), (1, 11));
        let limits = [class, class + 1].map(DelayHistogram::lower_limit);
        assert!((limits[0]..limits[1]).contains(&Duration::from_millis(10)), "{limits:?}");
    }
}
