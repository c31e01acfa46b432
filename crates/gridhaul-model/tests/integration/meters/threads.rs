//! A sweep on several threads.

use std::sync::atomic::{AtomicU64, Ordering};

use gridhaul_model::{Model, ModelRules};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, NoProgress, Progress};
use gridhaul_scenario::scenario::Scenario;

use super::case::{Case, FIGURE_10};

/// Enough points for several threads.
const POINTS: usize = 70;

fn sweep() -> Scenario {
    let text = Case { aggregators: 20, ..FIGURE_10 }.scenario().to_toml()
        + &format!(
            "\n[[sweep]]\nvary.\"node.aggregator.count\" = {{ linear = [1, {POINTS}], points = \
             {POINTS} }}\n"
        );
    Scenario::from_toml(&text, "sweep.toml").unwrap()
}

fn answer(rules: ModelRules, threads: usize, progress: &dyn Progress) -> Answer {
    Model { rules, threads }.run(&sweep(), progress).unwrap()
}

/// Interrupts after so many points.
struct Interruption {
    after: u64,
    done: AtomicU64,
}

impl Progress for Interruption {
    fn advance(&self, done: u64, _total: u64) {
        self.done.fetch_max(done, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.after
    }
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    for rules in [ModelRules::Refined, ModelRules::Paper] {
        let text = |threads| serde_json::to_string(&answer(rules, threads, &NoProgress)).unwrap();
        let serial = text(1);
        for threads in [0, 2, 3, 8] {
            assert!(text(threads) == serial, "{rules:?}, {threads} threads");
        }
    }
}

#[test]
fn an_interrupted_sweep_has_the_first_points_on_any_number_of_threads() {
    let complete = answer(ModelRules::Refined, 1, &NoProgress);
    for threads in [1, 2, 4] {
        let interruption = Interruption { after: 5, done: AtomicU64::new(0) };
        let partial = answer(ModelRules::Refined, threads, &interruption);
        let points = partial.points.len();
        assert!(points >= 5 && (threads > 1 || points == 5), "{points}");
        assert!(partial.points == complete.points[..points]);
        assert_eq!(partial.incomplete, points < POINTS);
    }
}
