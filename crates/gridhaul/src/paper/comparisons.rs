//! All comparisons of a paper in words, for the summary of its report.

use std::collections::BTreeMap;

use gridhaul_report::verdict::verdict_text;
use gridhaul_report::{Comparison, Reference, Verdict, format};

use super::backend_agreement::Agreement;
use super::check::{CheckedCell, quantity};
use super::claim::ClaimResult;
use super::column_select::scaled;
use super::expected::{Expected, Unit};
use super::figure::backend_label;
use super::{Findings, Paper};

/// The comparisons of the published numbers, of the statements and of the backends.
pub(crate) fn comparisons(paper: &Paper, findings: &Findings) -> Vec<Comparison> {
    let mut all: Vec<_> = findings.claims.iter().map(of_claim).collect();
    all.extend(findings.cells.iter().map(|cell| of_cell(paper, cell)));
    all.extend(of_agreements(paper, &findings.agreements));
    all
}

/// The verdict on a published number in words.
pub(super) fn verdict_of_cell(cell: &CheckedCell) -> String {
    verdict_text(cell.reference, cell.verdict, cell.ok)
}

/// The verdict on a claim in words.
pub(super) fn verdict_of_claim(result: &ClaimResult) -> String {
    verdict_text(Reference::Statement, result.verdict, result.ok)
}

/// A number of the paper or of ns-2 with its unit.
pub(super) fn printed_value(expected: &Expected, number: Option<f64>) -> Option<String> {
    let unit = base_unit(expected.unit);
    number.map(|number| format::value(number * expected.unit.in_base(), unit))
}

/// The unit without prefix; the formatting functions choose the prefix.
pub(super) fn base_unit(unit: Unit) -> &'static str {
    match unit.text() {
        "kbit/s" | "Mbit/s" => "bit/s",
        "ms" => "s",
        "%" => "",
        unit => unit,
    }
}

fn of_claim(result: &ClaimResult) -> Comparison {
    let judged = backend_label(&result.backend);
    Comparison {
        statement: result.text.clone(),
        reference: Reference::Statement,
        printed: None,
        measured: format!("{judged}: {}", result.detail),
        verdict: result.verdict,
        as_recorded: result.ok,
        reason: result.reason.clone().filter(|_| result.verdict != Verdict::Agrees),
    }
}

fn of_cell(paper: &Paper, cell: &CheckedCell) -> Comparison {
    let expected = &cell.expected;
    let heading = paper.definition.table.get(&expected.table).unwrap_or(&expected.table);
    // The heading without its explanation: "Table 2".
    let heading = heading.split(':').next().unwrap_or_default();
    let value =
        format::estimate(&scaled(cell.gridhaul, expected.unit.in_base()), base_unit(expected.unit));
    let judged = cell.backend.as_deref().map_or("no answer", backend_label);
    let printed = match cell.reference {
        Reference::Ns2 => printed_value(expected, expected.ns2_mean).map(|value| value + " (ns-2)"),
        Reference::OwnRange => None,
        _ => printed_value(expected, expected.paper),
    };
    Comparison {
        statement: format!("{heading}: {}, {}", expected.row, quantity(&expected.quantity)),
        reference: cell.reference,
        printed,
        measured: format!("{judged}: {value}"),
        verdict: cell.verdict,
        as_recorded: cell.ok,
        reason: expected.reason.clone().filter(|_| cell.verdict != Verdict::Agrees),
    }
}

/// One comparison for each curve and pair of backends.
fn of_agreements(paper: &Paper, all: &[Agreement]) -> Vec<Comparison> {
    let figures = &paper.definition.figure;
    let mut groups: BTreeMap<(usize, &str, &[String; 2]), Vec<&Agreement>> = BTreeMap::new();
    for one in all {
        let index = figures.iter().position(|figure| figure.name == one.figure);
        let key = (index.unwrap_or(usize::MAX), one.line.as_str(), &one.backends);
        groups.entry(key).or_default().push(one);
    }
    groups
        .into_iter()
        .map(|((index, line, backends), points)| {
            let figure = figures.get(index);
            let title = figure.map_or("", |figure| figure.title.as_str());
            let section = figure.and_then(|figure| paper.definition.table.get(&figure.table));
            let section = section.map_or("", |heading| heading.split(':').next().unwrap_or(""));
            let label =
                figure.and_then(|figure| figure.line.iter().find(|curve| curve.name == line));
            let label = label.map_or(line, |line| line.label.as_str());
            let [judged, reference] = [&backends[0], &backends[1]].map(|name| backend_label(name));
            let tolerance = points[0].tolerance;
            of_points(
                format!(
                    "{section}, {title}, {label}: {judged} agrees with {reference} (to {tolerance})"
                ),
                &points,
            )
        })
        .collect()
}

/// The comparison of a curve from those of its points.
fn of_points(statement: String, points: &[&Agreement]) -> Comparison {
    let count = |verdict| points.iter().filter(|one| one.verdict == verdict).count();
    let verdict = if count(Verdict::Differs) > 0 {
        Verdict::Differs
    } else if count(Verdict::Undecided) > 0 {
        Verdict::Undecided
    } else {
        Verdict::Agrees
    };
    let limit = points[0].tolerance.limit;
    let largest = points.iter().map(|one| limit.difference(one.values)).fold(0.0, f64::max);
    let mut reasons: Vec<&str> = Vec::new();
    for reason in points.iter().filter_map(|one| one.reason.as_deref()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    Comparison {
        statement,
        reference: Reference::Backend,
        printed: None,
        measured: format!(
            "{} of {} points agree; largest difference {}",
            count(Verdict::Agrees),
            points.len(),
            limit.with(largest)
        ),
        verdict,
        as_recorded: points.iter().all(|one| one.deviation.is_none()),
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
    }
}
