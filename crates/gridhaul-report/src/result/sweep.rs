//! Three or more points: the trend over a numeric key, or the best and the worst point.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Estimate, Point};
use indexmap::IndexMap;

use super::measure::{Measure, NOTABLE, is_significant};
use super::{Subject, capital, flow, of_flow, subjects};
use crate::parameter_label;
use crate::quantity::quantity;
use crate::swept_keys::{numeric_axis, swept_keys};

/// Index of a point, and the value of a quantity there.
type PointValue = (usize, Estimate);

/// The sentence on the trend if one numeric key is swept, else on the best and the worst point.
pub(super) fn sentence(answer: &Answer) -> Option<String> {
    let points = &answer.points;
    let subjects = subjects(&points.iter());
    let several = points.first()?.flows.len() > 1;
    let (subject, measure) = most_varied(&subjects, points)?;
    let keys = swept_keys(&[(String::new(), answer)]);
    let what = of_flow(&measure, subject.name, several);
    let values = values(points, subject.name, &measure);
    let (worst, best) = ends(&values, &measure)?;
    if !is_significant(&worst.1, &best.1) || size(&measure, worst, best) < NOTABLE {
        let [low, high] =
            [worst, best].map(|candidate| measure.text(candidate.1.mean.unwrap_or(0.0)));
        let word = if worst.1.ci95.is_some() { "significantly" } else { "notably" };
        let over = match &keys[..] {
            [key] => format!("with {}", parameter_label::label(key)),
            _ => "between the points of the sweep".to_owned(),
        };
        return Some(format!("{} does not change {word} {over}: {low} to {high}.", capital(&what)));
    }
    let text = match &keys[..] {
        [key] if numeric_axis(answer, key).is_some() => {
            let order = order(points, key, &values);
            let own = trend(points, key, &order, &measure, &what);
            own.unwrap_or_else(|| extremes(points, worst, best, &measure, &what))
        }
        [first, rest @ ..] if !rest.is_empty() && numeric_axis(answer, first).is_some() => {
            let winner = winner(points, first, rest, &values, &measure);
            let text = extremes(points, worst, best, &measure, &what);
            winner.map_or(text.clone(), |winner| format!("{text}; {winner}"))
        }
        _ => {
            let text = extremes(points, worst, best, &measure, &what);
            runner_up(points, &values, best, &measure)
                .map_or(text.clone(), |candidate| text.clone() + &candidate)
        }
    };
    Some(capital(&text) + ".")
}

