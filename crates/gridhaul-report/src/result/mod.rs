//! The result of answers in one or two sentences, generated from their metrics.
//!
//! - One point: the values of the flows, or their range; saturated links.
//! - Two points: the parameters that differ, and the largest significant changes.
//! - A sweep of numbers: the trend, or the best and the worst point.
//! - Another sweep: the best and the worst point.
//! - Several backends: their agreement, or the largest deviation.
//! - Deadlines come first, if there are any.
//!
//! Differences within the joint 95 % confidence interval are not significant. With several flows,
//! the sentences name the one with the largest change.

mod agreement;
mod deadline;
mod measure;
mod single_point;
mod sweep;
mod two_points;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Point, Row};

use crate::parameter_label;
use measure::Measure;

/// The result of answers to the same scenario, each with its label: at most two sentences.
#[must_use]
pub fn result(answers: &[(String, &Answer)]) -> Vec<String> {
    let Some((_, first)) = answers.first() else { return Vec::new() };
    let mut sentences = Vec::new();
    if let [one, other] = answers
        && are_scenario_variants(one.1, other.1)
    {
        let names = [one.0.as_str(), other.0.as_str()];
        let points = [&one.1.points[0], &other.1.points[0]];
        sentences.extend(two_points::sentence(names, points, single_run(first)));
        return sentences;
    }
    sentences.extend(deadline::sentence(first));
    if answers.len() > 1 {
        if sentences.is_empty() {
            sentences.extend(of_points(first).into_iter().next());
        }
        sentences.extend(agreement::sentence(answers));
    } else {
        sentences.extend(of_points(first));
    }
    sentences.truncate(2);
    sentences
}

/// Whether two answers are for different scenarios, each without a sweep.
fn are_scenario_variants(one: &Answer, other: &Answer) -> bool {
    one.scenario_sha256 != other.scenario_sha256 && one.points.len() == 1 && other.points.len() == 1
}

/// The sentences on the points of one answer.
fn of_points(answer: &Answer) -> Vec<String> {
    match &answer.points[..] {
        [] => Vec::new(),
        [point] => single_point::sentences(point, answer),
        [one, other] => {
            let names = [
                parameter_label::of_point(&answer.points, 0),
                parameter_label::of_point(&answer.points, 1),
            ];
            let names = [names[0].as_str(), names[1].as_str()];
            if names[0] == names[1] {
                return single_point::sentences(one, answer);
            }
            two_points::sentence(names, [one, other], single_run(answer)).into_iter().collect()
        }
        _ => sweep::sentence(answer).into_iter().collect(),
    }
}

/// Whether the result depends on random numbers and there is no confidence interval.
fn single_run(answer: &Answer) -> bool {
    answer.replications < 2
        && !answer.backend.contains("model")
        && !answer.points.iter().all(|point| point.deterministic)
}

/// A flow with its quantities, the main one first.
struct Subject<'a> {
    name: &'a str,
    measures: Vec<Measure>,
}

/// The flows of the points; if the points have different flows, those of the first point.
fn subjects<'a>(points: &(impl Iterator<Item = &'a Point> + Clone)) -> Vec<Subject<'a>> {
    let Some(first) = points.clone().next() else { return Vec::new() };
    let subject = |row: &'a Row| {
        let rows = points.clone().filter_map(|point| flow(point, &row.name));
        Subject { name: &row.name, measures: measure::of_rows(&rows) }
    };
    // Rows of upstream connections of aggregators carry data of the flows and are not flows.
    let flows = first.flows.iter().filter(|row| !row.name.contains('>'));
    let subjects = flows.map(subject);
    subjects.filter(|subject| !subject.measures.is_empty()).collect()
}

fn flow<'a>(point: &'a Point, name: &str) -> Option<&'a Row> {
    point.flows.iter().find(|row| row.name == name)
}

/// `the goodput`, or `the goodput of camera` if there are several flows.
fn of_flow(measure: &Measure, name: &str, several: bool) -> String {
    let what = measure.name;
    if several { format!("the {what} of {name}") } else { format!("the {what}") }
}

/// Capitalises the first letter.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
