//! Scenarios of many meters: read, solved by the fixed point, and written as an answer.

mod answer;
mod build;
mod delay;
mod supports;

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::Scenario;

use crate::chain::Elimination;
use crate::fixed_point::Workspace;
use crate::rules::Rules;
use build::layout;

/// Whether every key can be honoured.
///
/// # Errors
/// Each key that cannot, and why.
pub(crate) fn supports(scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
    let refused = supports::refused(scenario);
    if refused.is_empty() { Ok(()) } else { Err(refused) }
}

/// What one point leaves behind for the next: points of a sweep lie side by side, so that each begins
/// where the one before it ended.
#[derive(Default)]
struct Memory {
    network: Workspace,
    /// Plans for the chains behind the delays of messages, one for each flow.
    timers: Vec<Elimination>,
}

/// Answers all points.
///
/// # Errors
/// A scenario that is not valid or not supported.
pub(crate) fn answer(
    scenario: &Scenario,
    rules: Rules,
    progress: &dyn Progress,
) -> Result<Answer, RunError> {
    let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
    let total = points.len() as u64;
    let mut answer = answer::empty(scenario);
    let mut work = Memory::default();
    let mut finished = vec![0; points.len()];
    for (index, point) in points.iter().enumerate() {
        if progress.is_interrupted() {
            break;
        }
        supports(&point.scenario).map_err(RunError::Unsupported)?;
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
