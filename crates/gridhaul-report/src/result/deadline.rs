//! Deadlines: whether they are met, and the value of a swept key at which they are first missed.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{DeadlineCheck, Point};

use crate::parameter_label;
use crate::quantity::quantity;
use crate::swept_keys::{numeric_axis, swept_keys};

/// Maximum number of points listed that meet a deadline.
const LISTED_POINTS_MAX: usize = 3;

/// One sentence on all deadlines of an answer; `None` if there are none.
pub(super) fn sentence(answer: &Answer) -> Option<String> {
    let points: Vec<&Point> =
        answer.points.iter().filter(|point| !point.deadline_checks.is_empty()).collect();
    let first = points.first()?;
    if points.len() == 1 {
        return Some(of_point(&first.deadline_checks));
    }
    let flows: Vec<&DeadlineCheck> = first.deadline_checks.iter().collect();
    let clauses: Vec<String> =
        flows.iter().map(|check| over_sweep(answer, &points, check)).collect();
    if clauses.len() <= 2 {
        return Some(clauses.join("; ") + ".");
    }
    let checks = points.iter().flat_map(|point| &point.deadline_checks);
    let (met, all) = checks
        .fold((0, 0), |(met, all), check| (met + usize::from(check.met == Some(true)), all + 1));
    Some(format!("{met} of {all} deadline checks of the sweep are met; {}.", clauses[0]))
}

/// The deadlines of one point.
fn of_point(deadline_checks: &[DeadlineCheck]) -> String {
    let missed: Vec<&DeadlineCheck> =
        deadline_checks.iter().filter(|check| check.met == Some(false)).collect();
    let unknown = deadline_checks.iter().filter(|check| check.met.is_none()).count();
    let worst = |list: &[&DeadlineCheck]| -> Option<String> {
        let minimum = |a: &&&DeadlineCheck, b: &&&DeadlineCheck| {
            a.measured.unwrap_or(1.0).total_cmp(&b.measured.unwrap_or(1.0))
        };
        let check = list.iter().min_by(minimum)?;
        Some(check_clause(check))
    };
    let all: Vec<&DeadlineCheck> = deadline_checks.iter().collect();
    match (missed.len(), deadline_checks.len()) {
        _ if unknown == deadline_checks.len() => "No deadline could be checked.".to_owned(),
        (0, 1) => format!("The deadline is met: {}.", worst(&all).unwrap_or_default()),
        (1, 1) => format!("The deadline is missed: {}.", worst(&all).unwrap_or_default()),
        (0, count) => {
            let met = count - unknown;
            let which =
                if unknown == 0 { format!("All {count}") } else { format!("{met} of {count}") };
            format!(
                "{which} deadlines are met; the smallest margin: {}.",
                worst(&all).unwrap_or_default()
            )
        }
        (some, count) => {
            let worst = worst(&missed).unwrap_or_default();
            format!("{some} of {count} deadlines are missed; the worst: {worst}.")
        }
    }
}

/// `reading delivers 91.2 % in time; required: 98 % of messages within 15 s`.
fn check_clause(check: &DeadlineCheck) -> String {
    let Some(measured) = check.measured else {
        return format!("{} cannot be checked", check.flow);
    };
    // Rounded down, so that a deadline that is just missed does not look met.
    let percent = crate::format::fixed((measured * 1_000.0).floor() / 10.0, 1);
    format!("{} delivers {percent} % in time; required: {}", check.flow, check.limit)
}

/// The clause on the points of a sweep at which a flow meets its deadline.
fn over_sweep(answer: &Answer, points: &[&Point], reference: &DeadlineCheck) -> String {
    let met = |point: &&&Point| {
        point
            .deadline_checks
            .iter()
            .any(|check| check.flow == reference.flow && check.met == Some(true))
    };
    let met_points: Vec<&&Point> = points.iter().filter(met).collect();
    let (flow, limit) = (&reference.flow, &reference.limit);
    if met_points.len() == points.len() {
        return format!("{flow} meets its deadline ({limit}) at all {} points", points.len());
    }
    if met_points.is_empty() {
        return format!("{flow} misses its deadline ({limit}) at all {} points", points.len());
    }
    threshold(answer, points, &met, reference).unwrap_or_else(|| {
        let at = if met_points.len() <= LISTED_POINTS_MAX {
            let name = |point: &&&Point| {
                let index = answer.points.iter().position(|other| std::ptr::eq(other, **point));
                index.map(|index| parameter_label::of_point(&answer.points, index))
            };
            format!(" ({})", met_points.iter().filter_map(name).collect::<Vec<_>>().join("; "))
        } else {
            String::new()
        };
        let (met_points, all) = (met_points.len(), points.len());
        format!("{flow} meets its deadline ({limit}) at {met_points} of {all} points{at}")
    })
}

/// The two values of a swept key between which the check of a deadline changes, if one numeric key
/// is swept and there is a single change.
fn threshold(
    answer: &Answer,
    points: &[&Point],
    met: &impl Fn(&&&Point) -> bool,
    reference: &DeadlineCheck,
) -> Option<String> {
    let keys = swept_keys(&[(String::new(), answer)]);
    let [key] = &keys[..] else { return None };
    numeric_axis(answer, key)?;
    let mut order: Vec<(f64, &&Point)> = points
        .iter()
        .filter_map(|point| Some((quantity(point.parameters.get(key)?)?.0, point)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let states: Vec<bool> = order.iter().map(|(_, point)| met(point)).collect();
    let mut changes = states.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]);
    let (place, _) = changes.next()?;
    if changes.next().is_some() {
        return None;
    }
    let [before, after] =
        [place, place + 1].map(|index| parameter_label::value(order[index].1, key));
    let (before, after, name) = (before?, after?, parameter_label::label(key));
    let (flow, limit) = (&reference.flow, &reference.limit);
    Some(if states[place] {
        format!(
            "{flow} meets its deadline ({limit}) up to {name} {before} and misses it at {after}"
        )
    } else {
        format!("{flow} meets its deadline ({limit}) from {name} {after} and misses it at {before}")
    })
}
