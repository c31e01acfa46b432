//! The points of a sweep, one after another.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Progress, RunError};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};

/// The answer with all points that `add` adds, until the observer interrupts it. Equal warnings
/// appear once.
///
/// # Errors
/// A sweep that contradicts the scenario, or the error of `add`.
pub(crate) fn answer_points(
    scenario: &Scenario,
    progress: &dyn Progress,
    mut add: impl FnMut(&mut Answer, &ScenarioPoint) -> Result<(), RunError>,
) -> Result<Answer, RunError> {
    let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
    // The equations are deterministic.
    let mut answer = Answer { replications: 1, ..Answer::without_points(scenario, "model") };
    let mut finished = vec![0; points.len()];
    for (index, point) in points.iter().enumerate() {
        if progress.is_interrupted() {
            break;
        }
        add(&mut answer, point)?;
        finished[index] = 1;
        progress.advance(index as u64 + 1, points.len() as u64);
    }
    answer.warnings.sort();
    answer.warnings.dedup();
    answer.with_finished(&finished, 1)
}
