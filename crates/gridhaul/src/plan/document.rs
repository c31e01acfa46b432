//! `plan.json`: what planning found out, for programs.

use gridhaul_scenario::scenario::Scenario;
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::judge::Judgement;
use super::limits::{Limit, Measured, State};
use super::trial::Candidate;
use super::{Outcome, finding};

/// The outcome as JSON.
pub(crate) fn document(scenario: &Scenario, outcome: &Outcome) -> Value {
    let choice = |candidate: &Candidate| choice(outcome, candidate);
    let winner = outcome.winner.as_ref().map(|winner| {
        let simulated = outcome.verified().map(|checked| checked.measured.as_slice());
        json!({
            "choice": choice(&winner.candidate),
            "limits": limits(outcome, &winner.model, simulated),
        })
    });
    let tried = outcome.tried.as_ref().map(|tried| {
        let entry = |checked: &super::Checked| {
            json!({
                "choice": choice(&checked.candidate),
                "survives": checked.survives,
                "limits": limits(outcome, &checked.model, Some(&checked.measured)),
            })
        };
        tried.iter().map(entry).collect::<Vec<_>>()
    });
    let others = outcome.others.iter().map(|(other, judgement)| {
        json!({
            "what": other.what,
            "choice": choice(&other.candidate),
            "keeps": other.keeps,
            "limits": limits(outcome, judgement, None),
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
        "finding": finding(outcome),
        "candidates": outcome.candidates,
        "judged": outcome.judged,
        "winner": winner,
        "simulated": tried,
        "others": others.collect::<Vec<_>>(),
        "impossible": impossible,
        "without_answer": outcome.refused,
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

/// Each limit with its values: loss and late messages as shares, delays in seconds.
fn limits(outcome: &Outcome, model: &Judgement, simulated: Option<&[Measured]>) -> Vec<Value> {
    let entry = |(at, limit): (usize, &Limit)| {
        let state = |measured: &Measured| -> Option<bool> {
            match limit.state(measured, 1.0) {
                State::Kept => Some(true),
                State::Broken => Some(false),
                State::Unknown => None,
            }
        };
        let mut entry = json!({
            "flow": limit.flow,
            "limit": limit.kind,
            "bound": limit.bound,
            "model": model.measured[at].value,
            "model_met": state(&model.measured[at]),
        });
        if let Some(measured) = simulated.map(|simulated| &simulated[at]) {
            entry["sim"] = measured.value.into();
            entry["sim_ci95"] = measured.ci95.into();
            entry["sim_met"] = state(measured).into();
        }
        entry
    };
    outcome.limits.iter().enumerate().map(entry).collect()
}
