//! The points of a sweep: one after another, or in two steps of which the second runs on several
//! threads.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use gridhaul_scenario::answer::{Answer, Point, Warning};
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
    let points = points(scenario)?;
    let mut answer = empty(scenario);
    let mut finished = vec![0; points.len()];
    for (index, point) in points.iter().enumerate() {
        if progress.is_interrupted() {
            break;
        }
        add(&mut answer, point)?;
        finished[index] = 1;
        progress.advance(index as u64 + 1, points.len() as u64);
    }
    complete(answer, &finished)
}

/// The answer about a point.
pub(crate) struct PointAnswer {
    pub(crate) point: Point,
    pub(crate) warnings: Vec<Warning>,
}

/// A point on its way from the first step to the second.
struct SolvedPoint<'a, S> {
    slot: &'a OnceLock<PointAnswer>,
    point: ScenarioPoint,
    solution: S,
}

/// Number of points for which a thread is started: fewer take less time than its start.
const POINTS_PER_THREAD: usize = 16;

/// As [`answer_points`], in two steps: `solve` takes the points in their order, because each
/// solution may start from the previous one, and `evaluate` takes a solution to the answer, on one
/// of so many threads (0: one for each core). The answer does not depend on their number.
///
/// # Errors
/// A sweep that contradicts the scenario, the error of `solve`, or threads that cannot be started.
pub(crate) fn solve_points<S: Send>(
    scenario: &Scenario,
    progress: &dyn Progress,
    threads: usize,
    mut solve: impl FnMut(&ScenarioPoint) -> Result<S, RunError> + Send,
    evaluate: impl Fn(ScenarioPoint, S) -> PointAnswer + Sync,
) -> Result<Answer, RunError> {
    let points = points(scenario)?;
    let answers: Vec<OnceLock<PointAnswer>> = points.iter().map(|_| OnceLock::new()).collect();
    let (count, done) = (points.len(), AtomicU64::new(0));
    let evaluate = |solved: SolvedPoint<'_, S>| {
        solved.slot.get_or_init(|| evaluate(solved.point, solved.solution));
        progress.advance(done.fetch_add(1, Ordering::Relaxed) + 1, count as u64);
    };
    let evaluate = &evaluate;
    let solve_all = |hand_over: &mut dyn FnMut(_)| -> Result<(), RunError> {
        for (point, slot) in points.into_iter().zip(&answers) {
            if progress.is_interrupted() {
                break;
            }
            let solution = solve(&point)?;
            hand_over(SolvedPoint { slot, point, solution });
        }
        Ok(())
    };
    match available_threads(threads).min(count / POINTS_PER_THREAD) {
        // Browsers have no threads, and one thread does not need another.
        0 | 1 => solve_all(&mut |solved| evaluate(solved))?,
        threads => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.map_err(|error| RunError::Machine(format!("threads: {error}")))?;
            pool.scope(|scope| solve_all(&mut |solved| scope.spawn(move |_| evaluate(solved))))?;
        }
    }
    let mut answer = empty(scenario);
    let finished: Vec<_> = answers.iter().map(|slot| usize::from(slot.get().is_some())).collect();
    for PointAnswer { point, warnings } in answers.into_iter().filter_map(OnceLock::into_inner) {
        answer.points.push(point);
        answer.warnings.extend(warnings);
    }
    complete(answer, &finished)
}

fn points(scenario: &Scenario) -> Result<Vec<ScenarioPoint>, RunError> {
    scenario.points().map_err(|error| RunError::Invalid(error.to_string()))
}

fn empty(scenario: &Scenario) -> Answer {
    // The equations are deterministic.
    Answer { replications: 1, ..Answer::without_points(scenario, "model") }
}

fn complete(mut answer: Answer, finished: &[usize]) -> Result<Answer, RunError> {
    answer.warnings.sort();
    answer.warnings.dedup();
    answer.with_finished(finished, 1)
}

/// The number of threads that the machine or the caller permits.
fn available_threads(wanted: usize) -> usize {
    match wanted {
        0 => thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    }
}
