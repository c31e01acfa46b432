//! Scenarios of many meters: conversion to a network, fixed-point solution, and answer.

mod answer;
mod delay;
mod ignored_keys;
mod layout;
mod parameters;
mod small_buffer;
mod unsupported;
mod upstream_delay;

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::Scenario;

use crate::chain::Elimination;
use crate::fixed_point::Workspace;
use crate::model_rules::ModelRules;
use layout::layout;
pub(crate) use unsupported::unsupported_keys;

/// Checks that every key is supported.
///
/// # Errors
/// Each unsupported key, with the reason.
pub(crate) fn supports(scenario: &Scenario, rules: ModelRules) -> Result<(), Vec<Unsupported>> {
    let unsupported = unsupported_keys(scenario, rules);
    if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
}

/// State kept from one point of a sweep to the next: each solution starts from the previous one,
/// since neighbouring points are similar.
#[derive(Default)]
struct SweepMemory {
    network: Workspace,
    /// Elimination plans of the chains for message delays, one for each flow.
    timers: Vec<Elimination>,
}

/// Answers all points.
///
/// # Errors
/// A scenario that is not valid or not supported.
pub(crate) fn answer(
    scenario: &Scenario,
    rules: ModelRules,
    progress: &dyn Progress,
) -> Result<Answer, RunError> {
    let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
    let total = points.len() as u64;
    let mut answer = answer::empty(scenario);
    let mut work = SweepMemory::default();
    let mut finished = vec![0; points.len()];
    for (index, point) in points.iter().enumerate() {
        if progress.is_interrupted() {
            break;
        }
        supports(&point.scenario, rules).map_err(RunError::Unsupported)?;
        let layout = layout(&point.scenario, rules)
            .map_err(|diagnostic| RunError::Invalid(diagnostic.to_string()))?;
        answer::add(&mut answer, point, &layout, &mut work);
        finished[index] = 1;
        progress.advance(index as u64 + 1, total);
    }
    answer.warnings.sort();
    answer.warnings.dedup();
    answer.with_finished(&finished, 1)
}
