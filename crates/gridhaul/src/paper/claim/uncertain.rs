//! Arithmetic of values with a range: the mean of a measurement, and the interval of its
//! replications.

use super::parse::{Extreme, Operation};

/// A value and the range in which it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Uncertain {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Uncertain {
    pub(super) const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    pub(super) fn abs(self) -> Self {
        let (low, high) = (self.low.abs(), self.high.abs());
        let contains_zero = self.low <= 0.0 && self.high >= 0.0;
        let smallest = if contains_zero { 0.0 } else { low.min(high) };
        Self { value: self.value.abs(), low: smallest, high: low.max(high) }
    }

    pub(super) fn extreme(self, extreme: Extreme, other: Self) -> Self {
        let choose = match extreme {
            Extreme::Minimum => f64::min,
            Extreme::Maximum => f64::max,
        };
        Self {
            value: choose(self.value, other.value),
            low: choose(self.low, other.low),
            high: choose(self.high, other.high),
        }
    }

    pub(super) fn combined(self, operation: Operation, other: Self) -> Self {
        let apply = |a: f64, b: f64| match operation {
            Operation::Plus => a + b,
            Operation::Minus => a - b,
            Operation::Times => a * b,
            Operation::Over => a / b,
        };
        let value = apply(self.value, other.value);
        let is_exact = self.low == self.high && other.low == other.high;
        if is_exact {
            return Self::exact(value);
        }
        if matches!(operation, Operation::Over) && other.low <= 0.0 && other.high >= 0.0 {
            return Self { value, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let corners = [
            apply(self.low, other.low),
            apply(self.low, other.high),
            apply(self.high, other.low),
            apply(self.high, other.high),
        ];
        Self {
            value,
            low: corners.into_iter().fold(f64::INFINITY, f64::min),
            high: corners.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_every_value_of_their_operands() {
        let a = Uncertain { value: 2.0, low: 1.0, high: 3.0 };
        let b = Uncertain { value: -1.0, low: -2.0, high: 1.0 };
        let range = |found: Uncertain| (found.low, found.value, found.high);
        assert_eq!(range(a.combined(Operation::Plus, b)), (-1.0, 1.0, 4.0));
        assert_eq!(range(a.combined(Operation::Minus, b)), (0.0, 3.0, 5.0));
        assert_eq!(range(a.combined(Operation::Times, b)), (-6.0, -2.0, 3.0));
        assert_eq!(range(b.combined(Operation::Over, a)), (-2.0, -0.5, 1.0));
        let by_zero = a.combined(Operation::Over, b);
        assert_eq!(range(by_zero), (f64::NEG_INFINITY, -2.0, f64::INFINITY));
        assert_eq!(range(b.abs()), (0.0, 1.0, 2.0));
        assert_eq!(range(a.extreme(Extreme::Maximum, b)), (1.0, 2.0, 3.0));
        assert_eq!(range(a.extreme(Extreme::Minimum, b)), (-2.0, -1.0, 1.0));
    }
}
