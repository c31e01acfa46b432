//! Values of ranges.

use serde_json::Value as Json;

use super::{POINTS_MAX, Refusal, setting};
use crate::scenario::ValueRange;
use crate::units;

/// The values of a range, each computed on request.
#[derive(Debug, Clone)]
pub(super) struct RangeValues {
    /// The ends exactly as written: a 64-bit integer is not exact as a float.
    written: [Json; 2],
    first: RangeEnd,
    last: RangeEnd,
    /// Whether the ratio of successive values is constant, and not their difference.
    log: bool,
    points: usize,
}

/// The values of a range.
///
/// # Errors
/// The path of the wrong key below the range, such as `.linear[1]`, with message and remedy.
pub(super) fn values(range: &ValueRange) -> Result<RangeValues, (String, Refusal)> {
    let of_range = |refusal: Refusal| (String::new(), refusal);
    let (ends, log) = match (&range.linear, &range.log) {
        (Some(ends), None) => (ends, false),
        (None, Some(ends)) => (ends, true),
        _ => {
            return Err(of_range((
                "expected either `linear` or `log`".into(),
                "write { linear = [first, last], points = 5 }".into(),
            )));
        }
    };
    let below = if log { ".log" } else { ".linear" };
    let points = range.points as usize;
    if !(2..=POINTS_MAX).contains(&points) {
        return Err((
            ".points".into(),
            (
                format!("a range has from 2 to {POINTS_MAX} points, not {points}"),
                "for a single value write a list: [\"1 Mbit/s\"]".into(),
            ),
        ));
    }
    let end = |index: usize| {
        RangeEnd::parse(&ends[index]).map_err(|refusal| (format!("{below}[{index}]"), refusal))
    };
    let (first, last) = (end(0)?, end(1)?);
    if first.unit != last.unit {
        let unit_of = |end: &RangeEnd| match &end.unit {
            Some(unit) => format!("{unit:?}"),
            None => "no unit".into(),
        };
        return Err((
            below.into(),
            (
                format!(
                    "the ends have different units: {} and {}",
                    unit_of(&first),
                    unit_of(&last)
                ),
                "write both ends in the same unit".into(),
            ),
        ));
    }
    if log && (first.number <= 0.0 || last.number <= 0.0) {
        return Err((
            below.into(),
            (
                "both ends of a logarithmic range must be above 0".into(),
                "start above 0, or use `linear`".into(),
            ),
        ));
    }
    Ok(RangeValues { written: [&ends[0], &ends[1]].map(setting::json), first, last, log, points })
}

impl RangeValues {
    pub(super) const fn len(&self) -> usize {
        self.points
    }

    pub(super) fn get(&self, index: usize) -> Json {
        let Self { written, first, last, log, points } = self;
        let share = index as f64 / (points - 1) as f64;
        let number = match index {
            0 => return written[0].clone(),
            _ if index == points - 1 => return written[1].clone(),
            _ if *log => (first.number.ln() * (1.0 - share) + last.number.ln() * share).exp(),
            _ => first.number * (1.0 - share) + last.number * share,
        };
        first.value(number, first.is_whole && last.is_whole)
    }
}

/// One end of a range.
#[derive(Debug, Clone)]
struct RangeEnd {
    number: f64,
    unit: Option<String>,
    /// Whether all values of the range must be whole numbers.
    is_whole: bool,
}

impl RangeEnd {
    fn parse(value: &toml::Value) -> Result<Self, Refusal> {
        let fail = || {
            (
                format!("{value} cannot be the end of a range"),
                "write numbers, or quantities with a unit: [\"1 ms\", \"9 ms\"]".into(),
            )
        };
        let end = match value {
            toml::Value::Integer(number) => {
                Self { number: *number as f64, unit: None, is_whole: true }
            }
            toml::Value::Float(number) => Self { number: *number, unit: None, is_whole: false },
            toml::Value::String(text) => {
                let (number, unit) = units::split(text);
                let number = number.replace('_', "").parse().map_err(|_| fail())?;
                let is_whole = matches!(unit, "packets" | "segments");
                Self { number, unit: Some(unit.to_owned()), is_whole }
            }
            _ => return Err(fail()),
        };
        if end.number.is_finite() { Ok(end) } else { Err(fail()) }
    }

    fn value(&self, number: f64, is_whole: bool) -> Json {
        // Twelve significant digits, so that 0.1 + 0.2 gives 0.3.
        let number = if is_whole { number.round() } else { rounded(number) };
        match &self.unit {
            Some(unit) => format!("{number} {unit}").into(),
            None if is_whole => (number as i64).into(),
            None => number.into(),
        }
    }
}

fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}
