//! Tables of the simulations of a plan.

use gridhaul_report::TextTable;
use gridhaul_report::format::{self, UNKNOWN};
use gridhaul_scenario::units::counted;

use super::agreement::Comparison;
use super::charts::money;
use super::confidence::statement;
use super::evidence::Decision;
use super::tables::table;
use super::{PlanOutcome, SimulatedCandidate};

/// Comparisons of model and simulation: for the model's choice and, if different, for the winner.
pub(crate) fn compared(outcome: &PlanOutcome) -> Vec<TextTable> {
    let first = outcome.simulations.iter().flatten().next();
    let winner = outcome.verified();
    let other = winner.filter(|winner| {
        first.is_none_or(|first| first.candidate.parameters != winner.candidate.parameters)
    });
    let shown = [first, other].into_iter().flatten();
    shown
        .filter(|checked| !checked.comparisons.is_empty())
        .map(|comparison| comparison_table(outcome, comparison))
        .collect()
}

fn comparison_table(outcome: &PlanOutcome, checked: &SimulatedCandidate) -> TextTable {
    let row = |comparison: &Comparison| {
        let agreement = if comparison.agrees() { "agree" } else { "DIFFER" };
        vec![
            format!("{} of {}", comparison.what, comparison.row),
            comparison.shown(comparison.model),
            comparison.shown(comparison.simulated),
            percent(comparison),
            agreement.to_owned(),
        ]
    };
    let rows: Vec<_> = checked.comparisons.iter().map(row).collect();
    let words = checked.candidate.parameters.describe(outcome.keys());
    let title = format!("Model and simulation: {words}");
    let mut table = table(&title, &["quantity", "model", "simulation", "difference", ""], rows, 1);
    if !checked.agrees() {
        table.note = Some(
            "Model and simulation differ by more than 10 % of the simulated value: the choice is \
             based on simulation only."
                .to_owned(),
        );
    }
    table
}

/// The simulated candidates in this order.
pub(crate) fn simulated(outcome: &PlanOutcome) -> TextTable {
    let row = |checked: &SimulatedCandidate| {
        let result = match &checked.decision {
            Decision::Met => met(checked),
            decision => format!("FAILS: {}", short(outcome, checked, decision)),
        };
        vec![
            checked.candidate.parameters.describe(outcome.keys()),
            money(checked.candidate.cost, &outcome.plan),
            checked.evidence.replications().to_string(),
            result,
        ]
    };
    let rows: Vec<_> = outcome.simulations.iter().flatten().map(row).collect();
    let title = format!("Simulated: {}", counted(rows.len(), "candidate"));
    let mut table = table(&title, &["candidate", "cost", "replications", "result"], rows, 1);
    table.note = Some(
        "Met: in every run; the share of all runs is that of a one-sided 95 % confidence interval. \
         Violated: the 95 % confidence interval of the mean lies above the limit."
            .to_owned(),
    );
    table
}

/// Evidence of the runs of a candidate that meets its limits.
fn met(checked: &SimulatedCandidate) -> String {
    if checked.evidence.is_deterministic() {
        return "meets every limit; all runs are equal".to_owned();
    }
    format!("meets every limit in {}", statement(checked.evidence.replications()))
}

/// The names of some limits.
pub(crate) fn names(outcome: &PlanOutcome, limits: &[usize]) -> String {
    let name = |at: &usize| {
        format!("{} ({})", outcome.limits[*at].name(), outcome.limits[*at].bound_words())
    };
    limits.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Why a candidate is rejected, in a few words.
pub(crate) fn short(
    outcome: &PlanOutcome,
    checked: &SimulatedCandidate,
    decision: &Decision,
) -> String {
    let described =
        |which: &[usize]| checked.evidence.describe(&outcome.limits, which, |_| String::new());
    match decision {
        Decision::Met => String::new(),
        Decision::Violated(which) => described(which),
        Decision::TooClose(which) => format!("too close: {}", described(which)),
        Decision::Occasional { limits, runs } => {
            let all = checked.evidence.replications();
            format!("{runs} of {all} runs: {}", names(outcome, limits))
        }
        Decision::Unknown(which) => format!("unknown: {}", described(which)),
        Decision::Invalid(reason) => reason.clone(),
        Decision::Equal { to, .. } => format!("as {}", to.describe(outcome.keys())),
    }
}

fn percent(comparison: &Comparison) -> String {
    let percent = (comparison.model / comparison.simulated - 1.0) * 100.0;
    if !percent.is_finite() {
        return UNKNOWN.to_owned();
    }
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", format::number((percent.abs() * 10.0).round() / 10.0))
}
