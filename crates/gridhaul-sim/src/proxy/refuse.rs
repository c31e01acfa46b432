//! What proxies cannot do in this backend.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Flow, ProxyPosition, Scenario};

/// Which proxies this backend cannot run, and why.
pub(crate) fn refusals(scenario: &Scenario) -> Vec<Unsupported> {
    let mut refused = Vec::new();
    for (name, flow) in &scenario.flow {
        // A way that cannot be is found again, and told, when the run begins.
        let points = scenario.proxy_positions(name).unwrap_or_default();
        let Some(first) = points.first() else { continue };
        if scenario.stages(name).is_ok_and(|stages| stages.len() > 1)
            && let Some((node, _)) = scenario.node.get_index(first.node)
        {
            refused.push(Unsupported {
                key: format!("node.{node}.proxy"),
                reason: format!(
                    "flow `{name}` also passes a collector; leave it out of the proxy's `flows`, or \
                     remove one of the two"
                ),
            });
        }
        refused.extend(timestamps(scenario, flow, &points));
    }
    refused
}

/// Proxies that end connections use no timestamps. Where hosts agree on them in a handshake, they
/// see to it that they do not; without handshake nobody can.
fn timestamps(scenario: &Scenario, flow: &Flow, points: &[ProxyPosition]) -> Option<Unsupported> {
    let ends = |point: &ProxyPosition| {
        let proxy = scenario.node[point.node].proxy.as_ref();
        proxy.is_some_and(|proxy| proxy.mode.terminates_connections())
    };
    let name = flow.stack.as_ref()?;
    let stack = StackParams::named(scenario, Some(name), flow.ip);
    (!stack.handshake && stack.timestamps && points.iter().any(ends)).then(|| Unsupported {
        key: format!("stack.{name}.timestamps"),
        reason: "a connection that exists from the start cannot be told that a proxy on its way \
                 uses no timestamps; add timestamps = false, or handshake = true"
            .to_owned(),
    })
}
