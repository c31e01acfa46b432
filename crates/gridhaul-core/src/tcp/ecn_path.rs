//! Explicit congestion notification and the proxies of a path.

use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{ProxyMode, Scenario, Transport};

/// The flows whose stack has ECN and that pass a proxy that acknowledges or retransmits data: a
/// proxy of gridhaul answers for no marks and removes ECN from the handshake (`gridhaul-relay`), or
/// would retransmit segments as if they were new.
#[must_use]
pub fn ecn_through_proxies(scenario: &Scenario) -> Vec<Unsupported> {
    let has_ecn = |name: Option<&String>| {
        name.and_then(|name| scenario.stack.get(name)).is_some_and(|stack| stack.ecn == Some(true))
    };
    let mut found = Vec::new();
    for (name, flow) in &scenario.flow {
        let stacks = [flow.stack.as_ref(), flow.to_stack.as_ref()];
        if flow.transport != Transport::Tcp || !stacks.into_iter().any(has_ecn) {
            continue;
        }
        // A flow without a path is invalid, which is reported elsewhere.
        for point in scenario.proxy_positions(name).unwrap_or_default() {
            let Some((node, keys)) = scenario.node.get_index(point.node) else { continue };
            let Some(mode) = keys.proxy.as_ref().map(|proxy| proxy.mode) else { continue };
            if mode.acknowledges_data() || mode == ProxyMode::Snoop {
                found.push(Unsupported {
                    key: format!("flow.{name}.stack"),
                    reason: format!(
                        "the stack has `ecn`, and proxy `{node}` of mode `{mode}` does not answer \
                         for congestion marks: remove `ecn` from the stack, or use mode `ack` or \
                         `none`"
                    ),
                });
            }
        }
    }
    found.dedup();
    found
}
