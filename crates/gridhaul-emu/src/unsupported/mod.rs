//! Which keys a kernel cannot honour, and why.

mod stack;

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Flow, Load, ProxyMode, Scenario, Shaper, Transport,
};
use gridhaul_scenario::units::BitRate;

use crate::kernel_congestion_control;
use crate::network::{FLOWS_MAX, MEMBERS_MAX};
use crate::traffic::NUMBER_BYTES;
use stack::stack_refusals;

/// Everything that this backend cannot carry.
pub(crate) fn refusals(scenario: &Scenario) -> Vec<Unsupported> {
    let mut refused = Vec::new();
    let mut refuse = |key: String, reason: &str| {
        refused.push(Unsupported { key, reason: reason.to_owned() });
    };
    for (name, node) in &scenario.node {
        if node.aggregator.is_some() {
            refuse(
                format!("node.{name}.aggregator"),
                "kernels run no collectors yet; use `--on sim`",
            );
        }
        if node.proxy.as_ref().is_some_and(|proxy| proxy.mode != ProxyMode::None) {
            refuse(format!("node.{name}.proxy"), "kernels run no proxies yet; use `--on sim`");
        }
    }
    if scenario.flow.len() > FLOWS_MAX {
        refuse(
            "flow".to_owned(),
            &format!("at most {FLOWS_MAX} flows have addresses here; use `count` for equal ones"),
        );
    }
    for (name, flow) in &scenario.flow {
        for (key, reason) in flow_refusals(scenario, flow) {
            refuse(format!("flow.{name}.{key}"), &reason);
        }
    }
    for (name, stack) in &scenario.stack {
        let used = scenario.flow.values().any(|flow| {
            flow.transport == Transport::Tcp
                && [&flow.stack, &flow.to_stack].into_iter().flatten().any(|used| used == name)
        });
        for (key, reason) in used.then(|| stack_refusals(stack)).into_iter().flatten() {
            refuse(format!("stack.{name}.{key}"), &reason);
        }
    }
    for (key, shaper) in scenario.shaper_keys() {
        for key in slow_rates(shaper).into_iter().map(|rate| format!("{key}.{rate}")) {
            refuse(key, "the kernel counts in bytes a second: at least \"8 bit/s\"");
        }
    }
    // One for both directions is told once.
    refused.dedup();
    refused.extend(mixed(scenario));
    refused
}

/// Rates of a shaper that are nothing in whole bytes a second, as `sch_htb` keeps them.
fn slow_rates(shaper: &Shaper) -> Vec<String> {
    let slow = |rate: BitRate| rate.as_bits_per_sec() < 8;
    let shares = shaper.share.iter().filter(|(_, share)| slow(share.guarantee));
    let shares = shares.map(|(flow, _)| format!("share.{flow}.guarantee"));
    slow(shaper.rate).then(|| "rate".to_owned()).into_iter().chain(shares).collect()
}

fn flow_refusals(scenario: &Scenario, flow: &Flow) -> Vec<(&'static str, String)> {
    let mut refused = Vec::new();
    let members = scenario.connections(flow);
    if members > u64::from(MEMBERS_MAX) {
        refused.push((
            "count",
            format!("{members} equal flows; at most {MEMBERS_MAX} have addresses"),
        ));
    }
    let size = match &*flow.load.plain() {
        Load::Periodic(load) => Some(load.size),
        Load::Poisson(load) => Some(load.size),
        Load::OnOff(load) => Some(load.size),
        Load::Burst(load) => Some(load.size),
        _ => None,
    };
    if flow.transport != Transport::Tcp && size.is_some_and(|size| size.get() < NUMBER_BYTES) {
        refused.push(("load", format!("a datagram carries its number: at least {NUMBER_BYTES} B")));
    }
    refused
}

/// Settings that a kernel has once for all its connections.
fn mixed(scenario: &Scenario) -> Option<Unsupported> {
    let tcp = scenario.flow.iter().filter(|(_, flow)| flow.transport == Transport::Tcp);
    let stacks = tcp.flat_map(|(name, flow)| {
        let far = flow.to_stack.as_ref().or(flow.stack.as_ref());
        [(name, flow.ip, flow.stack.as_ref()), (name, flow.ip, far)]
    });
    let (mut first, mut vegas, mut medx) = (None, None, None);
    for (name, ip, stack) in stacks {
        let params = StackParams::named(scenario, stack, ip);
        let same = match params.congestion_control {
            CongestionControlAlgorithm::Vegas => {
                *vegas.get_or_insert(kernel_congestion_control::vegas(&params))
                    == kernel_congestion_control::vegas(&params)
            }
            CongestionControlAlgorithm::Medx => {
                *medx.get_or_insert(kernel_congestion_control::medx(&params))
                    == kernel_congestion_control::medx(&params)
            }
            _ => true,
        };
        if !same {
            return Some(Unsupported {
                key: format!("flow.{name}.stack"),
                reason: "the kernel has one set of parameters of vegas and one of medx: make them \
                         the same in all stacks"
                    .to_owned(),
            });
        }
        let shared = (params.sack, params.timestamps, params.restart_after_idle, params.dupthresh);
        if *first.get_or_insert(shared) != shared {
            return Some(Unsupported {
                key: format!("flow.{name}.stack"),
                reason:
                    "`sack`, `timestamps`, `restart_after_idle` and `dupthresh` are settings of a \
                         whole kernel: make them the same in all stacks"
                        .to_owned(),
            });
        }
    }
    None
}
