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
use crate::points::answer_points;
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
    let mut work = SweepMemory::default();
    answer_points(scenario, progress, |answer, point| {
        supports(&point.scenario, rules).map_err(RunError::Unsupported)?;
        let layout = layout(&point.scenario, rules)
            .map_err(|diagnostic| RunError::Invalid(diagnostic.to_string()))?;
        answer::add(answer, point, &layout, &mut work);
        Ok(())
    })
}
