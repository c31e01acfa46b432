//! Tolerances: the largest accepted difference between two answers.

use std::fmt;
use std::str::FromStr;

use gridhaul_report::format;

use crate::paper::expected::serde_as_text;
use crate::paper::figure::CurvePoint;

/// Largest accepted difference: absolute (`0.02`) or relative to the second value (`10 %`). With `or interval`, values
/// also agree within their joint 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tolerance {
    pub(super) limit: Limit,
    or_interval: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Limit {
    /// In the unit of the figure.
    Absolute(f64),
    /// Relative to the second value, in percent.
    Relative(f64),
}

impl Tolerance {
    /// Whether the values agree. The joint half width of independent means is the root sum of squares; a value without an
    /// interval is exact.
    pub(super) fn holds(self, ours: CurvePoint, theirs: CurvePoint) -> bool {
        let joint = ours.ci95.unwrap_or(0.0).hypot(theirs.ci95.unwrap_or(0.0));
        let (Limit::Absolute(limit) | Limit::Relative(limit)) = self.limit;
        self.limit.difference([ours.y, theirs.y]) <= limit
            || self.or_interval && (ours.y - theirs.y).abs() <= joint
    }
}

impl Limit {
    /// Difference of two values, absolute or in percent as this limit.
    pub(super) fn difference(self, [ours, theirs]: [f64; 2]) -> f64 {
        let difference = (ours - theirs).abs();
        match self {
            Self::Absolute(_) => difference,
            Self::Relative(_) if difference == 0.0 => 0.0,
            Self::Relative(_) => difference / theirs.abs() * 100.0,
        }
    }

    /// The same kind of limit with another number.
    pub(super) fn with(self, number: f64) -> Self {
        match self {
            Self::Absolute(_) => Self::Absolute(number),
            Self::Relative(_) => Self::Relative(number),
        }
    }
}

impl FromStr for Tolerance {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is none of \"0.02\", \"10 %\", \"0.02 or interval\", \"10 % or interval\""
            )
        };
        let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| *number >= 0.0);
        let without_interval = text.strip_suffix("or interval").map(str::trim_end);
        let limit = match without_interval.unwrap_or(text).split_once('%') {
            Some((percent, "")) => number(percent).map(Limit::Relative),
            Some(_) => None,
            None => number(without_interval.unwrap_or(text)).map(Limit::Absolute),
        };
        let limit = limit.ok_or_else(wrong)?;
        Ok(Self { limit, or_interval: without_interval.is_some() })
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = if self.or_interval { " or interval" } else { "" };
        write!(f, "{}{or}", self.limit)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absolute(number) => f.write_str(&format::number(*number)),
            Self::Relative(percent) => write!(f, "{} %", format::number(*percent)),
        }
    }
}

serde_as_text!(Tolerance);
