//! Tables of the outcome of planning.

use gridhaul_report::TextTable;
use gridhaul_report::format::{self, UNKNOWN};
use gridhaul_scenario::units::counted;

use super::charts::money;
use super::evaluate::Evaluation;
use super::evidence::Decision;
use super::limits::{Limit, LimitState, Measured};
use super::search::differences;
use super::simulation_tables::{compared, short, simulated};
use super::{Alternative, Basis, PlanOutcome, SimulatedCandidate, Winner};

/// All tables, in the order of the report.
pub(crate) fn tables(outcome: &PlanOutcome) -> Vec<TextTable> {
    let mut tables = Vec::new();
    if let Some(winner) = &outcome.winner {
        tables.push(costs(outcome, winner));
        tables.push(limits_table(outcome, &winner.model, outcome.verified()));
    } else if let Some(first) = outcome.simulations.iter().flatten().next() {
        tables.push(limits_table(outcome, &first.model, Some(first)));
    }
    tables.extend(compared(outcome));
    if outcome.simulations.as_ref().is_some_and(|simulations| simulations.len() > 1) {
        tables.push(simulated(outcome));
    }
    if !outcome.alternatives.is_empty() {
        tables.push(others(outcome));
    }
    if let Some(last) = tables.last_mut() {
        last.note = Some(note(outcome));
    }
    tables
}

fn costs(outcome: &PlanOutcome, winner: &Winner) -> TextTable {
    let mut rows = Vec::new();
    for (key, choice) in outcome.keys().iter().enumerate() {
        let Some(value) = &winner.candidate.parameters.values[key] else { continue };
        let item = winner.items.iter().find(|item| item.key == key);
        let cost = item.map_or(UNKNOWN.to_owned(), |item| money(item.cost, &outcome.plan));
        let times = match item {
            Some(item) if item.times > 1 => format!("{value} × {}", item.times),
            _ => value.clone(),
        };
        rows.push(vec![choice.key.clone(), times, cost]);
    }
    if !winner.candidate.parameters.aggregators {
        rows.push(vec!["without aggregators".to_owned(), String::new(), UNKNOWN.to_owned()]);
    }
    rows.push(vec!["total".into(), String::new(), money(winner.candidate.cost, &outcome.plan)]);
    table("Cheapest feasible candidate", &["key", "value", "cost"], rows, 1)
}

/// Each limit with its values in model and simulation.
fn limits_table(
    outcome: &PlanOutcome,
    model: &Evaluation,
    checked: Option<&SimulatedCandidate>,
) -> TextTable {
    let mut headers = vec!["limit", "allowed", "model"];
    headers.extend(checked.map_or(&[][..], |_| &["simulation", "difference"]));
    headers.extend(["margin", "result"]);
    let mut unknown = false;
    let rows = outcome.limits.iter().enumerate().map(|(at, limit)| {
        let equations = &model.measured[at];
        unknown |= equations.value.is_none();
        let mut row = vec![limit.name(), limit.bound_words(), shown(limit, equations)];
        let mut last = *equations;
        let mut result = limit_result(limit.state(equations)).to_owned();
        if let Some(checked) = checked {
            last = checked.evidence.measured(limit);
            row.push(shown(limit, &last));
            row.push(difference(equations, &last));
            result = outcome_of(&checked.decision, at).to_owned();
        }
        row.push(last.value.map_or(UNKNOWN.to_owned(), |value| margin(limit, value)));
        row.push(result);
        row
    });
    let rows = rows.collect();
    let title = match (&outcome.winner, checked) {
        (None, Some(checked)) => {
            format!("Limits with {}", checked.candidate.parameters.describe(outcome.keys()))
        }
        _ => "Limits".to_owned(),
    };
    let mut table = table(&title, &headers, rows, 2);
    if unknown {
        table.note = Some(
            "–: the model does not compute this quantity; it rejects candidates whose mean segment \
             delay exceeds the limit, and leaves the decision on others to the simulation."
                .to_owned(),
        );
    }
    table
}

fn others(outcome: &PlanOutcome) -> TextTable {
    let Some(winner) = &outcome.winner else { return TextTable::default() };
    let rows = outcome.alternatives.iter().map(|(other, evaluation)| {
        let own = &winner.candidate;
        let extra = match own.cost > 0.0 {
            true => {
                let percent = (other.candidate.cost / own.cost - 1.0) * 100.0;
                let sign = if percent < 0.0 { "−" } else { "+" };
                format!("{sign}{} %", format::number((percent.abs() * 10.0).round() / 10.0))
            }
            false => UNKNOWN.to_owned(),
        };
        vec![
            other.what.clone(),
            differences(&other.candidate.parameters, &own.parameters, outcome.keys()),
            money(other.candidate.cost, &outcome.plan),
            extra,
            alternative_result(outcome, other, evaluation),
        ]
    });
    let headers = ["alternative", "differences", "cost", "", "result"];
    table("Runners-up", &headers, rows.collect(), 2)
}

