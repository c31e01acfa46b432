//! Measured quantities with their intervals, and comparisons that hold or do not for all values of
//! an interval.

use gridhaul_report::verdict::{ValueRange, Verdict};

use crate::experiment::cells::CellResult;
use crate::experiment::reserve::plan::Cell;
use crate::method::Spread;

/// A quantity in seconds: median over the repetitions, and the order statistics between which the
/// median of all possible repetitions is with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// A quantity of a repetition.
pub(super) type Quantity = fn(&CellResult) -> f64;

/// The mean latency.
pub(super) const MEAN: Quantity = |result| result.mean_s;

/// The largest latency.
pub(super) const MAX: Quantity = |result| result.max_s;

/// The standard deviation of the latency, which orders as the variance does.
pub(super) const DEVIATION: Quantity = |result| result.deviation_s;

impl Estimate {
    /// The quantity in the repetitions of a cell in which the generator was on time; `None` if they
    /// are too few for an interval.
    pub(super) fn of(cell: &Cell, quantity: Quantity) -> Option<Self> {
        let spread = Spread::of(cell.valid().map(quantity))?;
        let [low, high] = spread.interval?;
        Some(Self { median: spread.median, low, high })
    }

    /// The interval with both bounds moved away from each other by a share.
    pub(super) fn widened(self, margin: f64) -> Self {
        Self { low: self.low / (1.0 + margin), high: self.high * (1.0 + margin), ..self }
    }

    pub(super) fn times(self, factor: f64) -> Self {
        Self { median: self.median * factor, low: self.low * factor, high: self.high * factor }
    }

    pub(super) fn is_below(self, other: Self) -> Verdict {
        if self.high < other.low {
            Verdict::Agrees
        } else if self.low >= other.high {
            Verdict::Differs
        } else {
            Verdict::Undecided
        }
    }

    pub(super) fn is_within(self, [low, high]: [f64; 2]) -> Verdict {
        ValueRange { low: self.low, high: self.high }.within(low, high)
    }

    /// In milliseconds: the median, and the interval.
    pub(super) fn text(self) -> String {
        let Self { median, low, high } = self;
        let ms = |seconds: f64| {
            let ms = seconds * 1e3;
            if ms < 10.0 { format!("{ms:.2}") } else { format!("{ms:.1}") }
        };
        format!("{} ({} to {})", ms(median), ms(low), ms(high))
    }
}

/// All of these verdicts: one that differs decides; unknown without one.
pub(super) fn all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    verdicts.into_iter().reduce(both).unwrap_or(Verdict::Unknown)
}

/// Both verdicts.
pub(super) const fn both(one: Verdict, other: Verdict) -> Verdict {
    match (one, other) {
        (Verdict::Differs, _) | (_, Verdict::Differs) => Verdict::Differs,
        (Verdict::Agrees, Verdict::Agrees) => Verdict::Agrees,
        (Verdict::Unknown, _) | (_, Verdict::Unknown) => Verdict::Unknown,
        _ => Verdict::Undecided,
    }
}

/// The verdict of a statement that is certainly true or certainly false; `None` if it is unknown.
pub(super) const fn certain(holds: Option<bool>) -> Verdict {
    match holds {
        Some(true) => Verdict::Agrees,
        Some(false) => Verdict::Differs,
        None => Verdict::Unknown,
    }
}

/// Whether most of these verdicts hold.
pub(super) fn most(verdicts: &[Verdict]) -> Verdict {
    let count = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let (yes, no) = (count(Verdict::Agrees), count(Verdict::Differs));
    if 2 * yes > verdicts.len() {
        Verdict::Agrees
    } else if 2 * no >= verdicts.len() && !verdicts.is_empty() {
        Verdict::Differs
    } else if verdicts.is_empty() {
        Verdict::Unknown
    } else {
        Verdict::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Agrees, Differs, Undecided, Unknown};

    const fn from_to(low: f64, high: f64) -> Estimate {
        Estimate { median: 0.5 * (low + high), low, high }
    }

    #[test]
    fn overlapping_intervals_decide_nothing() {
        assert_eq!(from_to(1.0, 2.0).is_below(from_to(2.1, 3.0)), Agrees);
        assert_eq!(from_to(2.1, 3.0).is_below(from_to(1.0, 2.0)), Differs);
        assert_eq!(from_to(1.0, 2.2).is_below(from_to(2.1, 3.0)), Undecided);
        let wider = |estimate: Estimate| estimate.widened(0.1);
        assert_eq!(wider(from_to(1.0, 2.0)).is_below(wider(from_to(2.1, 3.0))), Undecided);
        assert_eq!(from_to(1.0, 2.0).is_within([1.0, 2.0]), Agrees);
        assert_eq!(from_to(1.0, 2.0).is_within([2.1, 3.0]), Differs);
        assert_eq!(from_to(1.0, 2.0).is_within([1.5, 3.0]), Undecided);
    }

    #[test]
    fn most_counts_what_is_certain() {
        assert_eq!(most(&[Agrees, Agrees, Undecided]), Agrees);
        assert_eq!(most(&[Differs, Differs, Undecided]), Differs);
        assert_eq!(most(&[Agrees, Differs, Undecided]), Undecided);
        assert_eq!(most(&[]), Unknown);
        assert_eq!(all([Agrees, Undecided]), Undecided);
        assert_eq!(all([]), Unknown);
        assert_eq!(all([Agrees, Unknown]), Unknown);
        assert_eq!(all([Unknown, Differs]), Differs);
    }
}
