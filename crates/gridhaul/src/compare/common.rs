//! Points and rows that compared answers have in common.

use std::collections::BTreeSet;

use gridhaul_report::{PointIndex, swept_values};
use gridhaul_scenario::answer::{Answer, Point};

use super::rows_of;

/// Largest number of names in a sentence.
const NAMES: usize = 5;

/// The swept keys and values of a point; empty without a sweep.
pub(super) fn point_name(point: &Point) -> String {
    let parameters = point.parameters.iter().map(|(key, value)| format!("{key} = {value}"));
    parameters.collect::<Vec<_>>().join(", ")
}

/// Whether another answer has a point of the first one.
pub(super) fn has_common_point(first: &Answer, others: &[(&Answer, PointIndex<'_>)]) -> bool {
    let mut points = first.points.iter().enumerate();
    points.any(|(at, point)| others.iter().any(|(_, other)| other.find(at, point).is_some()))
}

/// A point or row: its name in sentences, and a text that is equal for the same one of another
/// answer.
struct Part {
    name: String,
    identity: String,
}

/// Points that only the first or only another answer has, or, in answers without a sweep, rows. One
/// sentence for each answer with such points or rows.
pub(super) fn missing(first: &(String, &Answer), others: &[(String, &Answer)]) -> Vec<String> {
    let mut sentences = Vec::new();
    for other in others {
        let (ours, theirs) = match (&first.1.points[..], &other.1.points[..]) {
            ([one], [another]) => (row_names(one), row_names(another)),
            (points, others) => (point_names(points), point_names(others)),
        };
        let found = [only_in(&first.0, &ours, &theirs), only_in(&other.0, &theirs, &ours)];
        for sentence in found.into_iter().flatten() {
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    sentences
}

fn row_names(point: &Point) -> Vec<Part> {
    let names = rows_of(point).map(|(_, row)| row.name.clone());
    names.map(|name| Part { identity: name.clone(), name }).collect()
}

fn point_names(points: &[Point]) -> Vec<Part> {
    let name = |point: &Point| match point.parameters.is_empty() {
        true => "a point without a sweep".to_owned(),
        false => point_name(point),
    };
    points.iter().map(|point| Part { name: name(point), identity: swept_values(point) }).collect()
}

/// The sentence about names that an answer has and another one lacks.
fn only_in(label: &str, has: &[Part], lacks: &[Part]) -> Option<String> {
    let lacks: BTreeSet<&String> = lacks.iter().map(|part| &part.identity).collect();
    let only: Vec<_> = has.iter().filter(|part| !lacks.contains(&part.identity)).collect();
    let shown: Vec<_> = only.iter().take(NAMES).map(|part| part.name.as_str()).collect();
    let more = match only.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!only.is_empty()).then(|| format!("only in {label}: {}{more}", shown.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rate: &str) -> Answer {
        let point = Point {
            parameters: [("link.a.rate".to_owned(), rate.to_owned())].into(),
            numbers: [("link.a.rate_bit_per_s".to_owned(), 1e6)].into(),
            ..Point::default()
        };
        Answer {
            schema: Answer::SCHEMA,
            gridhaul: String::new(),
            backend: "sim".to_owned(),
            title: String::new(),
            scenario_sha256: String::new(),
            seed: 1,
            replications: 1,
            incomplete: false,
            points: vec![point.clone(), point],
            warnings: Vec::new(),
            series: Vec::new(),
            captures: Vec::new(),
            event_logs: Vec::new(),
        }
    }

    #[test]
    fn a_point_is_common_whatever_the_notation_of_its_values() {
        let [mega, kilo] = ["1 Mbit/s", "1000 kbit/s"].map(answer);
        assert!(has_common_point(&mega, &[(&kilo, PointIndex::new(&kilo))]));
        let named = |answer| ("a".to_owned(), answer);
        assert!(missing(&named(&mega), &[named(&kilo)]).is_empty());
    }
}