/// Result of an alternative: of its simulation or, by the model, for the limit that is closest to
/// its bound.
fn alternative_result(
    outcome: &PlanOutcome,
    other: &Alternative,
    evaluation: &Evaluation,
) -> String {
    let state = if other.meets_limits { "met" } else { "FAILS" };
    if let Some(checked) = outcome.simulated(&other.candidate) {
        return match &checked.decision {
            Decision::Met => "simulated: met".to_owned(),
            decision => format!("simulated: FAILS: {}", short(outcome, checked, decision)),
        };
    }
    let by = match outcome.basis {
        Basis::Simulation => "not simulated; model",
        Basis::Model | Basis::Both => "model",
    };
    if let Some(error) = &evaluation.error {
        return format!("{by}: FAILS: {error}");
    }
    let worst = outcome.limits.iter().zip(&evaluation.measured);
    let worst = worst.filter_map(|(limit, measured)| {
        // Without the value, its lower bound shows how close the limit is.
        let value = measured.value.or(measured.floor)?;
        Some((limit.utilisation(value), limit, measured))
    });
    let Some((_, limit, measured)) = worst.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return "unknown".to_owned();
    };
    match measured.value {
        Some(value) => {
            format!("{by}: {state}: {} {}", limit.name(), limit.shown(value))
        }
        None => format!("{by}: {state}"),
    }
}

/// Number of evaluated and simulated candidates, and of those without an answer.
fn note(outcome: &PlanOutcome) -> String {
    let mut text = format!(
        "{} of {} candidates evaluated by the model.",
        outcome.evaluated.min(outcome.candidates),
        outcome.candidates
    );
    if let Some(simulations) = &outcome.simulations {
        let runs: usize = simulations.iter().map(|checked| checked.evidence.replications()).sum();
        text += &format!(" {} simulated, in {}.", simulations.len(), counted(runs, "replication"));
        if outcome.excluded > 0 {
            text += &format!(
                " {} not simulated: a simulated one that fails differs only in a smaller buffer, \
                 whose size has no influence on the result.",
                outcome.excluded
            );
        }
    }
    for (why, count) in &outcome.without_answer {
        let verb = if *count == 1 { "has" } else { "have" };
        let candidates = counted(*count, "candidate");
        text += &format!("\n{candidates} {verb} no answer of the model: {why}");
    }
    text
}

/// A value with its confidence interval.
fn shown(limit: &Limit, measured: &Measured) -> String {
    match (measured.value, measured.ci95) {
        (Some(value), Some(ci95)) => format!("{} ± {}", limit.shown(value), limit.shown(ci95)),
        (Some(value), None) => limit.shown(value),
        (None, _) => UNKNOWN.to_owned(),
    }
}

fn difference(model: &Measured, simulation: &Measured) -> String {
    match (model.value, simulation.value) {
        (Some(model), Some(simulation)) if simulation > 0.0 => {
            let percent = (model / simulation - 1.0) * 100.0;
            let sign = if percent < 0.0 { "−" } else { "+" };
            format!("{sign}{} %", format::number((percent.abs() * 10.0).round() / 10.0))
        }
        _ => UNKNOWN.to_owned(),
    }
}

/// Margin between a value and its limit, in percent of the limit.
fn margin(limit: &Limit, value: f64) -> String {
    let margin = (1.0 - limit.utilisation(value)) * 100.0;
    if !margin.is_finite() {
        return UNKNOWN.to_owned();
    }
    let sign = if margin < 0.0 { "−" } else { "" };
    format!("{sign}{} %", format::number(margin.abs().round()))
}

/// Result of a simulation for one limit.
fn outcome_of(decision: &Decision, limit: usize) -> &'static str {
    match decision {
        Decision::Violated(which) if which.contains(&limit) => "VIOLATED",
        Decision::TooClose(which) if which.contains(&limit) => "TOO CLOSE",
        Decision::Occasional { limits, .. } if limits.contains(&limit) => "VIOLATED in some runs",
        Decision::Unknown(which) if which.contains(&limit) => "unknown",
        Decision::Invalid(_) => "INVALID",
        Decision::Equal { decision, .. } => outcome_of(decision, limit),
        _ => "met",
    }
}

const fn limit_result(state: LimitState) -> &'static str {
    match state {
        LimitState::Met => "met",
        LimitState::Violated => "VIOLATED",
        LimitState::Unknown => "unknown",
    }
}

pub(crate) fn table(
    title: &str,
    headers: &[&str],
    rows: Vec<Vec<String>>,
    key_columns: usize,
) -> TextTable {
    let headers = headers.iter().map(|header| (*header).to_owned()).collect();
    TextTable { title: title.to_owned(), headers, rows, key_columns, note: None }
}
