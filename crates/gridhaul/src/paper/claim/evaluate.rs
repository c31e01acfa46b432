//! Evaluation of claims on the curves of one backend.

use super::parse::{
    CurveName, Expression, Extreme, Occurrence, Operation, ParsedClaim, Relation, XRange,
};
use crate::paper::figure::{Curve, CurvePoint};
use gridhaul_report::format;

/// The curves of one backend.
pub(super) struct Curves<'a>(pub(super) Vec<&'a Curve>);

/// Whether a claim holds, with the compared values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evaluation {
    pub(super) holds: bool,
    pub(super) detail: String,
}

/// Evaluates a claim. A claim about a position that no curve has does not hold.
///
/// # Errors
/// A curve or a point is missing.
pub(super) fn evaluate(claim: &ParsedClaim, curves: &Curves<'_>) -> Result<Evaluation, String> {
    match compare(claim, curves) {
        Err(EvaluationError::NoCrossing(detail)) => Ok(Evaluation { holds: false, detail }),
        Err(EvaluationError::MissingData(error)) => Err(error),
        Ok(found) => Ok(found),
    }
}

/// Why an expression has no value.
#[derive(Debug)]
enum EvaluationError {
    /// No point of a curve satisfies the relation.
    NoCrossing(String),
    /// A curve or a point is missing.
    MissingData(String),
}

impl From<String> for EvaluationError {
    fn from(error: String) -> Self {
        Self::MissingData(error)
    }
}

fn compare(claim: &ParsedClaim, curves: &Curves<'_>) -> Result<Evaluation, EvaluationError> {
    let Some(XRange { share, from, to }) = claim.range_of_x else {
        let (left, right) = (curves.value(&claim.left, None)?, curves.value(&claim.right, None)?);
        let holds = claim.relation.holds(left, right);
        let relation = if holds { claim.relation } else { claim.relation.opposite() };
        let detail = format!("{} {relation} {}", format::number(left), format::number(right));
        return Ok(Evaluation { holds, detail });
    };
    let positions = curves.positions(&claim.curves(), from, to)?;
    let mut failing = Vec::new();
    for x in &positions {
        let (left, right) =
            (curves.value(&claim.left, Some(*x))?, curves.value(&claim.right, Some(*x))?);
        if !claim.relation.holds(left, right) {
            failing.push(*x);
        }
    }
    let holding = positions.len() - failing.len();
    let mut detail = format!("{holding} of {} points", positions.len());
    if let (Some(first), Some(last)) = (failing.first(), failing.last()) {
        let (first, last) = (format::number(*first), format::number(*last));
        detail += &if failing.len() == 1 {
            format!("; not at {first}")
        } else {
            format!("; not between {first} and {last}")
        };
    }
    Ok(Evaluation { holds: holding as f64 >= share * positions.len() as f64, detail })
}

impl Curves<'_> {
    fn value(&self, expression: &Expression, x: Option<f64>) -> Result<f64, EvaluationError> {
        match expression {
            Expression::Number(number) => Ok(*number),
            Expression::X => x.ok_or_else(|| {
                "x has a value only in a claim with \"for ... of x in\"".to_owned().into()
            }),
            Expression::Value(name, place) => {
                let place = self.value(place, x)?;
                let found = self.curve(name)?.at(place);
                let found = found
                    .ok_or_else(|| format!("{name} has no point at {}", format::number(place)))?;
                Ok(found.y)
            }
            Expression::Extreme(extreme, name, range) => {
                let within = |place: &&CurvePoint| {
                    range.is_none_or(|(from, to)| (from..=to).contains(&place.x))
                };
                let values = self.curve(name)?.points.iter().filter(within).map(|place| place.y);
                let found = match extreme {
                    Extreme::Minimum => values.reduce(f64::min),
                    Extreme::Maximum => values.reduce(f64::max),
                };
                found.ok_or_else(|| format!("{name} has no points there").into())
            }
            Expression::Crossing(end, name, relation, limit) => {
                let limit = self.value(limit, x)?;
                let points = &self.curve(name)?.points;
                let mut there = points.iter().filter(|place| relation.holds(place.y, limit));
                let found = match end {
                    Occurrence::First => there.next(),
                    Occurrence::Last => there.next_back(),
                };
                let never = || {
                    EvaluationError::NoCrossing(format!(
                        "{name} is nowhere {relation} {}",
                        format::number(limit)
                    ))
                };
                found.map(|place| place.x).ok_or_else(never)
            }
            Expression::Absolute(inner) => Ok(self.value(inner, x)?.abs()),
            Expression::Combined(left, operation, right) => {
                let (left, right) = (self.value(left, x)?, self.value(right, x)?);
                Ok(match operation {
                    Operation::Plus => left + right,
                    Operation::Minus => left - right,
                    Operation::Times => left * right,
                    Operation::Over => left / right,
                })
            }
        }
    }

    fn curve(&self, name: &CurveName) -> Result<&Curve, String> {
        let found =
            self.0.iter().find(|curve| curve.figure == name.figure && curve.line == name.line);
        found.copied().ok_or_else(|| format!("there is no curve {name}"))
    }

    /// The positions in a range at which all of these curves have a point.
    fn positions(&self, names: &[&CurveName], from: f64, to: f64) -> Result<Vec<f64>, String> {
        let curves = names.iter().map(|name| self.curve(name)).collect::<Result<Vec<_>, _>>()?;
        let Some((first, others)) = curves.split_first() else {
            return Err("a claim with \"for\" must name a curve".into());
        };
        let within = first.points.iter().map(|place| place.x).filter(|x| (from..=to).contains(x));
        let positions: Vec<_> =
            within.filter(|x| others.iter().all(|curve| curve.at(*x).is_some())).collect();
        if positions.is_empty() {
            Err(format!("no points between {from} and {to}"))
        } else {
            Ok(positions)
        }
    }
}