/// The flow and the quantity with the largest variation; the main quantity of a flow has more
/// weight.
fn most_varied<'a, 'b>(
    subjects: &'b [Subject<'a>],
    points: &[Point],
) -> Option<(&'b Subject<'a>, Measure)> {
    let mut best: Option<(f64, &Subject<'_>, Measure)> = None;
    for subject in subjects {
        for (rank, measure) in subject.measures.iter().enumerate() {
            let values = values(points, subject.name, measure);
            let Some((worst, top)) = ends(&values, measure) else { continue };
            let varies = is_significant(&worst.1, &top.1);
            let size = if varies { size(measure, worst, top) } else { 0.0 };
            // The measures of a flow are in order of importance.
            let weight = size / (1.0 + rank as f64);
            if best.as_ref().is_none_or(|(maximum, ..)| weight > *maximum) {
                best = Some((weight, subject, *measure));
            }
        }
    }
    best.map(|(_, subject, measure)| (subject, measure))
}

fn values(points: &[Point], name: &str, measure: &Measure) -> Vec<PointValue> {
    let value = |(index, point)| Some((index, measure.of(flow(point, name)?)?));
    points.iter().enumerate().filter_map(value).collect()
}

/// The worst and the best value.
fn ends(values: &[PointValue], measure: &Measure) -> Option<(PointValue, PointValue)> {
    let by_mean = |a: &&PointValue, b: &&PointValue| {
        a.1.mean.unwrap_or(0.0).total_cmp(&b.1.mean.unwrap_or(0.0))
    };
    let (low, high) = (*values.iter().min_by(by_mean)?, *values.iter().max_by(by_mean)?);
    Some(if measure.larger_is_better { (low, high) } else { (high, low) })
}

fn size(measure: &Measure, worst: PointValue, best: PointValue) -> f64 {
    measure.distance(worst.1.mean.unwrap_or(0.0), best.1.mean.unwrap_or(0.0))
}

/// The values in the order of a numeric key.
fn order(points: &[Point], key: &str, values: &[PointValue]) -> Vec<(f64, PointValue)> {
    let mut order: Vec<(f64, PointValue)> = values
        .iter()
        .filter_map(|value| Some((quantity(points[value.0].parameters.get(key)?)?.0, *value)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    order
}

/// The clause on a monotonic trend; steps within the confidence intervals are ignored.
fn trend(
    points: &[Point],
    key: &str,
    order: &[(f64, PointValue)],
    measure: &Measure,
    what: &str,
) -> Option<String> {
    let (first, last) = (order.first()?.1, order.last()?.1);
    let (from, to) = (first.1.mean?, last.1.mean?);
    // A step of less than a thousandth reverses no trend, also in an answer without intervals.
    let level = 1e-3 * from.abs().max(to.abs());
    let is_not_monotonic = order.windows(2).any(|pair| {
        let (one, other) = (&pair[0].1.1, &pair[1].1.1);
        let step = other.mean.unwrap_or(0.0) - one.mean.unwrap_or(0.0);
        step * (to - from) < 0.0 && step.abs() > level && is_significant(one, other)
    });
    if is_not_monotonic || !is_significant(&first.1, &last.1) {
        return None;
    }
    let verb = if to > from { "rises" } else { "falls" };
    let [start, end] = [first, last].map(|value| parameter_label::value(&points[value.0], key));
    Some(format!(
        "{what} {verb} from {} to {} as the {} rises from {} to {}",
        measure.text(from),
        measure.text(to),
        parameter_label::label(key),
        start?,
        end?
    ))
}

fn extremes(
    points: &[Point],
    worst: PointValue,
    best: PointValue,
    measure: &Measure,
    what: &str,
) -> String {
    let labels = |value: PointValue| {
        let name = parameter_label::of_point(points, value.0);
        format!("{} ({name})", measure.text(value.1.mean.unwrap_or(0.0)))
    };
    let (first, second) =
        if measure.larger_is_better { ("highest", "lowest") } else { ("lowest", "highest") };
    format!("{what} is {first} at {} and {second} at {}", labels(best), labels(worst))
}

/// The second best point, if it does not differ significantly from the best.
fn runner_up(
    points: &[Point],
    values: &[PointValue],
    best: PointValue,
    measure: &Measure,
) -> Option<String> {
    let rest: Vec<PointValue> = values.iter().copied().filter(|value| value.0 != best.0).collect();
    let (_, second) = ends(&rest, measure)?;
    let is_equivalent = best.1.ci95.is_some() && !is_significant(&best.1, &second.1);
    let name = parameter_label::of_point(points, second.0);
    is_equivalent.then(|| format!("; {name} does not differ significantly from the best"))
}

/// The clause on the values of the other keys that are significantly best at most values of the
/// first key.
fn winner(
    points: &[Point],
    first: &str,
    rest: &[String],
    values: &[PointValue],
    measure: &Measure,
) -> Option<String> {
    let rest_of = |index: usize| {
        let labels =
            rest.iter().filter_map(|key| parameter_label::label_at(&points[index], key, rest));
        labels.collect::<Vec<_>>().join(", ")
    };
    let mut columns: IndexMap<&String, Vec<PointValue>> = IndexMap::new();
    for value in values {
        if let Some(x) = points[value.0].parameters.get(first) {
            columns.entry(x).or_default().push(*value);
        }
    }
    let mut best_counts: IndexMap<String, usize> = IndexMap::new();
    for at_column in columns.values() {
        let (_, best) = ends(at_column, measure)?;
        let others: Vec<_> = at_column.iter().filter(|other| other.0 != best.0).copied().collect();
        let second = ends(&others, measure).map(|(_, second)| second);
        if second.is_none_or(|second| is_significant(&best.1, &second.1)) {
            *best_counts.entry(rest_of(best.0)).or_default() += 1;
        }
    }
    let all = columns.len();
    let label = parameter_label::label(first);
    let Some((name, count)) = best_counts.iter().max_by_key(|(_, count)| **count) else {
        return Some(format!(
            "no significant difference between the best and the second best at any value of the \
             {label}"
        ));
    };
    let places = if *count == all { format!("all {all}") } else { format!("{count} of {all}") };
    Some(format!("{name} is best at {places} values of the {label}"))
}
