//! The backend: which equations answer which scenario.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::Scenario;

use crate::chain::meter::Rules;
use crate::{meters, steady};

/// Equations: bulk flows and transfers by the formulas of the steady state, meters by the fixed
/// point of senders and queues.
#[derive(Debug, Clone, Copy, Default)]
pub struct Model;

/// As [`Model`], with the paper's rules for meters and collectors instead of those that a TCP
/// follows: for the paper's figures.
#[derive(Debug, Clone, Copy, Default)]
pub struct PaperModel;

impl Backend for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        supports(scenario)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        run(scenario, Rules::Refined, progress)
    }
}

impl Backend for PaperModel {
    fn name(&self) -> &'static str {
        "model"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        supports(scenario)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        run(scenario, Rules::Paper, progress)
    }
}

fn supports(scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
    if steady::is_bulk(scenario) { steady::supports(scenario) } else { meters::supports(scenario) }
}

fn run(scenario: &Scenario, rules: Rules, progress: &dyn Progress) -> Result<Answer, RunError> {
    if steady::is_bulk(scenario) {
        steady::answer(scenario, progress)
    } else {
        meters::answer(scenario, rules, progress)
    }
}
