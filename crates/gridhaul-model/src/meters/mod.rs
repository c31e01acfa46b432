//! Scenarios of many meters: conversion to a network, fixed-point solution, and answer.

mod answer;
mod delay;
mod ignored_keys;
mod layout;
mod message_segments;
mod mixed_sizes;
mod parameters;
mod region;
mod running_timer;
mod small_buffer;
mod unsupported;
mod upstream_delay;
mod upstream_segments;
mod wide_window;

use std::sync::{Mutex, PoisonError};

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};

use crate::chain::Elimination;
use crate::fixed_point::{Solution, Workspace};
use crate::model_rules::ModelRules;
use crate::points::solve_points;
use layout::Layout;
pub(crate) use unsupported::unsupported_keys;

/// Checks that every key is supported.
///
/// # Errors
/// Each unsupported key, with the reason.
pub(crate) fn supports(scenario: &Scenario, rules: ModelRules) -> Result<(), Vec<Unsupported>> {
    let unsupported = unsupported_keys(scenario, rules);
    if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
}

/// A point whose fixed point is solved.
struct PointSolution {
    layout: Layout,
    solution: Solution,
}

/// Elimination plans of the chains for message delays, one for each flow. A thread takes those of
/// a finished point, since the chains of all points have the same transitions.
#[derive(Default)]
struct TimerPlans(Mutex<Vec<Vec<Elimination>>>);

impl TimerPlans {
    /// Calls `work` with plans that no other thread uses.
    fn with<T>(&self, work: impl FnOnce(&mut Vec<Elimination>) -> T) -> T {
        let idle = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut plans = idle().pop().unwrap_or_default();
        let result = work(&mut plans);
        idle().push(plans);
        result
    }
}

/// Answers all points, on so many threads (0: one for each core).
///
/// The fixed points are solved one after another: each starts from the previous one, since
/// neighbouring points are similar, and would differ in its last digits from another start.
/// Message delays do not depend on those of other points.
///
/// # Errors
/// A scenario that is not valid or not supported.
pub(crate) fn answer(
    scenario: &Scenario,
    rules: ModelRules,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Answer, RunError> {
    let mut work = Workspace::default();
    let solve = |point: &ScenarioPoint| {
        supports(&point.scenario, rules).map_err(RunError::Unsupported)?;
        let (layout, solution) = upstream_segments::solve(&point.scenario, rules, &mut work)
            .map_err(|diagnostic| RunError::Invalid(diagnostic.to_string()))?;
        Ok(PointSolution { layout, solution })
    };
    let plans = TimerPlans::default();
    let evaluate = |point: ScenarioPoint, solved: PointSolution| {
        plans.with(|timers| answer::of_point(point, &solved.layout, &solved.solution, timers))
    };
    solve_points(scenario, progress, threads, solve, evaluate)
}
