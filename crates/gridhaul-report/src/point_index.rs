//! Search for the points that several answers have in common.

use std::collections::{BTreeMap, BTreeSet};

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::Point;

/// The points of an answer by their swept values, whatever the notation: `1 Mbit/s` and
/// `1000 kbit/s` are one value.
#[derive(Debug)]
pub struct PointIndex<'a> {
    points: &'a [Point],
    by_values: BTreeMap<String, usize>,
}

impl<'a> PointIndex<'a> {
    /// The index of an answer.
    #[must_use]
    pub fn new(answer: &'a Answer) -> Self {
        let mut by_values = BTreeMap::new();
        for (index, point) in answer.points.iter().enumerate() {
            by_values.entry(swept_values(point)).or_insert(index);
        }
        Self { points: &answer.points, by_values }
    }

    /// The point with the swept values of a point at `index` of another answer. Answers to the same
    /// sweep have it at the same index.
    #[must_use]
    pub fn find(&self, index: usize, point: &Point) -> Option<&'a Point> {
        let at_index = self.points.get(index).filter(|own| own.parameters == point.parameters);
        at_index.or_else(|| self.by_values.get(&swept_values(point)).map(|at| &self.points[*at]))
    }
}

/// The swept values of a point as a text that is the same for each notation of them: numbers in
/// base units where the answer has them, and otherwise the values themselves.
#[must_use]
pub fn swept_values(point: &Point) -> String {
    let keys = || point.parameters.keys();
    // A number has the name of its key and of the unit: `link.a.both.delay_s`.
    let key_of = |name: &String| {
        let begins = |key: &&String| {
            name.strip_prefix(key.as_str()).is_some_and(|unit| unit.starts_with('_'))
        };
        keys().filter(begins).max_by_key(|key| key.len())
    };
    let with_number: BTreeSet<&String> = point.numbers.keys().filter_map(key_of).collect();
    let texts = point.parameters.iter().filter(|(key, _)| !with_number.contains(key));
    let texts = texts.map(|(key, value)| format!("{key} = {value}"));
    // Reading JSON may change the last digit of a number.
    let numbers = point.numbers.iter().map(|(name, number)| format!("{name} = {number:.12e}"));
    let mut values: Vec<String> = texts.chain(numbers).collect();
    values.sort();
    values.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(rate: &str, number: f64, stack: &str) -> Point {
        let text = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        Point {
            parameters: [text("link.a.rate", rate), text("flow.up.stack", stack)].into(),
            numbers: [("link.a.rate_bit_per_s".to_owned(), number)].into(),
            ..Point::default()
        }
    }

    #[test]
    fn points_are_found_whatever_the_notation_of_their_values() {
        let one = |rate, number, stack| swept_values(&point(rate, number, stack));
        let mega = one("1 Mbit/s", 1e6, "reno");
        assert_eq!(mega, one("1000 kbit/s", 1e6 + 1e-7, "reno"));
        assert_ne!(mega, one("1 Mbit/s", 1e6, "vegas"));
        assert_ne!(mega, one("2 Mbit/s", 2e6, "reno"));
        let mut other = point("1 Mbit/s", 1e6, "reno");
        other.parameters.reverse();
        assert_eq!(mega, swept_values(&other));
        other.parameters.insert("seed".to_owned(), "1".to_owned());
        assert_ne!(mega, swept_values(&other));
    }
}
