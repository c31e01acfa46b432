//! Configurations of the bridges of a run.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::relay::{BridgeConfig, BridgeRule, Management, RelayConfig};
use gridhaul_scenario::scenario::{self, Proxy, ProxyMode, Scenario};
use gridhaul_scenario::units::{Bytes, Duration};

use super::status;
use crate::network::{Address, FlowEnd, NetworkPlan, ProxyLayout, ServedFlow};
use crate::relay::configuration::relay_config;

/// The bridge of a proxy, with a rule for each flow that it serves.
pub(super) fn bridge(scenario: &Scenario, plan: &NetworkPlan, layout: &ProxyLayout) -> String {
    let proxy = scenario.node[layout.node].proxy.as_ref();
    let rules = layout.served.iter().filter_map(|served| {
        let name = scenario.flow.get_index(served.flow)?.0.clone();
        Some((name, rule(scenario, plan, (layout, proxy?), *served)))
    });
    let config = RelayConfig {
        bridge: Some(BridgeConfig {
            interfaces: layout.ports.map(|port| plan.ports[port].device.clone()).to_vec(),
            // The emulator takes the place of the kernel's bridge while a daemon is down.
            fail_open: false,
            connections: CONNECTIONS,
            memory: MEMORY,
            idle_timeout: IDLE_TIMEOUT,
            rule: rules.collect(),
        }),
        management: Some(Management { address: status::ADDRESS.to_owned(), tls: None }),
        ..relay_config(&plan.nodes[layout.node])
    };
    config.to_toml()
}

fn rule(
    scenario: &Scenario,
    plan: &NetworkPlan,
    (layout, proxy): (&ProxyLayout, &Proxy),
    served: ServedFlow,
) -> BridgeRule {
    let flow = &scenario.flow[served.flow];
    let family = plan.flows[served.flow].family;
    let block = |side| Address::block(served.flow as u16, side, family).to_string();
    let device = |side: usize| plan.ports[layout.ports[side]].device.clone();
    let toward = match proxy.served() {
        scenario::FlowEnd::From => device(served.arrives_at),
        scenario::FlowEnd::To => device(1 - served.arrives_at),
    };
    let serves_a_hop = matches!(proxy.mode, ProxyMode::Snoop | ProxyMode::Ack);
    let has_stack = matches!(proxy.mode, ProxyMode::Split | ProxyMode::Reflect);
    let stack = proxy.stack.as_ref().or(flow.stack.as_ref());
    let stack = StackParams::named(scenario, stack, flow.ip);
    BridgeRule {
        mode: proxy.mode,
        opened_from: Some(device(served.arrives_at)),
        clients: vec![block(FlowEnd::From)],
        servers: vec![block(FlowEnd::To)],
        ports: Vec::new(),
        buffer: proxy.buffer,
        toward: serves_a_hop.then_some(toward),
        max_ack_delay: proxy.max_ack_delay,
        congestion_control: has_stack.then_some(stack.congestion_control),
        delayed_ack: has_stack && !stack.delayed_ack.is_zero(),
    }
}

/// Sufficient: the members of a flow are fewer.
const CONNECTIONS: u32 = 100_000;

/// The buffers of a scenario have a limit for each connection, not for all.
const MEMORY: Bytes = Bytes::new(1 << 34);

/// No connection of a run is idle for so long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(86_400);
