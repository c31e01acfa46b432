//! What planning found out, in sentences.

use super::charts::money;
use super::evidence::Decision;
use super::tables::{capital, counted};
use super::verify::Basis;
use super::{Candidate, PlanOutcome, SimulatedCandidate};

/// The finding in a few sentences.
pub(crate) fn summary(outcome: &PlanOutcome) -> String {
    let Some(winner) = &outcome.winner else {
        return match outcome.infeasible {
            Some(_) => infeasible(outcome),
            None => unconfirmed(outcome),
        };
    };
    let words = priced(outcome, &winner.candidate);
    match outcome.basis {
        Basis::Equations => format!(
            "The cheapest choice that keeps every limit is {words}, by equations alone: nothing was \
             simulated."
        ),
        Basis::Both => {
            let runs = outcome.verified().map_or(0, |checked| checked.evidence.replications());
            format!(
                "The cheapest choice that keeps every limit is {words}. Its simulation confirms it: \
                 {} keep every limit, and equations and simulation agree within 10 %.",
                counted(runs, "replication", "replications")
            )
        }
        Basis::Simulation => searched(outcome, &words),
    }
}

/// A choice that a search by simulation has found, and why there was one.
fn searched(outcome: &PlanOutcome, words: &str) -> String {
    let runs = outcome.verified().map_or(0, |checked| checked.evidence.replications());
    let mut text = format!(
        "The cheapest choice that was found to keep every limit by simulation is {words} ({}).",
        counted(runs, "replication", "replications")
    );
    if let Some(first) = outcome.simulations.iter().flatten().next() {
        text += &format!("\n\n{}", why(outcome, first));
    }
    let all = outcome.simulations.as_ref().map_or(0, Vec::len);
    text += &format!("\n\nThe search simulated {}. ", counted(all, "choice", "choices"));
    text += &match outcome.not_simulated {
        0 => "Among them is every cheaper choice that the equations let pass, and every cheaper one within \
              one step of each key."
            .to_owned(),
        not_simulated => format!(
            "{} that the equations let pass, or within one step of each key, were not simulated: allow more \
             with --max-candidates.",
            counted(not_simulated, "cheaper choice", "cheaper choices")
        ),
    };
    text
}

/// What the simulation of the equations' choice has shown.
fn why(outcome: &PlanOutcome, first: &SimulatedCandidate) -> String {
    let words = priced(outcome, &first.candidate);
    let subject = match outcome.rejected {
        true => format!(
            "By equations no candidate keeps every limit. The one that comes nearest, {words},"
        ),
        false => format!("The choice of the equations, {words},"),
    };
    let mut text = match &first.decision {
        Decision::Keeps => format!("{subject} keeps every limit in its simulation."),
        other => format!("{subject} is not confirmed: {}.", decided(outcome, first, other)),
    };
    let differ: Vec<_> =
        first.comparisons.iter().filter(|comparison| !comparison.agrees()).collect();
    if !differ.is_empty() {
        let list: Vec<_> = differ.iter().map(|comparison| comparison.words()).collect();
        text += &format!(
            " About it, equations and simulation differ by more than 10 %: {}. The choice therefore rests on \
             simulation alone.",
            list.join("; ")
        );
    }
    for warning in &first.warnings {
        text += &format!("\n\nThe equations warn about this choice: {warning}.");
    }
    text
}

/// What a simulation says about the limits, in words.
pub(crate) fn decided(
    outcome: &PlanOutcome,
    checked: &SimulatedCandidate,
    decision: &Decision,
) -> String {
    let of = |which: &[usize]| {
        let limits = which.iter().map(|at| {
            let limit = &outcome.limits[*at];
            match checked.evidence.measured(limit).value {
                Some(value) => {
                    format!("{} {} ({})", limit.what(), limit.shown(value), limit.bound_words())
                }
                None => format!("{} ({})", limit.what(), limit.bound_words()),
            }
        });
        limits.collect::<Vec<_>>().join(", ")
    };
    match decision {
        Decision::Keeps => "keeps every limit".to_owned(),
        Decision::Breaks(which) => format!("the simulation breaks {}", of(which)),
        Decision::TooClose(which) => {
            format!("another seed may break {}, which is too close to the limit", of(which))
        }
        Decision::Unknown(which) => {
            format!("the simulation has no value of {}: simulate longer (`duration`)", of(which))
        }
        Decision::Invalid(reason) => reason.clone(),
    }
}

/// No simulated candidate keeps every limit, although the equations let some pass.
fn unconfirmed(outcome: &PlanOutcome) -> String {
    let all = outcome.simulations.as_ref().map_or(0, Vec::len);
    let mut text = format!(
        "No choice is confirmed: none of {} keeps every limit in its simulation.",
        counted(all, "choice that was simulated", "choices that were simulated")
    );
    if let Some(first) = outcome.simulations.iter().flatten().next() {
        text += &format!("\n\n{}", why(outcome, first));
    }
    text + "\n\nAllow more simulations with --max-candidates, offer more in [plan.choose], or relax a limit."
}

fn priced(outcome: &PlanOutcome, candidate: &Candidate) -> String {
    let cost = money(candidate.cost, &outcome.plan);
    format!("{} for {cost}", candidate.parameters.words(outcome.keys()))
}

/// Which limit is in the way, how near the best comes, and what would have to change.
fn infeasible(outcome: &PlanOutcome) -> String {
    let Some(why) = &outcome.infeasible else { return String::new() };
    let mut text = format!("None of the {} candidates keeps every limit.", outcome.candidates);
    let mut alone = 0;
    for (limit, best) in outcome.limits.iter().zip(&why.best) {
        let Some((value, candidate)) = best else { continue };
        if limit.used(*value) > 1.0 {
            alone += 1;
            text += &format!(
                "\n\nThe {} cannot be kept by any choice: {} is allowed, and the best is {}, with {}.",
                limit.what(),
                limit.bound_words(),
                limit.shown(*value),
                candidate.parameters.words(outcome.keys()),
            );
        }
    }
    if let (0, Some(nearest)) = (alone, &why.nearest) {
        text += &format!(
            "\n\nEach limit can be kept alone, but not all of them together. {} comes nearest.",
            capital(&nearest.parameters.words(outcome.keys())),
        );
    }
    for beyond in &why.sufficient {
        text += &format!(
            "\n\nBy equations, {} = {} would be enough, where {} is the last that is offered: {} \
             for {}.",
            beyond.key,
            beyond.needed,
            beyond.offered,
            beyond.choice,
            money(beyond.cost, &outcome.plan),
        );
    }
    if why.sufficient.is_empty() {
        text += "\n\nNo single number, a thousand times beyond what is offered, would be enough: \
                 relax a limit, or change what is not chosen here.";
    }
    if let Some(first) = outcome.simulations.iter().flatten().next() {
        text += &format!(
            "\n\nThe simulation of {} says: {}.",
            priced(outcome, &first.candidate),
            decided(outcome, first, &first.decision)
        );
    }
    text
}
