//! Two points, or two variants of a scenario: the changes from the first to the second.

use gridhaul_scenario::answer::{Estimate, Point};

use super::measure::{Measure, NOTABLE, is_significant};
use super::{Subject, flow, of_flow, subjects};
use crate::format;

/// The change of one quantity of one flow between two points.
struct Change<'a> {
    flow: &'a str,
    measure: Measure,
    from: Estimate,
    to: Estimate,
    /// Rank among the changes.
    weight: f64,
}

/// The sentence on the largest changes: first the flow that changes most, then others.
pub(super) fn sentence(names: [&str; 2], points: [&Point; 2], single_run: bool) -> Option<String> {
    let subjects = subjects(&points.into_iter());
    let several = points[0].flows.len() > 1;
    let all: Vec<Change<'_>> =
        subjects.iter().flat_map(|subject| changes(subject, points)).collect();
    let mut notable: Vec<&Change<'_>> = all.iter().filter(|change| change.is_notable()).collect();
    notable.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let (first, second) = (names[0], names[1]);
    let Some(head) = notable.first() else {
        return none(names, &all, several);
    };
    let mut text = format!(
        "With {second} instead of {first}, {} {}",
        of_flow(&head.measure, head.flow, several),
        head.headline()
    );
    // One more quantity of the same flow, and the largest change of another flow.
    let own = notable.iter().skip(1).find(|change| change.flow == head.flow);
    let other = notable.iter().find(|change| change.flow != head.flow);
    for change in own.into_iter().chain(other) {
        text +=
            &format!("; {} {}", of_flow(&change.measure, change.flow, several), change.clause());
    }
    text += if single_run { " (single runs, no confidence intervals)." } else { "." };
    Some(text)
}

/// The sentence if there is no significant change.
fn none(names: [&str; 2], all: &[Change<'_>], several: bool) -> Option<String> {
    let head = all.first()?;
    let what = of_flow(&head.measure, head.flow, several);
    let same = head.from.mean == head.to.mean && head.from.ci95 == head.to.ci95;
    let values = [head.from, head.to].map(|value| head.measure.with_interval(&value));
    let (first, second) = (names[0], names[1]);
    Some(if same {
        format!("{first} and {second} do not differ: {what} is {} in both.", values[0])
    } else {
        let adjective = if head.from.ci95.is_some() { "significant" } else { "notable" };
        let [one, other] = values;
        format!(
            "No {adjective} difference between {first} and {second}: {what} is {one} and {other}."
        )
    })
}

fn changes<'a>(subject: &Subject<'a>, points: [&Point; 2]) -> Vec<Change<'a>> {
    let rows = points.map(|point| flow(point, subject.name));
    let [Some(one), Some(other)] = rows else { return Vec::new() };
    let measures = subject.measures.iter().enumerate();
    let change = |(rank, measure): (usize, &Measure)| {
        let (from, to) = (measure.of(one)?, measure.of(other)?);
        let size = measure.distance(from.mean?, to.mean?);
        // The main quantity of a flow comes first, unless another one changes far more.
        let weight = size / (1.0 + 0.6 * rank as f64);
        Some(Change { flow: subject.name, measure: *measure, from, to, weight })
    };
    measures.filter_map(change).collect()
}

impl Change<'_> {
    fn is_notable(&self) -> bool {
        let (from, to) = self.means();
        self.measure.distance(from, to) > NOTABLE && is_significant(&self.from, &self.to)
    }

    fn means(&self) -> (f64, f64) {
        (self.from.mean.unwrap_or(0.0), self.to.mean.unwrap_or(0.0))
    }

    /// `doubles: 0.56 → 1.12 Mbit/s`.
    fn headline(&self) -> String {
        let (from, to) = self.means();
        let values = format::change(from, to, self.measure.unit());
        format!("{}: {values}", verb(from, to, self.measure.unit() == format::Unit::Share))
    }

    /// `falls from 1.81 s to 0.92 s`.
    fn clause(&self) -> String {
        let (from, to) = self.means();
        let verb = if to > from { "rises" } else { "falls" };
        let [from, to] = format::both(from, to, self.measure.unit());
        format!("{verb} from {from} to {to}")
    }
}

/// The verb for a change of a value.
fn verb(from: f64, to: f64, is_share: bool) -> String {
    let ratio = to / from;
    if from <= 0.0 || is_share || !ratio.is_finite() {
        return if to > from { "rises" } else { "falls" }.to_owned();
    }
    match ratio {
        1.9..=2.1 => "doubles".to_owned(),
        0.475..=0.525 => "halves".to_owned(),
        _ if ratio > 2.1 => format!("is {} times as high", times(ratio)),
        _ if ratio > 1.0 => format!("rises by {} %", percent(ratio - 1.0)),
        _ => format!("falls by {} %", percent(1.0 - ratio)),
    }
}

fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1}") } else { format::fixed(ratio, 0) }
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        // A decrease to a small value is none of 100 %.
        percent if percent > 99.9 && share < 1.0 => "more than 99.9".to_owned(),
        percent if !(10.0..=99.0).contains(&percent) => format!("{percent:.1}"),
        percent => format!("{percent:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decrease_to_a_small_value_is_none_of_a_hundred_percent() {
        let shares = [0.012, 0.25, 0.996, 0.999_8, 1.0];
        assert_eq!(shares.map(percent), ["1.2", "25", "99.6", "more than 99.9", "100.0"]);
    }
}
