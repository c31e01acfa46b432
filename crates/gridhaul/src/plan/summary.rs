//! The outcome of planning in sentences.

use gridhaul_scenario::scenario::{Flow, Load};
use gridhaul_scenario::units::{Duration, counted};

use super::charts::money;
use super::confidence::statement;
use super::evidence::Decision;
use super::limits::Limit;
use super::simulation_tables::names;
use super::verify::Basis;
use super::{Candidate, PlanOutcome, SimulatedCandidate, Winner};

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
            "The cheapest configuration that meets every limit is {description}, according to the \
             analytical model; nothing was simulated."
        ),
        Basis::Both => {
            let found = if outcome.not_simulated > 0 { " found" } else { "" };
            format!(
                "The cheapest configuration{found} that meets every limit is {description}. The \
                 simulation confirms this: {}, and model and simulation agree within 10 %.{}",
                shown(outcome),
                cheaper_neighbours(outcome, winner)
            ) + &validity(winner)
        }
        Basis::Simulation => searched(outcome, &description, winner),
    }
}

/// Sentences about the simulation of candidates that are cheaper than a confirmed choice.
fn cheaper_neighbours(outcome: &PlanOutcome, winner: &Winner) -> String {
    let simulations = outcome.simulations.iter().flatten();
    let is_cheaper = |checked: &&SimulatedCandidate| checked.candidate.cost < winner.candidate.cost;
    let mut text = match simulations.filter(is_cheaper).count() {
        0 => String::new(),
        1 => " One cheaper candidate was simulated as well, and fails.".to_owned(),
        more => format!(" {more} cheaper candidates were simulated as well, and all fail."),
    };
    if outcome.not_simulated > 0 {
        text += &format!(" {}", left_out(outcome.not_simulated));
    }
    text
}

/// Cheaper candidates that were not simulated, because the maximum number was reached.
fn left_out(count: usize) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!(
        "{} that the model accepts, or within one step of each key, {verb} not simulated: increase \
         --max-candidates.",
        counted(count, "cheaper candidate")
    )
}

/// Evidence of the runs of the choice about all runs.
fn shown(outcome: &PlanOutcome) -> String {
    let Some(checked) = outcome.verified() else { return String::new() };
    if checked.evidence.is_deterministic() {
        return "it meets every limit, and all runs are equal, because no random number influences \
                them".to_owned();
    }
    let statement = statement(checked.evidence.replications());
    format!("every limit is met in {statement} meet them")
}

/// Conditions that the runs have in common, and that the choice therefore depends on.
fn validity(winner: &Winner) -> String {
    let flows = &winner.scenario.flow;
    let is_group = |flow: &Flow| winner.scenario.connections(flow) > 1;
    let is_periodic = |flow: &Flow| matches!(&*flow.load.plain(), Load::Periodic(_));
    let mut text = String::new();
    if flows.values().any(|flow| is_group(flow) && is_periodic(flow)) {
        text += "\n\nPeriodic senders keep the phase at which they start. In some runs the phases \
                 of many senders cluster for the whole run, so that runs differ more than messages \
                 within a run.";
    }
    let spread = flows.iter().filter(|(_, flow)| is_group(flow));
    let spread = spread.filter(|(_, flow)| flow.start_spread != Some(Duration::ZERO));
    let keys: Vec<_> =
        spread.map(|(name, _)| format!("--set 'flow.{name}.start_spread=0 s'")).collect();
    if !keys.is_empty() {
        text += &format!(
            "\n\nThe senders start at different times here. After a power failure all start at \
             once, and far more messages may be late or lost: run the scenario of this choice with \
             {}.",
            keys.join(" ")
        );
    }
    text
}

