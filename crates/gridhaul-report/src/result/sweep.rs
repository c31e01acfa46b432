//! Three points or more: the trend over a swept number, or the best and the worst point.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Estimate, Point};

use super::measure::{Measure, NOTABLE, is_significant};
use super::{Subject, capital, flow, of_flow, subjects};
use crate::html::{numeric_axis, swept_keys};
use crate::parameter_label;
use crate::quantity::quantity;

/// A value of a quantity and the point that has it.
type Place = (usize, Estimate);

/// The trend where one key of numbers is swept, else the best and the worst point.
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
        let [low, high] = [worst, best].map(|it| measure.text(it.1.mean.unwrap_or(0.0)));
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
            own.unwrap_or_else(|| extremes(points, (worst, best), &measure, &what))
        }
        [first, rest @ ..] if !rest.is_empty() && numeric_axis(answer, first).is_some() => {
            let winner = winner(points, first, rest, &values, &measure);
            let text = extremes(points, (worst, best), &measure, &what);
            winner.map_or(text.clone(), |winner| format!("{text}; {winner}"))
        }
        _ => {
            let text = extremes(points, (worst, best), &measure, &what);
            runner_up(points, &values, best, &measure).map_or(text.clone(), |it| text.clone() + &it)
        }
    };
    Some(capital(&text) + ".")
}

/// The flow and the quantity that vary most; what a flow is for counts more than the rest.
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
            let weight = size / (1.0 + rank as f64);
            if best.as_ref().is_none_or(|(most, ..)| weight > *most) {
                best = Some((weight, subject, *measure));
            }
        }
    }
    best.map(|(_, subject, measure)| (subject, measure))
}

fn values(points: &[Point], name: &str, measure: &Measure) -> Vec<Place> {
    let value = |(index, point)| Some((index, measure.of(flow(point, name)?)?));
    points.iter().enumerate().filter_map(value).collect()
}

/// The worst and the best value.
fn ends(values: &[Place], measure: &Measure) -> Option<(Place, Place)> {
    let by_mean =
        |a: &&Place, b: &&Place| a.1.mean.unwrap_or(0.0).total_cmp(&b.1.mean.unwrap_or(0.0));
    let (low, high) = (*values.iter().min_by(by_mean)?, *values.iter().max_by(by_mean)?);
    Some(if measure.more { (low, high) } else { (high, low) })
}

fn size(measure: &Measure, worst: Place, best: Place) -> f64 {
    measure.distance(worst.1.mean.unwrap_or(0.0), best.1.mean.unwrap_or(0.0))
}

/// The values in the order of a swept number.
fn order(points: &[Point], key: &str, values: &[Place]) -> Vec<(f64, Place)> {
    let mut order: Vec<(f64, Place)> = values
        .iter()
        .filter_map(|place| Some((quantity(points[place.0].parameters.get(key)?)?.0, *place)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    order
}

/// A quantity that only rises or only falls; steps within the confidence intervals count as level.
fn trend(
    points: &[Point],
    key: &str,
    order: &[(f64, Place)],
    measure: &Measure,
    what: &str,
) -> Option<String> {
    let (first, last) = (order.first()?.1, order.last()?.1);
    let (from, to) = (first.1.mean?, last.1.mean?);
    let level = 1e-3 * from.abs().max(to.abs());
    let against = order.windows(2).any(|pair| {
        let (one, other) = (&pair[0].1.1, &pair[1].1.1);
        let step = other.mean.unwrap_or(0.0) - one.mean.unwrap_or(0.0);
        step * (to - from) < 0.0 && step.abs() > level && is_significant(one, other)
    });
    if against || !is_significant(&first.1, &last.1) {
        return None;
    }
    let verb = if to > from { "rises" } else { "falls" };
    let [start, end] = [first, last].map(|place| parameter_label::value(&points[place.0], key));
    Some(format!(
        "{what} {verb} from {} to {} as the {} rises from {} to {}",
        measure.text(from),
        measure.text(to),
        parameter_label::label(key),
        start?,
        end?
    ))
}

fn extremes(points: &[Point], ends: (Place, Place), measure: &Measure, what: &str) -> String {
    let told = |place: Place| {
        let name = parameter_label::of_point(points, place.0);
        format!("{} ({name})", measure.text(place.1.mean.unwrap_or(0.0)))
    };
    let (worst, best) = ends;
    let (first, second) = if measure.more { ("highest", "lowest") } else { ("lowest", "highest") };
    format!("{what} is {first} at {} and {second} at {}", told(best), told(worst))
}

/// The point that is second best, where it is as good as the best.
fn runner_up(points: &[Point], values: &[Place], best: Place, measure: &Measure) -> Option<String> {
    let rest: Vec<Place> = values.iter().copied().filter(|place| place.0 != best.0).collect();
    let (_, second) = ends(&rest, measure)?;
    let near = best.1.ci95.is_some() && !is_significant(&best.1, &second.1);
    let name = parameter_label::of_point(points, second.0);
    near.then(|| format!("; {name} does not differ significantly from the best"))
}

/// Which value of the other keys is best at each value of the first.
fn winner(
    points: &[Point],
    first: &str,
    rest: &[String],
    values: &[Place],
    measure: &Measure,
) -> Option<String> {
    let rest_of = |index: usize| {
        let told =
            rest.iter().filter_map(|key| parameter_label::label_at(&points[index], key, rest));
        told.collect::<Vec<_>>().join(", ")
    };
    let mut columns: Vec<&String> = Vec::new();
    for x in values.iter().filter_map(|place| points[place.0].parameters.get(first)) {
        if !columns.contains(&x) {
            columns.push(x);
        }
    }
    let mut wins: Vec<(String, usize)> = Vec::new();
    for column in &columns {
        let here = values.iter().filter(|it| points[it.0].parameters.get(first) == Some(*column));
        let here: Vec<Place> = here.copied().collect();
        let name = rest_of(ends(&here, measure)?.1.0);
        match wins.iter_mut().find(|(other, _)| *other == name) {
            Some((_, count)) => *count += 1,
            None => wins.push((name, 1)),
        }
    }
    let (name, count) = wins.iter().max_by_key(|(_, count)| *count)?;
    let of = columns.len();
    let places = if *count == of { format!("all {of}") } else { format!("{count} of {of}") };
    Some(format!("{name} is best at {places} values of the {}", parameter_label::label(first)))
}
