//! A bridge in the place of a simulated proxy.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::Scenario;
use gridhaul_scenario::relay::{BridgeConfig, BridgeRule};
use gridhaul_scenario::scenario::{FlowEnd, Proxy, ProxyMode};
use gridhaul_scenario::units::Bytes;

use super::ConfigArgs;

/// Interfaces of a bridge if the command line names none. The first leads to the `from` ends of
/// flows.
const INTERFACES: [&str; 2] = ["eth0", "eth1"];

/// Connections for whose buffers the memory suffices, if the buffers are large.
const CONNECTIONS: u64 = 16;

/// The configuration of a bridge with this proxy.
pub(super) fn bridge(scenario: &Scenario, args: &ConfigArgs, proxy: &Proxy) -> String {
    let named = args.interfaces.clone().unwrap_or_else(|| INTERFACES.map(str::to_owned).to_vec());
    let mut text = format!(
        "name = {:?}\nmanagement.address = \"127.0.0.1:9180\"\n\n[bridge]\n\
         # The first interface leads to the `from` ends of the scenario's flows.\n\
         interfaces = {named:?}\n",
        args.node
    );
    let buffer = proxy.buffer.max(Bytes::new(*BridgeRule::BUFFERS.start()));
    let memory = Bytes::new(buffer.get().saturating_mul(2 * CONNECTIONS));
    if memory > BridgeConfig::MEMORY_DEFAULT {
        text += &format!("# For {CONNECTIONS} connections whose buffers are full.\n");
        text += &format!("memory = \"{memory}\"\n");
    }
    text += "\n[bridge.rule.flows]\n";
    if let Some(flows) = &proxy.flows {
        text += &format!(
            "# The simulated proxy serves the flows {} only: add `clients`, `servers`, `ports`.\n",
            flows.join(", ")
        );
    }
    text += &format!("mode = \"{}\"\n", proxy.mode);
    let has_buffer = proxy.mode.acknowledges_data() || proxy.mode == ProxyMode::Snoop;
    if has_buffer {
        text += &format!("buffer = \"{buffer}\"\n");
    }
    if matches!(proxy.mode, ProxyMode::Snoop | ProxyMode::Ack) {
        let end = if proxy.served() == FlowEnd::From { 0 } else { 1 };
        text += &format!("toward = {:?}\n", named.get(end).map_or("", String::as_str));
    }
    if proxy.mode == ProxyMode::Ack {
        text += &format!("max_ack_delay = \"{}\"\n", proxy.max_ack_delay);
    }
    if proxy.mode.terminates_connections() {
        text += &stack_of(scenario, args, proxy);
    }
    text
}

/// Lines for the TCP of the proxy: that of the first flow that it serves, unless it has its own.
fn stack_of(scenario: &Scenario, args: &ConfigArgs, proxy: &Proxy) -> String {
    let node = scenario.node.get_index_of(&args.node);
    let is_served = |name: &str| {
        let positions = scenario.proxy_positions(name).unwrap_or_default();
        positions.iter().any(|position| Some(position.node) == node)
    };
    let mut flows = scenario.flow.iter();
    let flow = flows.find(|(name, _)| is_served(name)).map(|(_, flow)| flow);
    let ip = flow.map(|flow| flow.ip).unwrap_or_default();
    let name = proxy.stack.as_ref().or_else(|| flow.and_then(|flow| flow.stack.as_ref()));
    let stack = StackParams::named(scenario, name, ip);
    format!(
        "congestion_control = \"{}\"\ndelayed_ack = {}\n",
        stack.congestion_control.name(),
        !stack.delayed_ack.is_zero()
    )
}
