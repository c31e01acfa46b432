//! `plan.json`: the outcome of planning as JSON.

use gridhaul_scenario::scenario::Scenario;
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::agreement::Comparison;
use super::candidate::Candidate;
use super::confidence::share_shown;
use super::evaluate::Evaluation;
use super::evidence::Decision;
use super::limits::{Limit, LimitState};
use super::summary::decided;
use super::{Basis, PlanOutcome, SimulatedCandidate};

/// The outcome as JSON.
pub(crate) fn document(scenario: &Scenario, outcome: &PlanOutcome) -> Value {
    let choice = |candidate: &Candidate| choice(outcome, candidate);
    let winner = outcome.winner.as_ref().map(|winner| {
        json!({
            "choice": choice(&winner.candidate),
            "basis": match outcome.basis {
                Basis::Model => "model",
                Basis::Both => "model and simulation",
                Basis::Simulation => "simulation",
            },
            "limits": limits(outcome, &winner.model, outcome.verified()),
        })
    });
    let simulations = outcome.simulations.as_ref().map(|simulations| {
        simulations.iter().map(|checked| simulated(outcome, checked)).collect::<Vec<_>>()
    });
    let others = outcome.alternatives.iter().map(|(other, evaluation)| {
        json!({
            "what": other.what,
            "choice": choice(&other.candidate),
            "met": other.meets_limits,
            "limits": limits(outcome, evaluation, outcome.simulated(&other.candidate)),
        })
    });
    let infeasible = outcome.infeasible.as_ref().map(|why| {
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
            "sufficient": why.sufficient,
        })
    });
    json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "title": scenario.title,
        "scenario_sha256": scenario.sha256(),
        "currency": outcome.plan.currency,
        "summary": outcome.summary(),
        "candidates": outcome.candidates,
        "evaluated": outcome.evaluated,
        "winner": winner,
        "simulated": simulations,
        "cheaper_not_simulated": outcome.not_simulated,
        "excluded": outcome.excluded,
        "alternatives": others.collect::<Vec<_>>(),
        "infeasible": infeasible,
        "without_answer": outcome.without_answer,
    })
}

/// A simulated candidate.
fn simulated(outcome: &PlanOutcome, checked: &SimulatedCandidate) -> Value {
    let result = match &checked.decision {
        Decision::Met => "met",
        Decision::Violated(_) => "violated",
        Decision::TooClose(_) => "too close",
        Decision::Occasional { .. } => "occasional",
        Decision::Unknown(_) => "unknown",
        Decision::Invalid(_) => "invalid",
        Decision::Equal { .. } => "equal",
    };
    json!({
        "choice": choice(outcome, &checked.candidate),
        "result": result,
        "reason": decided(outcome, checked, &checked.decision),
        "seeds": checked.evidence.seeds(),
        "share_of_runs_min": (checked.meets_limits() && !checked.evidence.is_deterministic())
            .then(|| share_shown(checked.evidence.replications())),
        "limits": limits(outcome, &checked.model, Some(checked)),
        "agrees": checked.agrees(),
        "comparison": checked.comparisons.iter().map(comparison).collect::<Vec<_>>(),
    })
}

fn choice(outcome: &PlanOutcome, candidate: &Candidate) -> Value {
    let values = outcome.keys().iter().zip(&candidate.parameters.values);
    let values: IndexMap<_, _> =
        values.filter_map(|(key, value)| Some((key.key.as_str(), value.as_ref()?))).collect();
    json!({
        "values": values,
        "aggregators": candidate.parameters.aggregators,
        "cost": candidate.cost,
    })
}

/// One quantity of model and simulation.
fn comparison(comparison: &Comparison) -> Value {
    json!({
        "row": comparison.row,
        "metric": comparison.column,
        "model": comparison.model,
        "sim": comparison.simulated,
        "agrees": comparison.agrees(),
    })
}

/// Each limit with its values: loss and late messages as ratios, delays in seconds.
fn limits(
    outcome: &PlanOutcome,
    model: &Evaluation,
    simulated: Option<&SimulatedCandidate>,
) -> Vec<Value> {
    let entry = |(at, limit): (usize, &Limit)| {
        let state = match limit.state(&model.measured[at]) {
            LimitState::Met => Some(true),
            LimitState::Violated => Some(false),
            LimitState::Unknown => None,
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
            // JSON has no infinity, which stands for a delay longer than every measured one.
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

/// Whether a simulation meets one limit, with a margin for other seeds.
fn met(decision: &Decision, limit: usize) -> Option<bool> {
    match decision {
        Decision::Unknown(which) if which.contains(&limit) => None,
        Decision::Violated(which)
        | Decision::TooClose(which)
        | Decision::Occasional { limits: which, .. } => Some(!which.contains(&limit)),
        Decision::Invalid(_) => Some(false),
        Decision::Equal { decision, .. } => met(decision, limit),
        Decision::Met | Decision::Unknown(_) => Some(true),
    }
}
