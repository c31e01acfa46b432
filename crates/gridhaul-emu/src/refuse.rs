//! Which keys a kernel cannot honour, and why.

use std::ops::RangeInclusive;

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{
    Flow, Load, Profile, ProxyMode, Scenario, Shaper, Stack, Transport, Variant,
};
use gridhaul_scenario::units::{BitRate, Duration};

use crate::control;
use crate::network::{FLOWS_MAX, MEMBERS_MAX};
use crate::traffic::{NUMBER_BYTES, congestion_name, kernel_mss};

/// Everything that this backend cannot carry.
pub(crate) fn refusals(scenario: &Scenario) -> Vec<Unsupported> {
    let mut refused = Vec::new();
    let mut refuse = |key: String, reason: &str| {
        refused.push(Unsupported { key, reason: reason.to_owned() });
    };
    for (name, node) in &scenario.node {
        if node.aggregate.is_some() {
            refuse(
                format!("node.{name}.aggregate"),
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

/// What a kernel takes for a segment, options included: `TCP_MIN_MSS` to `MAX_TCP_WINDOW`.
const KERNEL_MSS: RangeInclusive<u32> = 88..=32_767;

/// The smallest window that can be asked for (`tcp_set_window_clamp`): half of what a buffer holds at least.
const WINDOW_MIN: u32 = 1152;

/// What of a stack no kernel offers.
fn stack_refusals(stack: &Stack) -> Vec<(&'static str, String)> {
    let params = StackParams::resolve(stack);
    let linux = StackParams::resolve(&Stack { profile: Profile::Linux, ..Stack::default() });
    let mut refused = Vec::new();
    let mut refuse = |key, reason: &str| refused.push((key, reason.to_owned()));
    if stack.profile != Profile::Linux {
        // What else the profile brings would have to be refused key by key.
        refuse("profile", "a kernel is what it is: use the profile `linux`");
        return refused;
    }
    if congestion_name(&params).is_none() {
        refuse("variant", "no kernel has it; use `--on sim`");
    }
    if stack.recovery.is_some() {
        refuse("recovery", "the kernel repairs losses in its own way; leave it out");
    }
    if ![40, 60].contains(&params.header) {
        refuse("header", "\"40 B\" is IPv4, \"60 B\" is IPv6; there is nothing else");
    }
    if params.initial_ssthresh != linux.initial_ssthresh {
        refuse(
            "initial_ssthresh",
            "slow start begins without a threshold in the kernel; leave it out",
        );
    }
    if params.prr != linux.prr {
        refuse("prr", "always on in the kernel, but for `bbr`; leave it out");
    }
    if params.hystart != linux.hystart {
        refuse("hystart", "a setting of the whole machine (module tcp_cubic); leave it out");
    }
    if params.fixed_window != linux.fixed_window && stack.fixed_window.is_some() {
        refuse("fixed_window", "no kernel has the variant `fixed`");
    }
    if !params.handshake {
        refuse("handshake", "kernels open connections; leave it out");
    }
    let options = kernel_mss(&params) - params.mss;
    if !KERNEL_MSS.contains(&kernel_mss(&params)) {
        let (least, largest) = (KERNEL_MSS.start() - options, KERNEL_MSS.end() - options);
        refuse(
            "mss",
            &format!("with these options a kernel takes \"{least} B\" to \"{largest} B\""),
        );
    }
    if params.receive_window < WINDOW_MIN {
        refuse("receive_window", "no kernel offers less than 1152 B (SOCK_MIN_RCVBUF / 2)");
    } else if params.receive_window < params.mss.saturating_mul(2) {
        refuse("receive_window", "no kernel offers less than two segments");
    }
    if params.delayed_ack > Duration::from_millis(200) {
        refuse("delayed_ack", "the kernel's acknowledgements wait 200 ms at most (TCP_DELACK_MAX)");
    }
    if params.ack_every != linux.ack_every {
        refuse("ack_every", "the kernel acknowledges every second full segment");
    }
    if params.quick_ack != linux.quick_ack && params.delayed_ack > Duration::ZERO {
        refuse(
            "quick_ack",
            "the kernel's first acknowledgements are quick, as many as it likes; leave it out",
        );
    }
    if !params.limited_transmit {
        refuse("limited_transmit", "always on in the kernel; leave it out");
    }
    if params.rto_initial != linux.rto_initial {
        refuse("rto_initial", "1 s in the kernel; leave it out");
    }
    if params.rto_max < Duration::from_secs(1) {
        refuse("rto_max", "at least 1 s in the kernel");
    }
    if params.clock_granularity != linux.clock_granularity {
        refuse("clock_granularity", "the kernel measures in microseconds; leave it out");
    }
    if control::vegas(&params).is_none() {
        refuse("vegas_alpha", "the kernel counts in whole segments: α, β and γ are whole numbers");
    }
    refused
}

/// Settings that a kernel has once for all its connections.
fn mixed(scenario: &Scenario) -> Option<Unsupported> {
    let tcp = scenario.flow.iter().filter(|(_, flow)| flow.transport == Transport::Tcp);
    let stacks = tcp.flat_map(|(name, flow)| {
        let far = flow.to_stack.as_ref().or(flow.stack.as_ref());
        [(name, flow.stack.as_ref()), (name, far)]
    });
    let (mut first, mut vegas, mut medx) = (None, None, None);
    for (name, stack) in stacks {
        let params = StackParams::named(scenario, stack);
        let same = match params.variant {
            Variant::Vegas => {
                *vegas.get_or_insert(control::vegas(&params)) == control::vegas(&params)
            }
            Variant::Medx => *medx.get_or_insert(control::medx(&params)) == control::medx(&params),
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
