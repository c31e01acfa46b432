//! `plan.json`: what planning found out, for programs.

use gridhaul_scenario::scenario::Scenario;
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::agreement::Comparison;
use super::evidence::Decision;
use super::finding::decided;
use super::judge::Judgement;
use super::limits::{Limit, State};
use super::trial::Candidate;
use super::{Basis, Checked, Outcome};

/// The outcome as JSON.
pub(crate) fn document(scenario: &Scenario, outcome: &Outcome) -> Value {
    let choice = |candidate: &Candidate| choice(outcome, candidate);
    let winner = outcome.winner.as_ref().map(|winner| {
        json!({
            "choice": choice(&winner.candidate),
            "basis": match outcome.basis {
                Basis::Equations => "equations",
                Basis::Both => "equations and simulation",
                Basis::Simulation => "simulation",
            },
            "limits": limits(outcome, &winner.model, outcome.verified()),
        })
    });
    let tried = outcome
        .tried
        .as_ref()
        .map(|tried| tried.iter().map(|checked| simulated(outcome, checked)).collect::<Vec<_>>());
    let others = outcome.others.iter().map(|(other, judgement)| {
        json!({
            "what": other.what,
            "choice": choice(&other.candidate),
            "keeps": other.keeps,
            "limits": limits(outcome, judgement, outcome.simulated(&other.candidate)),
        })
    });
    let impossible = outcome.impossible.as_ref().map(|why| {
        let best = outcome.limits.iter().zip(&why.best).map(|(limit, best)| {
            json!({
                "flow": limit.flow,
                "limit": limit.kind,
                "bound": limit.bound,
                "best": best.as_ref().map(|(value, _)| value),
                "choice": best.as_ref().map(|(_, candidate)| choice(candidate)),
            })
        });
        json!({
            "best": best.collect::<Vec<_>>(),
            "nearest": why.nearest.as_ref().map(choice),
            "enough": why.beyond,
        })
    });
    json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "title": scenario.title,
        "scenario_sha256": scenario.sha256(),
        "currency": outcome.plan.currency,
        "finding": outcome.finding(),
        "candidates": outcome.candidates,
        "judged": outcome.judged,
        "winner": winner,
        "simulated": tried,
        "cheaper_not_simulated": outcome.left,
        "others": others.collect::<Vec<_>>(),
        "impossible": impossible,
        "without_answer": outcome.refused,
    })
}

/// A simulated candidate.
fn simulated(outcome: &Outcome, checked: &Checked) -> Value {
    let result = match checked.decision {
        Decision::Keeps => "keeps",
        Decision::Breaks(_) => "breaks",
        Decision::TooClose(_) => "too close",
        Decision::Unknown(_) => "unknown",
        Decision::Invalid(_) => "not valid",
    };
    json!({
        "choice": choice(outcome, &checked.candidate),
        "result": result,
        "reason": decided(outcome, checked, &checked.decision),
        "seeds": checked.evidence.seeds(),
        "limits": limits(outcome, &checked.model, Some(checked)),
        "agrees": checked.agrees(),
        "comparison": checked.comparisons.iter().map(comparison).collect::<Vec<_>>(),
    })
}

fn choice(outcome: &Outcome, candidate: &Candidate) -> Value {
    let values = outcome.keys().iter().zip(&candidate.trial.values);
    let values: IndexMap<_, _> =
        values.filter_map(|(key, value)| Some((key.key.as_str(), value.as_ref()?))).collect();
    json!({
        "values": values,
        "collectors": candidate.trial.collectors,
        "cost": candidate.cost,
    })
}

/// A quantity as both see it.
fn comparison(comparison: &Comparison) -> Value {
    json!({
        "row": comparison.row,
        "metric": comparison.column,
        "model": comparison.model,
        "sim": comparison.simulated,
        "agrees": comparison.agrees(),
    })
}

/// Each limit with its values: loss and late messages as shares, delays in seconds.
fn limits(outcome: &Outcome, model: &Judgement, simulated: Option<&Checked>) -> Vec<Value> {
    let entry = |(at, limit): (usize, &Limit)| {
        let state = match limit.state(&model.measured[at]) {
            State::Kept => Some(true),
            State::Broken => Some(false),
            State::Unknown => None,
        };
        let mut entry = json!({
            "flow": limit.flow,
            "limit": limit.kind,
            "bound": limit.bound,
            "model": model.measured[at].value,
            "model_met": state,
        });
        if let Some(checked) = simulated {
            let measured = checked.evidence.measured(limit);
            let samples = checked.evidence.samples(limit);
            let finite = samples.into_iter().map(|sample| sample.filter(|value| value.is_finite()));
            entry["sim"] = measured.value.into();
            entry["sim_ci95"] = measured.ci95.into();
            entry["sim_runs"] = finite.collect::<Vec<_>>().into();
            entry["sim_met"] = met(&checked.decision, at).into();
        }
        entry
    };
    outcome.limits.iter().enumerate().map(entry).collect()
}

/// Whether a simulation keeps one limit, with a margin for other seeds.
fn met(decision: &Decision, limit: usize) -> Option<bool> {
    match decision {
        Decision::Unknown(which) if which.contains(&limit) => None,
        Decision::Breaks(which) | Decision::TooClose(which) => Some(!which.contains(&limit)),
        Decision::Invalid(_) => Some(false),
        Decision::Keeps | Decision::Unknown(_) => Some(true),
    }
}
