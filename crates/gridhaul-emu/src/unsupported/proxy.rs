//! Proxies that the emulator cannot run as relay daemons.

use gridhaul_scenario::relay::BridgeRule;
use gridhaul_scenario::scenario::{Proxy, ProxyMode, Scenario, Stack};

/// Keys that cannot be honoured, with reasons.
pub(super) fn unsupported_proxy_keys(scenario: &Scenario) -> Vec<(String, String)> {
    let mut unsupported = Vec::new();
    for (name, node) in &scenario.node {
        let Some(proxy) = node.proxy.as_ref().filter(|proxy| proxy.mode != ProxyMode::None) else {
            continue;
        };
        let mut reject =
            |key: String, reason: &str| unsupported.push((key, format!("{reason}; {REMEDY}")));
        if node.count > 1 {
            let reason = "each emulated proxy is one daemon between two links";
            reject(format!("node.{name}.count"), reason);
        }
        let links = scenario.link.values().filter(|link| link.from == *name || link.to == *name);
        if links.count() != 2 {
            let reason = "an emulated proxy is a bridge between exactly two links";
            reject(format!("node.{name}.proxy"), reason);
        }
        if let Some(flow) = flow_of_its_own(scenario, name) {
            let reason =
                format!("flow `{flow}` ends at this node, and a bridge has no applications");
            reject(format!("node.{name}.proxy"), &reason);
        }
        if let Some(flow) = aggregated_flow(scenario, proxy) {
            let reason = format!("flow `{flow}` passes an aggregator as well");
            reject(format!("node.{name}.proxy"), &reason);
        }
        if proxy.mode != ProxyMode::Ack && !BridgeRule::BUFFERS.contains(&proxy.buffer.get()) {
            let reason = "the daemon has buffers from 2560 B to 1 GiB";
            reject(format!("node.{name}.proxy.buffer"), reason);
        }
        if proxy.mode == ProxyMode::Ack && proxy.max_ack_delay > BridgeRule::ACK_DELAY_MAX {
            let reason = "the daemon delays acknowledgements for at most 200 ms";
            reject(format!("node.{name}.proxy.max_ack_delay"), reason);
        }
        if let Some(stack) = proxy.stack.as_ref().and_then(|name| scenario.stack.get(name)) {
            for key in other_keys(stack) {
                let reason = "the daemon has a TCP of its own, of which `congestion_control` and \
                              `delayed_ack` can be chosen";
                let stack = proxy.stack.as_deref().unwrap_or_default();
                reject(format!("stack.{stack}.{key}"), reason);
            }
        }
    }
    unsupported
}

const REMEDY: &str = "use backend `sim`";

/// A flow that begins or ends at this node.
fn flow_of_its_own<'s>(scenario: &'s Scenario, name: &str) -> Option<&'s str> {
    let own = scenario.flow.iter().find(|(_, flow)| flow.from == name || flow.to == name);
    own.map(|(flow, _)| flow.as_str())
}

/// A flow that the proxy serves and that passes an aggregator: its connections have other
/// addresses behind it.
fn aggregated_flow<'s>(scenario: &'s Scenario, proxy: &Proxy) -> Option<&'s str> {
    let mut flows = scenario.flow.iter().filter(|(name, flow)| proxy.serves(name, flow));
    let aggregated =
        flows.find(|(name, _)| scenario.stages(name).is_ok_and(|stages| stages.len() > 1));
    aggregated.map(|(name, _)| name.as_str())
}

/// Keys that are set besides those that the daemon knows.
fn other_keys(stack: &Stack) -> Vec<String> {
    let known = Stack {
        profile: stack.profile,
        congestion_control: stack.congestion_control,
        delayed_ack: stack.delayed_ack,
        ..Stack::default()
    };
    if *stack == known {
        return Vec::new();
    }
    let keys = |stack: &Stack| serde_json::to_value(stack).unwrap_or_default();
    let (set, known) = (keys(stack), keys(&known));
    let entries = set.as_object().into_iter().flatten();
    entries
        .filter(|(key, value)| known.get(key.as_str()) != Some(value))
        .map(|(key, _)| key.clone())
        .collect()
}
