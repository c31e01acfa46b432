//! Configurations of the bridges of a run.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::relay::{BridgeConfig, BridgeRule, Management, RelayConfig};
use gridhaul_scenario::scenario::{FlowEnd, Proxy, Scenario};
use gridhaul_scenario::units::{Bytes, Duration};

use super::status;
use crate::network::{Address, NetworkPlan, ProxyLayout, ServedFlow};
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
        FlowEnd::From => device(served.arrives_at),
        FlowEnd::To => device(1 - served.arrives_at),
    };
    let stack = proxy.stack.as_ref().or(flow.stack.as_ref());
    let stack = StackParams::named(scenario, stack, flow.ip);
    let rule = BridgeRule {
        mode: proxy.mode,
        opened_from: Some(device(served.arrives_at)),
        clients: vec![block(FlowEnd::From)],
        servers: vec![block(FlowEnd::To)],
        ports: Vec::new(),
        buffer: proxy.buffer,
        toward: Some(toward),
        max_ack_delay: proxy.max_ack_delay,
        // The simulator has no such comparison.
        compare_goodput: false,
        congestion_control: Some(stack.congestion_control),
        delayed_ack: !stack.delayed_ack.is_zero(),
    };
    rule.without_ineffective_keys()
}

/// Sufficient: the members of a flow are fewer.
const CONNECTIONS: u32 = 100_000;

/// The buffers of a scenario have a limit for each connection, not for all.
const MEMORY: Bytes = Bytes::new(1 << 34);

/// No connection of a run is idle for so long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_a_valid_configuration_with_all_keys_of_a_proxy() {
        for mode in ["reflect", "spoof", "snoop", "split", "ack"] {
            let text = format!(
                "title = 'test'\nduration = '1 s'\n[node]\nnear = {{}}\nfar = {{}}\n\
                 [node.proxy.proxy]\nmode = '{mode}'\nbuffer = '1 MB'\nmax_ack_delay = '5 ms'\n\
                 [link.one]\nfrom = 'near'\nto = 'proxy'\nboth = {{ rate = '1 Mbit/s' }}\n\
                 [link.two]\nfrom = 'proxy'\nto = 'far'\nboth = {{ rate = '1 Mbit/s' }}\n\
                 [stack.linux]\nprofile = 'linux'\n\
                 [flow.up]\nfrom = 'near'\nto = 'far'\nstack = 'linux'\nload = 'bulk'\n"
            );
            let scenario = Scenario::from_toml(&text, "test.toml").unwrap();
            let plan = NetworkPlan::new(&scenario).unwrap();
            assert_eq!(plan.proxy_mtu(), 1_512, "the packets of the hosts, with timestamps");
            let text = bridge(&scenario, &plan, &plan.proxies[0]);
            let config = RelayConfig::from_toml(&text, "relay.toml");
            let rule = config.unwrap().bridge.unwrap().rule["up"].clone();
            assert_eq!(rule.mode.to_string(), mode);
            assert_eq!(rule.buffer == Bytes::new(1_000_000), mode != "ack", "{mode}");
        }
    }
}