impl Relation {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Below => left < right,
            Self::AtMost => left <= right,
            Self::Above => left > right,
            Self::AtLeast => left >= right,
        }
    }

    const fn opposite(self) -> Self {
        match self {
            Self::Below => Self::AtLeast,
            Self::AtMost => Self::Above,
            Self::Above => Self::AtMost,
            Self::AtLeast => Self::Below,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn curve(line: &str, points: &[(f64, f64)]) -> Curve {
        let points = points.iter().map(|(x, y)| CurvePoint { x: *x, y: *y, ci95: None }).collect();
        Curve {
            figure: "a".into(),
            line: line.into(),
            backend: "sim".into(),
            interpolated: false,
            points,
        }
    }

    fn evaluated(text: &str) -> Result<(bool, String), String> {
        let bowl = curve("bowl", &[(0.0, 0.7), (1.0, 0.3), (50.0, 0.05), (300.0, 0.2)]);
        let slope = curve("slope", &[(0.0, 0.8), (1.0, 0.5), (50.0, 0.15), (300.0, 0.1)]);
        let curves = Curves(vec![&bowl, &slope]);
        evaluate(&parse(text).unwrap(), &curves).map(|found| (found.holds, found.detail))
    }

    #[test]
    fn claims_are_evaluated_on_curves() {
        for (text, holds, detail) in [
            ("a.bowl(0) > 0.6", true, "0.7 > 0.6"),
            ("a.bowl(0) > 0.75", false, "0.7 ≤ 0.75"),
            ("a.bowl(x) < a.slope(x) for all of x in 0..50", true, "3 of 3 points"),
            ("a.bowl(x) < a.slope(x) for all of x in 0..300", false, "3 of 4 points; not at 300"),
            ("a.bowl(x) < a.slope(x) for 75 % of x in 0..300", true, "3 of 4 points; not at 300"),
            ("first(a.bowl < 0.16) <= first(a.slope < 0.16)", true, "50 ≤ 50"),
            ("last(a.bowl < 0.16) < last(a.slope < 0.16)", true, "50 < 300"),
            ("a.bowl(300) > 2 * min(a.bowl)", true, "0.2 > 0.1"),
            ("max(a.bowl, 1..300) < a.bowl(0)", true, "0.3 < 0.7"),
            ("first(a.bowl < 0.01) < 1", false, "a.bowl is nowhere < 0.01"),
            ("abs(a.bowl(0) / a.slope(0) - 1) < 0.1", false, "0.125 ≥ 0.1"),
        ] {
            assert_eq!(evaluated(text), Ok((holds, detail.to_owned())), "{text}");
        }
    }

    #[test]
    fn curves_over_a_result_are_compared_between_their_points() {
        let line = curve("line", &[(1.0, 10.0), (3.0, 30.0)]);
        let other = Curve { interpolated: true, ..curve("other", &[(2.0, 5.0), (4.0, 9.0)]) };
        let value = |text| evaluate(&parse(text).unwrap(), &Curves(vec![&other, &line]));
        let found = value("a.line(x) > a.other(x) for all of x in 0..9").unwrap();
        assert_eq!((found.holds, found.detail.as_str()), (true, "1 of 1 points"));
        assert_eq!(value("a.line(3) - a.other(3) >= 24").unwrap().detail, "23 < 24");
        assert!(value("a.line(2) > 0").unwrap_err().contains("no point at 2"));
        assert!(value("a.other(5) > 0").unwrap_err().contains("no point at 5"));
    }

    #[test]
    fn missing_values_are_reported() {
        for (text, expected) in [
            ("a.bowl(2) < 1", "no point at 2"),
            ("a.cup(0) < 1", "no curve a.cup"),
            ("a.bowl(x) < 1", "x has a value only"),
            ("a.bowl(x) < 1 for all of x in 400..500", "no points between 400 and 500"),
        ] {
            let error = evaluated(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
