//! One point: the main quantities of its flows, and saturated links.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Estimate, Metric, Point};

use super::measure::{Measure, is_significant};
use super::{Subject, capital, flow, of_flow, subjects};

/// The sentences on the main quantity of the flows and on saturated links.
pub(super) fn sentences(point: &Point, answer: &Answer) -> Vec<String> {
    let subjects = subjects(&std::iter::once(point));
    let mut kinds: Vec<(Measure, Vec<&Subject<'_>>)> = Vec::new();
    for subject in &subjects {
        let main = subject.measures[0];
        match kinds.iter_mut().find(|(measure, _)| *measure == main) {
            Some((_, own)) => own.push(subject),
            None => kinds.push((main, vec![subject])),
        }
    }
    let kinds = kinds.iter().take(2).filter_map(|(measure, own)| match &own[..] {
        [only] => one(point, only, subjects.len() > 1, answer),
        own => several(point, measure, own),
    });
    let text = kinds.collect::<Vec<_>>().join("; ");
    let mut sentences = Vec::new();
    if !text.is_empty() {
        sentences.push(capital(&text) + ".");
    }
    sentences.extend(saturated(point));
    sentences
}

/// The clause on the first quantities of one flow.
fn one(point: &Point, subject: &Subject<'_>, several: bool, answer: &Answer) -> Option<String> {
    let row = flow(point, subject.name)?;
    let main = subject.measures.first()?;
    let estimate = main.of(row)?;
    let mut text =
        format!("{} is {}", of_flow(main, subject.name, several), main.with_interval(&estimate));
    if main.metric == Metric::CompletionTime && estimate.n < answer.replications_of(point) {
        text +=
            &format!(" (completed in {} of {} runs)", estimate.n, answer.replications_of(point));
    }
    let more = if several { 1 } else { 2 };
    let rest = subject.measures[1..].iter().filter_map(|measure| {
        let mean = measure.of(row)?.mean?;
        Some(format!("the {} {}", measure.name, measure.text(mean)))
    });
    let rest: Vec<String> = rest.take(more).collect();
    if !rest.is_empty() {
        text += &format!(", {}", rest.join(", "));
    }
    Some(text)
}

/// The clause on the range of a quantity over several flows: the main quantity or, if it does not
/// differ, the next one that does.
fn several(point: &Point, main: &Measure, subjects: &[&Subject<'_>]) -> Option<String> {
    let differs = |measure: &&Measure| {
        let rows = subjects.iter().filter_map(|subject| flow(point, subject.name));
        let values: Vec<Estimate> = rows.filter_map(|row| measure.of(row)).collect();
        values.iter().any(|one| values.iter().any(|other| is_significant(one, other)))
    };
    let measure = subjects[0].measures.iter().find(differs).unwrap_or(main);
    let value = |subject: &&Subject<'_>| -> Option<(String, Estimate)> {
        Some((subject.name.to_owned(), measure.of(flow(point, subject.name)?)?))
    };
    let mut values: Vec<_> = subjects.iter().filter_map(value).collect();
    values.sort_by(|a, b| a.1.mean.unwrap_or(0.0).total_cmp(&b.1.mean.unwrap_or(0.0)));
    let ((minimum, low), (maximum, high)) = (values.first()?, values.last()?);
    let [low_text, high_text] = [low, high].map(|value| measure.with_interval(value));
    Some(if is_significant(low, high) {
        format!(
            "the {} is between {low_text} ({minimum}) and {high_text} ({maximum})",
            measure.name
        )
    } else {
        format!(
            "the {} does not differ significantly between the flows: {low_text} ({minimum}) and \
             {high_text} ({maximum})",
            measure.name
        )
    })
}

/// Utilisation from which a link counts as saturated.
const SATURATION_UTILISATION: f64 = 0.95;

fn saturated(point: &Point) -> Option<String> {
    let used = |row: &gridhaul_scenario::answer::Row| row.mean(Metric::Utilisation);
    let full = point
        .links
        .iter()
        .filter(|row| !row.is_of_class())
        .filter(|row| used(row).is_some_and(|used| used >= SATURATION_UTILISATION));
    let names: Vec<_> = full.map(|row| row.name.as_str()).collect();
    match names[..] {
        [] => None,
        [name] => Some(format!("The link {name} is saturated.")),
        [first, .., last] if names.len() == 2 => {
            Some(format!("The links {first} and {last} are saturated."))
        }
        [first, ..] => Some(format!("{} links are saturated, among them {first}.", names.len())),
    }
}
