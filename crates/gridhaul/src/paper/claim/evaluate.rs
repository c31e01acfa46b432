//! Evaluation of claims on the curves of one backend, or on those of the backends that a claim
//! names.

use gridhaul_report::verdict::{SINGLE_RUN_MARGIN, TOLERANCE_MARGIN};
use gridhaul_report::{Verdict, format};

use super::parse::{CurveName, Expression, Occurrence, ParsedClaim, Relation, XRange};
use super::share::{Parts, SHARE_POINTS_MIN, weights};
use super::uncertain::Uncertain;
use crate::paper::backend_agreement::EMULATOR;
use crate::paper::figure::{Curve, CurvePoint};

/// The curves that a claim can refer to.
pub(super) struct Curves<'a> {
    /// All curves.
    pub(super) all: &'a [Curve],
    /// The backend of the curves for which the claim names none.
    pub(super) backend: &'a str,
}

/// Verdict on a claim, with the compared values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evaluation {
    pub(super) verdict: Verdict,
    pub(super) detail: String,
}

/// Evaluates a claim. A claim about a position that no curve has does not hold. A claim on measured
/// values is undecided if the intervals of their replications permit both verdicts.
///
/// # Errors
/// A curve or a point is missing.
pub(super) fn evaluate(claim: &ParsedClaim, curves: &Curves<'_>) -> Result<Evaluation, String> {
    match compare(claim, curves) {
        Err(EvaluationError::NoCrossing(detail)) => {
            Ok(Evaluation { verdict: Verdict::Differs, detail })
        }
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
    let is_measured = curves.are_measured(&claim.curves());
    let Some(XRange { share, from, to }) = claim.range_of_x else {
        let (left, right) = (curves.value(&claim.left, None)?, curves.value(&claim.right, None)?);
        let verdict = claim.relation.verdict(left, right, is_measured);
        let holds = claim.relation.holds(left.value, right.value);
        let relation = if holds { claim.relation } else { claim.relation.opposite() };
        let detail =
            format!("{} {relation} {}", format::number(left.value), format::number(right.value));
        return Ok(Evaluation { verdict, detail });
    };
    let positions = curves.positions(&claim.curves(), from, to)?;
    if share < 1.0 && positions.len() < SHARE_POINTS_MIN {
        let points = positions.len();
        let error = format!(
            "{points} points are too few for a share of the range; expected {SHARE_POINTS_MIN}"
        );
        return Err(EvaluationError::MissingData(error));
    }
    let mut parts = Parts::default();
    for (x, weight) in positions.iter().zip(weights(&positions, from, to)) {
        let (left, right) =
            (curves.value(&claim.left, Some(*x))?, curves.value(&claim.right, Some(*x))?);
        match claim.relation.verdict(left, right, is_measured) {
            Verdict::Agrees => parts.holding += weight,
            Verdict::Undecided => {
                parts.undecided += weight;
                parts.undecided_points += 1;
            }
            _ => parts.failing.push(*x),
        }
    }
    let all_hold = parts.failing.is_empty() && parts.undecided_points == 0;
    let verdict = if all_hold || parts.holding >= share {
        Verdict::Agrees
    } else if parts.failing.is_empty() || parts.holding + parts.undecided >= share {
        Verdict::Undecided
    } else {
        Verdict::Differs
    };
    Ok(Evaluation { verdict, detail: parts.detail(positions.len(), share) })
}

impl Curves<'_> {
    fn value(&self, expression: &Expression, x: Option<f64>) -> Result<Uncertain, EvaluationError> {
        match expression {
            Expression::Number(number) => Ok(Uncertain::exact(*number)),
            Expression::X => x.map(Uncertain::exact).ok_or_else(|| {
                "x has a value only in a claim with \"for ... of x in\"".to_owned().into()
            }),
            Expression::Value(name, place) => {
                let place = self.value(place, x)?.value;
                let curve = self.curve(name)?;
                let found = curve
                    .at(place)
                    .ok_or_else(|| format!("{name} has no point at {}", format::number(place)))?;
                Ok(uncertain(curve, &found))
            }
            Expression::Extreme(extreme, name, range) => {
                let within = |place: &&CurvePoint| {
                    range.is_none_or(|(from, to)| (from..=to).contains(&place.x))
                };
                let curve = self.curve(name)?;
                let values = curve.points.iter().filter(within).map(|at| uncertain(curve, at));
                let found = values.reduce(|a, b| a.extreme(*extreme, b));
                found.ok_or_else(|| format!("{name} has no points there").into())
            }
            Expression::Crossing(end, name, relation, limit) => {
                let limit = self.value(limit, x)?;
                self.crossing(*end, name, *relation, limit)
            }
            Expression::Absolute(inner) => Ok(self.value(inner, x)?.abs()),
            Expression::Combined(left, operation, right) => {
                Ok(self.value(left, x)?.combined(*operation, self.value(right, x)?))
            }
        }
    }

    /// The first or last position at which a relation holds.
    fn crossing(
        &self,
        end: Occurrence,
        name: &CurveName,
        relation: Relation,
        limit: Uncertain,
    ) -> Result<Uncertain, EvaluationError> {
        let curve = self.curve(name)?;
        let find = |test: &dyn Fn(Uncertain) -> bool| {
            let mut there =
                curve.points.iter().filter(|place| test(uncertain(curve, place))).map(|at| at.x);
            match end {
                Occurrence::First => there.next(),
                Occurrence::Last => there.next_back(),
            }
        };
        // Because of their intervals, the values permit a range of positions: the relation may hold
        // from the first `possible` position on, and holds from the first `certain` one on.
        let by_mean = find(&|at| relation.holds(at.value, limit.value));
        let possible = find(&|at| relation.verdict(at, limit, false) != Verdict::Differs);
        let certain = find(&|at| relation.verdict(at, limit, false) == Verdict::Agrees);
        let never = || {
            EvaluationError::NoCrossing(format!(
                "{name} is nowhere {relation} {}",
                format::number(limit.value)
            ))
        };
        let possible = possible.ok_or_else(never)?;
        let outside = match end {
            Occurrence::First => f64::INFINITY,
            Occurrence::Last => f64::NEG_INFINITY,
        };
        let certain = certain.unwrap_or(outside);
        let value = by_mean.unwrap_or(possible);
        Ok(Uncertain { value, low: possible.min(certain), high: possible.max(certain) })
    }

    fn curve(&self, name: &CurveName) -> Result<&Curve, String> {
        let backend = name.backend.as_deref().unwrap_or(self.backend);
        let found = self.all.iter().find(|curve| {
            curve.figure == name.figure && curve.line == name.line && curve.backend == backend
        });
        found.ok_or_else(|| format!("there is no curve {name} of {backend}"))
    }

    /// Whether one of the curves was measured on a kernel.
    fn are_measured(&self, names: &[&CurveName]) -> bool {
        names.iter().any(|name| name.backend.as_deref().unwrap_or(self.backend) == EMULATOR)
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

/// The value at a point. A measured value has the interval of its replications; other values are
/// repeatable.
fn uncertain(curve: &Curve, at: &CurvePoint) -> Uncertain {
    if curve.backend != EMULATOR {
        return Uncertain::exact(at.y);
    }
    let margin = at.ci95.unwrap_or(at.y.abs() * SINGLE_RUN_MARGIN);
    // On a machine that was too busy, any value could have been measured.
    let margin = if at.disturbed { f64::INFINITY } else { margin };
    Uncertain { value: at.y, low: at.y - margin, high: at.y + margin }
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

    /// Verdict on a comparison, with a margin at the right side if a value was measured.
    fn verdict(self, left: Uncertain, right: Uncertain, is_measured: bool) -> Verdict {
        let margin = if is_measured { TOLERANCE_MARGIN * right.value.abs() } else { 0.0 };
        // The ends of both intervals that make the relation hardest and easiest to satisfy: it
        // holds for all values if it holds for the former, and for none if it fails for the latter.
        let (hardest, easiest) = match self {
            Self::Below | Self::AtMost => {
                ((left.high, right.low - margin), (left.low, right.high + margin))
            }
            Self::Above | Self::AtLeast => {
                ((left.low, right.high + margin), (left.high, right.low - margin))
            }
        };
        if self.holds(hardest.0, hardest.1) {
            Verdict::Agrees
        } else if self.holds(easiest.0, easiest.1) {
            Verdict::Undecided
        } else {
            Verdict::Differs
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
        let points = points
            .iter()
            .map(|(x, y)| CurvePoint { x: *x, y: *y, ci95: None, disturbed: false })
            .collect();
        Curve {
            figure: "a".into(),
            line: line.into(),
            backend: "sim".into(),
            interpolated: false,
            points,
        }
    }

    fn evaluated(text: &str) -> Result<(bool, String), String> {
        let all = [
            curve("bowl", &[(0.0, 0.7), (1.0, 0.3), (50.0, 0.05), (300.0, 0.2)]),
            curve("slope", &[(0.0, 0.8), (1.0, 0.5), (50.0, 0.15), (300.0, 0.1)]),
        ];
        let curves = Curves { all: &all, backend: "sim" };
        let found = evaluate(&parse(text).unwrap(), &curves);
        found.map(|found| (found.verdict == Verdict::Agrees, found.detail))
    }

    #[test]
    fn claims_are_evaluated_on_curves() {
        for (text, holds, detail) in [
            ("a.bowl(0) > 0.6", true, "0.7 > 0.6"),
            ("a.bowl(0) > 0.75", false, "0.7 ≤ 0.75"),
            ("a.bowl(x) < a.slope(x) for all of x in 0..50", true, "3 of 3 points"),
            ("a.bowl(x) < a.slope(x) for all of x in 0..300", false, "3 of 4 points; not at 300"),
            // The last point represents the range from 175 on.
            (
                "a.bowl(x) < a.slope(x) for 75 % of x in 0..300",
                false,
                "3 of 4 points, 58 % of the range; not at 300",
            ),
            (
                "a.bowl(x) < a.slope(x) for 58 % of x in 0..300",
                true,
                "3 of 4 points, 58 % of the range; not at 300",
            ),
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
        let all = [other, line];
        let curves = Curves { all: &all, backend: "sim" };
        let value = |text| evaluate(&parse(text).unwrap(), &curves);
        let found = value("a.line(x) > a.other(x) for all of x in 0..9").unwrap();
        assert_eq!((found.verdict, found.detail.as_str()), (Verdict::Agrees, "1 of 1 points"));
        assert_eq!(value("a.line(3) - a.other(3) >= 24").unwrap().detail, "23 < 24");
        assert!(value("a.line(2) > 0").unwrap_err().contains("no point at 2"));
        assert!(value("a.other(5) > 0").unwrap_err().contains("no point at 5"));
    }

    #[test]
    fn missing_values_are_reported() {
        for (text, expected) in [
            ("a.bowl(2) < 1", "no point at 2"),
            ("a.cup(0) < 1", "no curve a.cup"),
            ("a.bowl@ns_2(0) < 1", "no curve a.bowl of ns-2"),
            ("a.bowl(x) < 1", "x has a value only"),
            ("a.bowl(x) < 1 for all of x in 400..500", "no points between 400 and 500"),
            ("a.bowl(x) < 1 for 75 % of x in 0..50", "3 points are too few"),
        ] {
            let error = evaluated(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_claim_on_measured_values_is_undecided_within_their_intervals() {
        let measured = |line: &str, values: &[(f64, f64, f64)]| {
            let point = |(x, y, ci95): &(f64, f64, f64)| {
                // The machine was too busy for the fifth point.
                let disturbed = *x == 5.0;
                CurvePoint { x: *x, y: *y, ci95: Some(*ci95), disturbed }
            };
            let points = values.iter().map(point);
            Curve { backend: "emu".into(), points: points.collect(), ..curve(line, &[]) }
        };
        let all = [
            measured(
                "high",
                &[
                    (1.0, 10.0, 0.5),
                    (2.0, 20.0, 0.5),
                    (3.0, 30.0, 8.0),
                    (4.0, 40.0, 0.5),
                    (5.0, 50.0, 0.5),
                ],
            ),
            measured(
                "low",
                &[(1.0, 9.0, 0.1), (2.0, 16.0, 0.1), (3.0, 24.0, 0.1), (4.0, 30.0, 0.1)],
            ),
            curve("high", &[(1.0, 10.0)]),
        ];
        let curves = Curves { all: &all, backend: "emu" };
        let verdict = |text| evaluate(&parse(text).unwrap(), &curves).unwrap().verdict;
        for (text, expected) in [
            ("a.high(1) < 11.1", Verdict::Agrees),
            ("a.high(1) < 10.9", Verdict::Undecided),
            ("a.high(1) < 9.3", Verdict::Undecided),
            ("a.high(1) < 9", Verdict::Differs),
            ("a.high(2) / a.low(2) > 1.1", Verdict::Agrees),
            ("a.high(2) - a.low(2) >= 4", Verdict::Undecided),
            ("a.high(x) > a.low(x) for all of x in 2..3", Verdict::Undecided),
            ("a.high(x) > a.low(x) for 50 % of x in 1..4", Verdict::Agrees),
            ("a.high(x) < 18 for all of x in 1..2", Verdict::Differs),
            ("first(a.high > 19.8) <= 2", Verdict::Undecided),
            ("first(a.high > 19) <= 2.5", Verdict::Agrees),
            ("max(a.high, 1..2) > 19", Verdict::Undecided),
            ("max(a.high, 1..2) > 18", Verdict::Agrees),
            ("abs(a.high(1) - a.low(1)) < 2", Verdict::Agrees),
            ("a.high(5) < 1", Verdict::Undecided),
            ("a.high(5) > 1", Verdict::Undecided),
            // A simulation is repeatable.
            ("a.high@sim(1) < 10.9", Verdict::Agrees),
        ] {
            assert_eq!(verdict(text), expected, "{text}");
        }
    }
}
