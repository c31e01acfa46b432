//! Ranges of values in one unit.

use serde_json::Value as Json;

use super::{POINTS_MAX, Refusal, setting};
use crate::scenario::ValueRange;
use crate::units;

/// The values of a range.
///
/// # Errors
/// The path below the range that is wrong, such as `.linear[1]`, and why.
pub(super) fn values(range: &ValueRange) -> Result<Vec<Json>, (String, Refusal)> {
    let whole = |refusal: Refusal| (String::new(), refusal);
    let (ends, log) = match (&range.linear, &range.log) {
        (Some(ends), None) => (ends, false),
        (None, Some(ends)) => (ends, true),
        _ => {
            return Err(whole((
                "a range has either `linear` or `log`".into(),
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
                "for one value write a list: [\"1 Mbit/s\"]".into(),
            ),
        ));
    }
    let end = |index: usize| {
        End::of(&ends[index]).map_err(|refusal| (format!("{below}[{index}]"), refusal))
    };
    let (first, last) = (end(0)?, end(1)?);
    if first.unit != last.unit {
        let told = |end: &End| match end.unit {
            Some(unit) => format!("{unit:?}"),
            None => "no unit".into(),
        };
        return Err((
            below.into(),
            (
                format!("the ends have different units: {} and {}", told(&first), told(&last)),
                "write both ends in one unit; it is the unit of all values".into(),
            ),
        ));
    }
    if log && (first.number <= 0.0 || last.number <= 0.0) {
        return Err((
            below.into(),
            (
                "a logarithmic range has both ends above 0".into(),
                "start above 0, or use `linear`".into(),
            ),
        ));
    }
    let whole = first.whole && last.whole;
    let at = |index: usize| {
        let share = index as f64 / (points - 1) as f64;
        let number = match index {
            // The ends as they are written: a number of 64 bits is not exact as a float.
            0 => return setting::json(&ends[0]),
            _ if index == points - 1 => return setting::json(&ends[1]),
            _ if log => (first.number.ln() * (1.0 - share) + last.number.ln() * share).exp(),
            _ => first.number * (1.0 - share) + last.number * share,
        };
        first.written(number, whole)
    };
    Ok((0..points).map(at).collect())
}

/// One end of a range.
struct End<'a> {
    number: f64,
    unit: Option<&'a str>,
    /// Whether the values between must be whole numbers.
    whole: bool,
}

impl<'a> End<'a> {
    fn of(value: &'a toml::Value) -> Result<Self, Refusal> {
        let fail = || {
            (
                format!("{value} cannot be the end of a range"),
                "write numbers, or texts with a number and a unit: [\"1 ms\", \"9 ms\"]".into(),
            )
        };
        let end = match value {
            toml::Value::Integer(number) => {
                Self { number: *number as f64, unit: None, whole: true }
            }
            toml::Value::Float(number) => Self { number: *number, unit: None, whole: false },
            toml::Value::String(text) => {
                let (number, unit) = units::split(text);
                let number = number.replace('_', "").parse().map_err(|_| fail())?;
                let whole = matches!(unit, "packets" | "segments");
                Self { number, unit: Some(unit), whole }
            }
            _ => return Err(fail()),
        };
        if end.number.is_finite() { Ok(end) } else { Err(fail()) }
    }

    fn written(&self, number: f64, whole: bool) -> Json {
        // Twelve digits: 0.1 + 0.2 is written 0.3.
        let number = if whole { number.round() } else { rounded(number) };
        match self.unit {
            Some(unit) => format!("{number} {unit}").into(),
            None if whole => (number as i64).into(),
            None => number.into(),
        }
    }
}

fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}
