//! Points and rows that compared answers have in common.

use std::collections::BTreeSet;

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
pub(super) fn has_common_point(first: &Answer, others: &[(String, &Answer)]) -> bool {
    let has = |point: &Point| {
        let points = others.iter().flat_map(|(_, other)| &other.points);
        points.map(|other| &other.parameters).any(|other| *other == point.parameters)
    };
    first.points.iter().any(has)
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

fn row_names(point: &Point) -> Vec<String> {
    rows_of(point).map(|(_, row)| row.name.clone()).collect()
}

fn point_names(points: &[Point]) -> Vec<String> {
    let name = |point: &Point| match point.parameters.is_empty() {
        true => "a point without a sweep".to_owned(),
        false => point_name(point),
    };
    points.iter().map(name).collect()
}

/// The sentence about names that an answer has and another one lacks.
fn only_in(label: &str, has: &[String], lacks: &[String]) -> Option<String> {
    let lacks: BTreeSet<&String> = lacks.iter().collect();
    let only: Vec<_> = has.iter().filter(|name| !lacks.contains(name)).collect();
    let shown: Vec<_> = only.iter().take(NAMES).map(|name| name.as_str()).collect();
    let more = match only.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!only.is_empty()).then(|| format!("only in {label}: {}{more}", shown.join("; ")))
}
