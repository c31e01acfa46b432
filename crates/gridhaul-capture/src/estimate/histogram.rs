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
        let class = class(delay);
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
        self.classes.iter().skip(class(delay) + 1).sum()
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

/// Class 0 is below a microsecond.
fn class(delay: Duration) -> usize {
    let micros = delay.as_nanos() as f64 / 1e3;
    if micros < 1.0 { 0 } else { 1 + (micros.log2() * CLASSES) as usize }
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
    }
}
