//! The outcome of planning in sentences.

use gridhaul_scenario::units::counted;

use super::charts::money;
use super::evidence::Decision;
use super::limits::Limit;
use super::verify::Basis;
use super::{Candidate, PlanOutcome, SimulatedCandidate};

/// The outcome in a few sentences.
pub(crate) fn summary(outcome: &PlanOutcome) -> String {
    let Some(winner) = &outcome.winner else {
        return match outcome.infeasible {
            Some(_) => infeasible(outcome),
            None => unconfirmed(outcome),
        };
    };
    let description = priced(outcome, &winner.candidate);
    match outcome.basis {
        Basis::Model => format!(
            "The cheapest configuration that meets every limit is {description}, according to the analytical model; \
             nothing was simulated."
        ),
        Basis::Both => {
            let runs = outcome.verified().map_or(0, |checked| checked.evidence.replications());
            format!(
                "The cheapest configuration that meets every limit is {description}. The simulation confirms this: \
                 {} meet every limit, and model and simulation agree within 10 %.",
                counted(runs, "replication")
            )
        }
        Basis::Simulation => searched(outcome, &description),
    }
}

/// A choice found by simulation, and why the model's choice was not confirmed.
fn searched(outcome: &PlanOutcome, description: &str) -> String {
    let runs = outcome.verified().map_or(0, |checked| checked.evidence.replications());
    let mut text = format!(
        "The cheapest configuration found that meets every limit in simulation is {description} ({}).",
        counted(runs, "replication")
    );
    if let Some(first) = outcome.simulations.iter().flatten().next() {
        text += &format!("\n\n{}", why_not_confirmed(outcome, first));
    }
    let all = outcome.simulations.as_ref().map_or(0, Vec::len);
    text += &format!("\n\nThe search simulated {}. ", counted(all, "candidate"));
    text += &match outcome.not_simulated {
        0 => "These include every cheaper candidate that the model accepts, and every cheaper one within one \
              step of each key."
            .to_owned(),
        not_simulated => format!(
            "{} that the model accepts, or within one step of each key, were not simulated: increase \
             --max-candidates.",
            counted(not_simulated, "cheaper candidate")
        ),
    };
    text
}

/// Result of the simulation of the model's choice.
fn why_not_confirmed(outcome: &PlanOutcome, first: &SimulatedCandidate) -> String {
    let description = priced(outcome, &first.candidate);
    let subject = match outcome.rejected {
        true => format!(
            "According to the model no candidate meets every limit. The closest one, {description},"
        ),
        false => format!("The model's choice, {description},"),
    };
    let mut text = match &first.decision {
        Decision::Met => format!("{subject} meets every limit in simulation."),
        other => format!("{subject} is not confirmed: {}.", decided(outcome, first, other)),
    };
    let differ: Vec<_> =
        first.comparisons.iter().filter(|comparison| !comparison.agrees()).collect();
    if !differ.is_empty() {
        let list: Vec<_> = differ.iter().map(|comparison| comparison.describe()).collect();
        text += &format!(
            " Model and simulation differ by more than 10 % for it: {}. The choice is therefore based on \
             simulation only.",
            list.join("; ")
        );
    }
    for warning in &first.warnings {
        text += &format!("\n\nThe analytical model warns about this candidate: {warning}.");
    }
    text
}

/// The decision of a simulation in description.
pub(crate) fn decided(
    outcome: &PlanOutcome,
    checked: &SimulatedCandidate,
    decision: &Decision,
) -> String {
    let bound = |limit: &Limit| format!(" ({})", limit.bound_words());
    let of = |which: &[usize]| checked.evidence.describe(&outcome.limits, which, bound);
    match decision {
        Decision::Met => "meets every limit".to_owned(),
        Decision::Violated(which) => format!("the simulation violates {}", of(which)),
        Decision::TooClose(which) => {
            format!("another seed may violate {}, which is too close to the limit", of(which))
        }
        Decision::Unknown(which) => {
            format!("the simulation has no value of {}: increase `duration`", of(which))
        }
        Decision::Invalid(reason) => reason.clone(),
    }
}

/// No simulated candidate meets every limit, although the model accepts some.
fn unconfirmed(outcome: &PlanOutcome) -> String {
    let all = outcome.simulations.as_ref().map_or(0, Vec::len);
    let mut text = format!(
        "No candidate is confirmed: none of {} meets every limit in simulation.",
        counted(all, "simulated candidate")
    );
    if let Some(first) = outcome.simulations.iter().flatten().next() {
        text += &format!("\n\n{}", why_not_confirmed(outcome, first));
    }
    text + "\n\nIncrease --max-candidates, add values to [plan.choose], or relax a limit."
}

fn priced(outcome: &PlanOutcome, candidate: &Candidate) -> String {
    let cost = money(candidate.cost, &outcome.plan);
    format!("{} for {cost}", candidate.parameters.describe(outcome.keys()))
}

/// The limits that no candidate meets, the closest candidates, and sufficient values.
fn infeasible(outcome: &PlanOutcome) -> String {
    let Some(why) = &outcome.infeasible else { return String::new() };
    let mut text = format!("None of the {} candidates meets every limit.", outcome.candidates);
    let mut alone = 0;
    for (limit, best) in outcome.limits.iter().zip(&why.best) {
        let Some((value, candidate)) = best else { continue };
        if limit.utilisation(*value) > 1.0 {
            alone += 1;
            text += &format!(
                "\n\nNo candidate meets the limit of {}: {} is allowed, and the best value is {}, with {}.",
                limit.name(),
                limit.bound_words(),
                limit.shown(*value),
                candidate.parameters.describe(outcome.keys()),
            );
        }
    }
    if let (0, Some(nearest)) = (alone, &why.nearest) {
        text += &format!(
            "\n\nEach limit can be met, but not all of them together. The closest candidate is {}.",
            nearest.parameters.describe(outcome.keys()),
        );
    }
    for sufficient in &why.sufficient {
        text += &format!(
            "\n\nAccording to the model, {} = {} would be sufficient (the offered range ends at {}): {} \
             for {}.",
            sufficient.key,
            sufficient.needed,
            sufficient.offered,
            sufficient.choice,
            money(sufficient.cost, &outcome.plan),
        );
    }
    if why.sufficient.is_empty() {
        text += "\n\nNo value of a single key within a factor of a thousand of the offered range is sufficient: \
                 relax a limit, or change other keys of the scenario.";
    }
    if let Some(first) = outcome.simulations.iter().flatten().next() {
        text += &format!(
            "\n\nSimulation of {}: {}.",
            priced(outcome, &first.candidate),
            decided(outcome, first, &first.decision)
        );
    }
    text
}
