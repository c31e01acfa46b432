//! Keys that have no effect in a steady state.

use gridhaul_scenario::scenario::Scenario;

const REASON: &str = "this key has no effect on the answer: the equations describe a steady state \
                      in which all connections are open from the start of the run; use backend \
                      `sim` to include the start of the connections";

/// Warnings about keys that set the start of connections: key and text.
pub(super) fn ignored_keys(scenario: &Scenario) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    for (name, flow) in &scenario.flow {
        if !flow.start.is_zero() {
            keys.push(format!("flow.{name}.start"));
        }
        if flow.start_spread.is_some() {
            keys.push(format!("flow.{name}.start_spread"));
        }
    }
    for (name, node) in &scenario.node {
        if node.aggregator.as_ref().is_some_and(|aggregator| aggregator.start_spread.is_some()) {
            keys.push(format!("node.{name}.aggregator.start_spread"));
        }
    }
    keys.into_iter().map(|key| (key, REASON.to_owned())).collect()
}
