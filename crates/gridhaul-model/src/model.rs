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
pub struct Model {
    /// The assumptions about TCP senders.
    pub rules: ModelRules,
    /// Threads for the points of a sweep; 0: one for each core. The answer does not depend on the
    /// number.
    pub threads: usize,
}

impl Model {
    /// The behaviour of TCP implementations.
    pub const REFINED: Self = Self::new(ModelRules::Refined);
    /// The assumptions of the papers, to reproduce their figures: `sa-tcp` for meters and
    /// aggregators, `plc` (equations 1 to 3) for bulk flows of Reno.
    pub const PAPER: Self = Self::new(ModelRules::Paper);
    /// As [`Self::PAPER`], with the queues of paper `sa-tcp` as printed, to measure the effect of
    /// their errors.
    pub const PRINTED: Self = Self::new(ModelRules::Printed);

    const fn new(rules: ModelRules) -> Self {
        Self { rules, threads: 0 }
    }
}

impl Backend for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        let unsupported = [external_loads(scenario), attacks(scenario), stacks(scenario)].concat();
        if !unsupported.is_empty() {
            return Err(unsupported);
        }
        if scenario.flow.values().any(Flow::manages_connections) {
            let unsupported = connections::unsupported(scenario, self.rules);
            if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
        } else if steady::is_bulk(scenario) {
            steady::supports(scenario, self.rules)
        } else {
            meters::supports(scenario, self.rules)
        }
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        if scenario.flow.values().any(Flow::manages_connections) {
            connections::answer(scenario, self.rules, progress)
        } else if steady::is_bulk(scenario) {
            steady::answer(scenario, self.rules, progress)
        } else {
            meters::answer(scenario, self.rules, self.threads, progress)
        }
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
