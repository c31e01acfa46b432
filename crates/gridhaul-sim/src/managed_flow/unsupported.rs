//! Managed connections over nodes that end or change connections.

use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::Scenario;

/// Keys of flows whose connections open and close on a path with an aggregator or proxy.
pub(crate) fn unsupported_connections(scenario: &Scenario) -> Vec<Unsupported> {
    let mut unsupported = Vec::new();
    for (name, flow) in &scenario.flow {
        let Some(key) = flow.connection_key() else { continue };
        let stages = scenario.stages(name).map_or(1, |stages| stages.len());
        let proxies = scenario.proxy_positions(name).map_or(0, |positions| positions.len());
        if stages > 1 || proxies > 0 {
            unsupported.push(Unsupported {
                key: format!("flow.{name}.{key}"),
                reason: "aggregators and proxies of the simulator serve one connection for each \
                         flow; let the flow end at this node, and add another flow from there"
                    .to_owned(),
            });
        }
    }
    unsupported
}
