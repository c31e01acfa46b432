//! The swept keys of answers, and the axis of each.

use std::collections::BTreeSet;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::Point;
use indexmap::IndexSet;

use crate::chart::Axis;
use crate::parameter_label;
use crate::quantity::quantity;

/// Minimum number of values of a numeric axis.
const NUMBERS_MIN: usize = 3;

/// The swept keys, without those that vary together with another one. The first one is the axis of
/// the charts: the first numeric key, since lines show more than bars, else the first key.
pub(crate) fn swept_keys(answers: &[(String, &Answer)]) -> Vec<String> {
    let points: Vec<&Point> = answers.iter().flat_map(|(_, answer)| &answer.points).collect();
    let mut keys: IndexSet<&String> =
        points.iter().flat_map(|point| point.parameters.keys()).collect();
    keys.retain(|key| values(&points, key).len() > 1);
    let mut axis_keys: Vec<&String> = Vec::new();
    for key in keys {
        // Keys of one sweep entry vary together; a numeric key is the better axis.
        let is_same = |axis_key: &&String| {
            vary_together(&points, axis_key, key)
                || parameter_label::share_label(&points, axis_key, key)
        };
        match axis_keys.iter().position(is_same) {
            Some(index)
                if axis(&points, axis_keys[index]).is_none() && axis(&points, key).is_some() =>
            {
                axis_keys[index] = key;
            }
            Some(_) => {}
            None => axis_keys.push(key),
        }
    }
    if let Some(number) = axis_keys.iter().position(|key| axis(&points, key).is_some()) {
        axis_keys[..=number].rotate_right(1);
    }
    axis_keys.into_iter().cloned().collect()
}

/// The axis of a swept key with numeric values.
pub(crate) fn numeric_axis(answer: &Answer, key: &str) -> Option<Axis> {
    axis(&answer.points.iter().collect::<Vec<_>>(), key)
}

/// Distinct values of a key, in order of appearance.
fn values<'a>(points: &[&'a Point], key: &str) -> IndexSet<&'a str> {
    points.iter().filter_map(|point| point.parameters.get(key)).map(String::as_str).collect()
}

/// Whether the values of two keys correspond one to one.
fn vary_together(points: &[&Point], one: &str, other: &str) -> bool {
    let pair = |point: &&Point| {
        Some((point.parameters.get(one)?.clone(), point.parameters.get(other)?.clone()))
    };
    let pairs: BTreeSet<_> = points.iter().filter_map(pair).collect();
    let count = values(points, one).len();
    pairs.len() == count && values(points, other).len() == count
}

/// The axis of a key whose values are all numbers with the same unit, and differ wherever the
/// labels of the sweep do.
pub(crate) fn axis(points: &[&Point], key: &str) -> Option<Axis> {
    let labels: BTreeSet<_> = points.iter().filter_map(|point| point.labels.get(key)).collect();
    if labels.len() > values(points, key).len() {
        return None;
    }
    let quantities: Option<Vec<_>> = values(points, key).into_iter().map(quantity).collect();
    let quantities = quantities?;
    let unit = quantities.first()?.1;
    if quantities.iter().any(|(_, other)| *other != unit) {
        return None;
    }
    let mut numbers: Vec<f64> = quantities.iter().map(|(number, _)| *number).collect();
    numbers.sort_by(f64::total_cmp);
    // Two values do not define a trend.
    if numbers.len() < NUMBERS_MIN {
        return None;
    }
    let axis = Axis::new(parameter_label::label(key), unit);
    if is_logarithmic(&numbers) {
        return Some(axis.log());
    }
    // Zero together with values for a logarithmic axis: no numeric axis shows both well.
    if numbers[0] == 0.0 && is_logarithmic(&numbers[1..]) { None } else { Some(axis) }
}

/// Whether sorted numbers span at least two decades about evenly.
fn is_logarithmic(numbers: &[f64]) -> bool {
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return false };
    if *first <= 0.0 || last / first < 99.9 || numbers.len() < 3 {
        return false;
    }
    let steps: Vec<_> = numbers.windows(2).map(|pair| (pair[1] / pair[0]).log10()).collect();
    let largest = steps.iter().copied().fold(0.0, f64::max);
    largest <= 0.6 * (last / first).log10()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Points with this number of values of a key, each twice.
    fn sweep(values: usize) -> Vec<Point> {
        let point = |number: usize| Point {
            parameters: [("duration".to_owned(), format!("{} s", number / 2))].into(),
            ..Point::default()
        };
        (0..2 * values).map(point).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "the test measures time")]
    fn time(points: &[Point]) -> Duration {
        let points: Vec<&Point> = points.iter().collect();
        let start = Instant::now();
        assert_eq!(values(&points, "duration").len(), points.len() / 2);
        start.elapsed()
    }

    #[test]
    fn the_time_for_distinct_values_is_proportional_to_their_number() {
        let (few, many) = (sweep(100), sweep(2_000));
        // Twenty times the values: 20 times the time if it is proportional, 400 times if each value
        // is compared with all others. Other programs can only add to a time: the shortest ones
        // are compared, of as many attempts as a busy machine needs. An attempt takes less than a
        // time slice of the scheduler: longer ones are always interrupted while others wait.
        let mut shortest = [Duration::MAX; 2];
        let is_proportional = (0..200).any(|_| {
            for (points, shortest) in [&few, &many].into_iter().zip(&mut shortest) {
                *shortest = (*shortest).min(time(points));
            }
            shortest[1] < 100 * shortest[0]
        });
        assert!(is_proportional, "{shortest:?}");
    }
}
