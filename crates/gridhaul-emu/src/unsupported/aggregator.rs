//! Aggregators that the emulator cannot run as relay daemons.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{CongestionControlAlgorithm, FullBufferPolicy, Scenario, Stage};

/// Largest number of relay daemons at one node: each is a process.
const DAEMONS_MAX: u64 = 500;

/// Keys that cannot be honoured, with reasons.
pub(super) fn unsupported_aggregator_keys(scenario: &Scenario) -> Vec<(String, String)> {
    let mut unsupported = Vec::new();
    let mut users: Vec<(&str, &str)> = Vec::new();
    let stages: Vec<(&String, Vec<Stage>)> = scenario
        .flow
        .keys()
        .map(|name| (name, scenario.stages(name).unwrap_or_default()))
        .collect();
    for (name, stages) in stages.iter().filter(|(_, stages)| stages.len() > 1) {
        let mut reject = |key: String, reason: &str| unsupported.push((key, reason.to_owned()));
        if stages.len() > 2 {
            let reason = "the emulator supports one aggregator per flow; use backend `sim`";
            reject(format!("node.{}.aggregator", stages[2].from), reason);
        }
        let node = &stages[1].from;
        let load = &scenario.flow[*name].load;
        if load.is_two_way() {
            let reason =
                "the simulated aggregator forwards data in one direction only; remove `aggregator`";
            reject(format!("flow.{name}.load.{}", load.key()), reason);
        }
        if let Some((_, other)) = users.iter().find(|(known, _)| known == node) {
            let reason = format!(
                "flow `{other}` passes the same aggregator; the emulator runs one relay daemon per \
                 flow, so use a node for each, or backend `sim`"
            );
            reject(format!("flow.{name}"), &reason);
        }
        users.push((node, name));
        if stages[1].connections > DAEMONS_MAX {
            let reason =
                format!("each aggregator is a process; the emulator runs {DAEMONS_MAX} at most");
            reject(format!("node.{node}.count"), &reason);
        }
        let params = StackParams::named(scenario, stages[1].stack.as_ref(), stages[1].ip);
        if params.nagle {
            let stack = stages[1].stack.as_deref().unwrap_or_default();
            let reason = "the relay daemon sets TCP_NODELAY: set nagle = false in a stack of the \
                          aggregator's own";
            let key = match stack {
                "" => format!("node.{node}.aggregator.stack"),
                stack => format!("stack.{stack}.nagle"),
            };
            reject(key, reason);
        }
        if params.congestion_control == CongestionControlAlgorithm::Medx {
            let reason =
                "the relay daemon does not set the parameters of gh_medx; use backend `sim`";
            reject(format!("node.{node}.aggregator.stack"), reason);
        }
    }
    for (name, node) in &scenario.node {
        let policy = node.aggregator.as_ref().map(|aggregator| aggregator.when_full);
        if policy == Some(FullBufferPolicy::Drop) {
            let reason = "the relay daemon drops nothing: set when_full = \"backpressure\", or use \
                          backend `sim`";
            unsupported.push((format!("node.{name}.aggregator.when_full"), reason.to_owned()));
        }
    }
    unsupported
}