/// A choice found by simulation, and why the model's choice was not confirmed.
fn searched(outcome: &PlanOutcome, description: &str, winner: &Winner) -> String {
    let mut text = format!(
        "The cheapest configuration found that meets every limit in simulation is {description}: \
         {}.",
        shown(outcome)
    );
    text += &validity(winner);
    if let Some(first) = outcome.simulations.iter().flatten().next() {
        text += &format!("\n\n{}", why_not_confirmed(outcome, first));
    }
    let all = outcome.simulations.as_ref().map_or(0, Vec::len);
    text += &format!("\n\nThe search simulated {}. ", counted(all, "candidate"));
    let excluded = match outcome.excluded {
        0 => String::new(),
        number => format!(
            ", except for {} whose larger buffers have no influence on a failure",
            counted(number, "candidate")
        ),
    };
    text += &match outcome.not_simulated {
        0 => format!(
            "These include every cheaper candidate that the model accepts, and every cheaper one \
             within one step of each key{excluded}."
        ),
        not_simulated => left_out(not_simulated),
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
            " Model and simulation differ by more than 10 % for it: {}. The choice is therefore \
             based on simulation only.",
            list.join("; ")
        );
    }
    for warning in &first.warnings {
        let candidate = first.candidate.parameters.describe(outcome.keys());
        text += &format!("\n\nThe analytical model warns about {candidate}: {warning}.");
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
    let described = |which: &[usize]| checked.evidence.describe(&outcome.limits, which, bound);
    match decision {
        Decision::Met => "meets every limit".to_owned(),
        Decision::Violated(which) => format!("the simulation violates {}", described(which)),
        Decision::TooClose(which) => {
            format!(
                "another seed may violate {}, which is too close to the \
                limit",
                described(which)
            )
        }
        Decision::Occasional { limits, runs } => format!(
            "{runs} of {} violate {}",
            counted(checked.evidence.replications(), "run"),
            names(outcome, limits)
        ),
        Decision::Unknown(which) => {
            format!("the simulation has no value of {}: increase `duration`", described(which))
        }
        Decision::Invalid(reason) => reason.clone(),
        Decision::Equal { to, .. } => format!(
            "{} with the values of {}, which fails",
            counted(checked.evidence.replications(), "run"),
            to.describe(outcome.keys())
        ),
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
    let mut text = format!(
        "None of the {} candidates meets every limit according to the model.",
        outcome.candidates
    );
    let mut alone = 0;
    for (limit, best) in outcome.limits.iter().zip(&why.best) {
        let Some((value, candidate)) = best else { continue };
        if limit.utilisation(*value) > 1.0 {
            alone += 1;
            text += &format!(
                "\n\nNo candidate meets the limit of {}: {} is allowed, and the best value of the \
                 model is {}, with {}.",
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
            "\n\nAccording to the model, {} = {} would be sufficient (the offered range ends at \
             {}): {} for {}.",
            sufficient.key,
            sufficient.needed,
            sufficient.offered,
            sufficient.choice,
            money(sufficient.cost, &outcome.plan),
        );
    }
    if why.sufficient.is_empty() {
        text += "\n\nNo value of a single key within a factor of a thousand of the offered range \
                 is sufficient: relax a limit, or change other keys of the scenario.";
    }
    text + &simulated_closest(outcome)
}

/// The simulation of the candidate closest to the limits, and of others if it disagrees with the
/// model.
fn simulated_closest(outcome: &PlanOutcome) -> String {
    let simulated = outcome.simulations.as_deref().unwrap_or_default();
    let Some(first) = simulated.first() else { return String::new() };
    let mut text = format!(
        "\n\nSimulation of {}: {}.",
        priced(outcome, &first.candidate),
        decided(outcome, first, &first.decision)
    );
    if simulated.len() == 1 && first.agrees() {
        return text + " Model and simulation agree within 10 % about it.";
    }
    text += &format!(
        " Model and simulation differ by more than 10 %; {} of {} simulated, and none meets every \
         limit.",
        simulated.len(),
        counted(outcome.candidates, "candidate")
    );
    if simulated.len() + outcome.excluded < outcome.candidates {
        text += " Increase --max-candidates to simulate more.";
    }
    text
}
