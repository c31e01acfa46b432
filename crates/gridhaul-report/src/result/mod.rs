//! The result of answers in one or two sentences, made by general rules from their numbers.
//!
//! - One point: the values of the flows, or the range over them; whether a link is saturated.
//! - Two points: what differs between them, and the largest significant changes.
//! - A sweep of numbers: the trend, or the best and the worst point.
//! - Another sweep: the best and the worst point.
//! - Several backends: their agreement, or the largest deviation.
//! - Deadlines come first where there are any.
//!
//! A difference within the joint 95 % confidence interval is no significant difference. Of several
//! flows, the sentences name the one that differs most.

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

/// The result of answers to the same question, each under its label: at most two sentences, none
/// where there is nothing to state.
#[must_use]
pub fn result(answers: &[(String, &Answer)]) -> Vec<String> {
    let Some((_, first)) = answers.first() else { return Vec::new() };
    let mut sentences = Vec::new();
    if let [one, other] = answers
        && is_variant(one.1, other.1)
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

/// Whether two answers are of one backend to two scenarios, each without a sweep.
fn is_variant(one: &Answer, other: &Answer) -> bool {
    one.scenario_sha256 != other.scenario_sha256 && one.points.len() == 1 && other.points.len() == 1
}

/// What the points of one answer say.
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

/// Whether chance could matter and nothing is known of it.
fn single_run(answer: &Answer) -> bool {
    answer.replications < 2
        && !answer.backend.contains("model")
        && !answer.points.iter().all(|point| point.deterministic)
}

/// A flow with the quantities that matter for it, the first being what it is for.
struct Subject<'a> {
    name: &'a str,
    measures: Vec<Measure>,
}

/// The flows of a sweep's points; of a group of points that have different flows, those of the first.
fn subjects<'a>(points: &(impl Iterator<Item = &'a Point> + Clone)) -> Vec<Subject<'a>> {
    let Some(first) = points.clone().next() else { return Vec::new() };
    let subject = |row: &'a Row| {
        let rows = points.clone().filter_map(|point| flow(point, &row.name));
        Subject { name: &row.name, measures: measure::of_rows(&rows) }
    };
    // Connections from a collector onwards carry the data of the flows; they are no flows.
    let flows = first.flows.iter().filter(|row| !row.name.contains('>'));
    let subjects = flows.map(subject);
    subjects.filter(|subject| !subject.measures.is_empty()).collect()
}

fn flow<'a>(point: &'a Point, name: &str) -> Option<&'a Row> {
    point.flows.iter().find(|row| row.name == name)
}

/// `the goodput`, or `the goodput of camera` where there are several flows.
fn of_flow(measure: &Measure, name: &str, several: bool) -> String {
    let what = measure.name;
    if several { format!("the {what} of {name}") } else { format!("the {what}") }
}

/// The text with a capital letter at its start.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
