//! What proxies cannot do in this backend.

use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{ProxyMode, Scenario};

/// Which proxies this backend cannot run, and why.
pub(crate) fn refusals(scenario: &Scenario) -> Vec<Unsupported> {
    let mut refused = Vec::new();
    for (name, node) in &scenario.node {
        if node.proxy.as_ref().is_some_and(|proxy| proxy.mode != ProxyMode::None) {
            let key = format!("node.{name}.proxy.mode");
            refused.push(Unsupported { key, reason: "this proxy is not built yet".to_owned() });
        }
    }
    for name in scenario.flow.keys() {
        // A way that cannot be is found again, and told, when the run begins.
        let stages = scenario.stages(name).map_or(0, |stages| stages.len());
        let points = scenario.waypoints(name).unwrap_or_default();
        if let (2.., Some(point)) = (stages, points.first())
            && let Some((node, _)) = scenario.node.get_index(point.node)
        {
            refused.push(Unsupported {
                key: format!("node.{node}.proxy"),
                reason: format!(
                    "flow `{name}` also passes a collector; leave it out of the proxy's `flows`, or \
                     remove one of the two"
                ),
            });
        }
    }
    refused
}
