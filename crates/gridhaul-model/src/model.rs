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

/// The equations on several threads.
#[derive(Debug, Clone, Copy)]
pub struct ParallelModel {
    /// The rules of [`Model`], [`PaperModel`] or [`PrintedModel`].
    pub rules: ModelRules,
    /// Threads for the points of a sweep; 0: one for each core. The answer does not depend on the
    /// number.
    pub threads: usize,
}

impl Backend for ParallelModel {
    fn name(&self) -> &'static str {
        "model"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        supports(scenario, self.rules)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        run(scenario, *self, progress)
    }
}

impl Backend for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        supports(scenario, ModelRules::Refined)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        run(scenario, one_thread(ModelRules::Refined), progress)
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
        run(scenario, one_thread(ModelRules::Paper), progress)
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
        run(scenario, one_thread(ModelRules::Printed), progress)
    }
}

fn supports(scenario: &Scenario, rules: ModelRules) -> Result<(), Vec<Unsupported>> {
    let unsupported = [external_loads(scenario), attacks(scenario), stacks(scenario)].concat();
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

/// Keys of stacks that change what the formulas describe: they have no queue that marks, and
/// segments of one size.
fn stacks(scenario: &Scenario) -> Vec<Unsupported> {
    let mut unsupported = Vec::new();
    for (name, stack) in &scenario.stack {
        let keys = [
            ("ecn", stack.ecn, "exclude congestion marks"),
            ("mtu_probing", stack.mtu_probing, "have segments of one size"),
        ];
        for (key, _, content) in keys.into_iter().filter(|(_, is_on, _)| *is_on == Some(true)) {
            unsupported.push(Unsupported {
                key: format!("stack.{name}.{key}"),
                reason: format!("the equations {content}; remove this key, or use backend `sim`"),
            });
        }
    }
    unsupported
}

const fn one_thread(rules: ModelRules) -> ParallelModel {
    ParallelModel { rules, threads: 1 }
}

fn run(
    scenario: &Scenario,
    model: ParallelModel,
    progress: &dyn Progress,
) -> Result<Answer, RunError> {
    let ParallelModel { rules, threads } = model;
    if scenario.flow.values().any(Flow::manages_connections) {
        connections::answer(scenario, rules, progress)
    } else if steady::is_bulk(scenario) {
        steady::answer(scenario, rules, progress)
    } else {
        meters::answer(scenario, rules, threads, progress)
    }
}
