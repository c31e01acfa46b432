//! The backend: selects the equations for a scenario.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{
    Backend, Progress, RunError, Unsupported, attacks, external_loads,
};
use gridhaul_scenario::scenario::{Flow, Scenario};

use crate::model_rules::ModelRules;
use crate::{connections, meters, steady};

/// Analytical model: bulk flows and transfers by steady-state formulas, meters by the fixed point
/// of senders and queues.
#[derive(Debug, Clone, Copy, Default)]
pub struct Model;

/// [`Model`] with the assumptions of the papers ([`ModelRules::Paper`]), to reproduce their
/// figures: `sa-tcp` for meters and aggregators, `plc` (equations 1 to 3) for bulk flows of Reno.
#[derive(Debug, Clone, Copy, Default)]
pub struct PaperModel;

/// [`PaperModel`] with the queues of paper `sa-tcp` as printed ([`ModelRules::Printed`]), to
/// measure the effect of its errors; for bulk flows the same as [`PaperModel`].
#[derive(Debug, Clone, Copy, Default)]
pub struct PrintedModel;

impl Backend for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        supports(scenario, ModelRules::Refined)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        run(scenario, ModelRules::Refined, progress)
    }
}

impl Backend for PaperModel {
    fn name(&self) -> &'static str {
        "model"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        supports(scenario, ModelRules::Paper)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        run(scenario, ModelRules::Paper, progress)
    }
}

impl Backend for PrintedModel {
    fn name(&self) -> &'static str {
        "model"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        supports(scenario, ModelRules::Printed)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        run(scenario, ModelRules::Printed, progress)
    }
}

fn supports(scenario: &Scenario, rules: ModelRules) -> Result<(), Vec<Unsupported>> {
    let unsupported =
        [external_loads(scenario), attacks(scenario), congestion_marks(scenario)].concat();
    if !unsupported.is_empty() {
        return Err(unsupported);
    }
    if scenario.flow.values().any(Flow::manages_connections) {
        let unsupported = connections::unsupported(scenario, rules);
        if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
    } else if steady::is_bulk(scenario) {
        steady::supports(scenario, rules)
    } else {
        meters::supports(scenario, rules)
    }
}

/// The stacks with ECN: the formulas have no queue that marks.
fn congestion_marks(scenario: &Scenario) -> Vec<Unsupported> {
    let stacks = scenario.stack.iter().filter(|(_, stack)| stack.ecn == Some(true));
    let unsupported = |(name, _): (&String, _)| Unsupported {
        key: format!("stack.{name}.ecn"),
        reason: "the equations exclude congestion marks; remove this key, or use backend `sim`"
            .to_owned(),
    };
    stacks.map(unsupported).collect()
}

fn run(
    scenario: &Scenario,
    rules: ModelRules,
    progress: &dyn Progress,
) -> Result<Answer, RunError> {
    if scenario.flow.values().any(Flow::manages_connections) {
        connections::answer(scenario, rules, progress)
    } else if steady::is_bulk(scenario) {
        steady::answer(scenario, rules, progress)
    } else {
        meters::answer(scenario, rules, progress)
    }
}
