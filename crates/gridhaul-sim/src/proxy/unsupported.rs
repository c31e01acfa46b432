//! Proxies that this backend cannot simulate.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Flow, ProxyPosition, Scenario};

/// The proxies that this backend cannot simulate, with reasons.
pub(crate) fn unsupported(scenario: &Scenario) -> Vec<Unsupported> {
    let mut unsupported = Vec::new();
    for (name, flow) in &scenario.flow {
        // `ProxyWiring::new` reports an invalid path when the run begins.
        let points = scenario.proxy_positions(name).unwrap_or_default();
        let Some(first) = points.first() else { continue };
        if scenario.stages(name).is_ok_and(|stages| stages.len() > 1)
            && let Some((node, _)) = scenario.node.get_index(first.node)
        {
            unsupported.push(Unsupported {
                key: format!("node.{node}.proxy"),
                reason: format!(
                    "flow `{name}` also passes an aggregator; remove the flow from the proxy's \
                     `flows`, or remove one of the two"
                ),
            });
        }
        unsupported.extend(timestamps(scenario, flow, &points));
    }
    unsupported
}

/// Proxies that acknowledge data use no timestamps. With a handshake they remove the option from
/// it; without a handshake the hosts cannot be prevented from using timestamps.
fn timestamps(scenario: &Scenario, flow: &Flow, points: &[ProxyPosition]) -> Option<Unsupported> {
    let ends = |point: &ProxyPosition| {
        let proxy = scenario.node[point.node].proxy.as_ref();
        proxy.is_some_and(|proxy| proxy.mode.acknowledges_data())
    };
    let name = flow.stack.as_ref()?;
    let stack = StackParams::named(scenario, Some(name), flow.ip);
    (!stack.handshake && stack.timestamps && points.iter().any(ends)).then(|| Unsupported {
        key: format!("stack.{name}.timestamps"),
        reason:
            "without a handshake a proxy on the path cannot disable timestamps; set timestamps = \
             false or handshake = true"
                .to_owned(),
    })
}
