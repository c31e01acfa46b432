//! Several answers: agreement with the first one, and the largest deviation.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::Estimate;

use super::measure::{Measure, is_significant};
use super::{flow, of_flow, subjects};
use crate::parameter_label::PointLabels;
use crate::point_index::PointIndex;

/// Relative deviation up to which answers agree.
const AGREEMENT: f64 = 0.1;

/// Number of compared quantities of each flow: its main quantity and the next one.
const MEASURES: usize = 2;

/// A quantity in the first and in another answer.
struct Pair<'a> {
    label: &'a str,
    point: String,
    flow: &'a str,
    measure: Measure,
    values: [f64; 2],
    deviation: f64,
    significant: bool,
}

/// The largest deviation from the first answer over all points and flows.
pub(super) fn sentence(answers: &[(String, &Answer)]) -> Option<String> {
    let (first, others) = answers.split_first()?;
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for other in others {
        pairs.extend(self::pairs(first.1, other));
    }
    let names: Vec<&str> = answers.iter().map(|(label, _)| label.as_str()).collect();
    let unanswered: Vec<&str> = others
        .iter()
        .map(|(label, _)| label.as_str())
        .filter(|label| !pairs.iter().any(|pair| pair.label == *label))
        .collect();
    let largest = pairs.iter().max_by(|a, b| a.deviation.total_cmp(&b.deviation));
    let Some(largest) = largest else {
        return Some(format!("{} have no quantity in common.", names.join(" and ")));
    };
    let several = first.1.points.first().is_some_and(|point| point.flows.len() > 1);
    let what = of_flow(&largest.measure, largest.flow, several);
    let at =
        if largest.point.is_empty() { String::new() } else { format!(" at {}", largest.point) };
    let percent = largest.deviation * 100.0;
    let mut text = if pairs.iter().all(|pair| !pair.significant) {
        format!(
            "{} agree within the confidence intervals; the largest difference is {percent:.1} % \
             ({what}{at})",
            list(&names)
        )
    } else if largest.deviation <= AGREEMENT {
        format!("{} agree within {percent:.1} % (largest in {what}{at})", list(&names))
    } else {
        let [own, other] = largest.values.map(|value| largest.measure.text(value));
        let agreeing = pairs.iter().filter(|pair| pair.deviation <= AGREEMENT).count();
        format!(
            "{} deviates from {} most in {what}{at}: {other} instead of {own} ({}); {agreeing} \
             of {} compared values agree within 10 %",
            largest.label,
            names[0],
            signed(largest.values[1] / largest.values[0] - 1.0),
            pairs.len()
        )
    };
    if !unanswered.is_empty() {
        text += &format!("; {} has no value to compare", unanswered.join(" and "));
    }
    Some(text + ".")
}

fn pairs<'a>(first: &'a Answer, (label, other): &'a (String, &'a Answer)) -> Vec<Pair<'a>> {
    let single_points = first.points.len() == 1 && other.points.len() == 1;
    let (labels, index_of_other) = (PointLabels::new(&first.points), PointIndex::new(other));
    let mut pairs = Vec::new();
    for (index, point) in first.points.iter().enumerate() {
        let counterpart =
            if single_points { other.points.first() } else { index_of_other.find(index, point) };
        let Some(counterpart) = counterpart else { continue };
        for subject in subjects(&[point].into_iter()) {
            let rows = [point, counterpart].map(|point| flow(point, subject.name));
            let [Some(one), Some(two)] = rows else { continue };
            // Ratios of rare events are not compared: small absolute differences are large relative
            // ones.
            let measures = subject
                .measures
                .iter()
                .filter(|candidate| !candidate.metric.info().unit.is_empty());
            for measure in measures.take(MEASURES) {
                let (Some(a), Some(b)) = (measure.of(one), measure.of(two)) else { continue };
                let Some(deviation) = deviation(&a, &b) else { continue };
                pairs.push(Pair {
                    label,
                    point: labels.of(index),
                    flow: subject.name,
                    measure: *measure,
                    values: [a.mean.unwrap_or(0.0), b.mean.unwrap_or(0.0)],
                    deviation,
                    significant: is_significant(&a, &b),
                });
            }
        }
    }
    pairs
}

fn deviation(one: &Estimate, other: &Estimate) -> Option<f64> {
    let (a, b) = (one.mean?, other.mean?);
    (a != 0.0).then(|| (b / a - 1.0).abs())
}

/// A relative difference in percent, with its sign.
fn signed(difference: f64) -> String {
    let sign = if difference < 0.0 { '−' } else { '+' };
    format!("{sign}{:.0} %", difference.abs() * 100.0)
}

fn list(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        names => names.concat(),
    }
}
