//! Tolerances: the largest accepted difference between two answers.

use std::fmt;
use std::str::FromStr;

use gridhaul_report::verdict::{SINGLE_RUN_MARGIN, TOLERANCE_MARGIN};
use gridhaul_report::{ValueRange, Verdict, format};

use crate::paper::figure::CurvePoint;
use crate::paper::select::serde_as_text;

/// Largest accepted difference: absolute (`0.02`) or relative to the second value (`10 %`). With
/// `or interval`, values also agree within their joint 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tolerance {
    pub(in crate::paper) limit: Limit,
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
    /// Verdict on the difference of two values. The joint half width of independent means is the
    /// root sum of squares; a value without an interval is exact, unless it was measured: then its
    /// spread is unknown.
    pub(super) fn verdict(
        self,
        [ours, theirs]: [CurvePoint; 2],
        [ours_measured, theirs_measured]: [bool; 2],
    ) -> Verdict {
        let joint = |single_run_margin: f64| {
            let half_width = |at: CurvePoint, measured: bool| {
                let unknown = if measured { at.y.abs() * single_run_margin } else { 0.0 };
                if at.disturbed { f64::INFINITY } else { at.ci95.unwrap_or(unknown) }
            };
            half_width(ours, ours_measured).hypot(half_width(theirs, theirs_measured))
        };
        let (Limit::Absolute(limit) | Limit::Relative(limit)) = self.limit;
        let difference = self.limit.difference([ours.y, theirs.y]);
        let is_trustworthy = !ours.disturbed && !theirs.disturbed;
        if self.or_interval && is_trustworthy && (ours.y - theirs.y).abs() <= joint(0.0) {
            return Verdict::Agrees;
        }
        let mut margin = 0.0;
        if ours_measured || theirs_measured {
            let uncertainty =
                self.limit.difference([theirs.y + joint(SINGLE_RUN_MARGIN), theirs.y]);
            margin = uncertainty + TOLERANCE_MARGIN * limit;
        }
        // A difference has no lower limit.
        ValueRange::around(difference, margin).within(f64::NEG_INFINITY, limit)
    }
}

impl Limit {
    /// Difference of two values, absolute or in percent as this limit.
    pub(in crate::paper) fn difference(self, [ours, theirs]: [f64; 2]) -> f64 {
        let difference = (ours - theirs).abs();
        match self {
            Self::Absolute(_) => difference,
            Self::Relative(_) if difference == 0.0 => 0.0,
            Self::Relative(_) => difference / theirs.abs() * 100.0,
        }
    }

    /// The same kind of limit with another number.
    pub(in crate::paper) fn with(self, number: f64) -> Self {
        match self {
            Self::Absolute(_) => Self::Absolute(number),
            Self::Relative(_) => Self::Relative(number),
        }
    }
}

impl FromStr for Tolerance {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || {
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
        let limit = limit.ok_or_else(invalid)?;
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
