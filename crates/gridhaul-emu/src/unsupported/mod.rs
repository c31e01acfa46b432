//! Keys of a scenario that the emulator does not support, with reasons.

mod aggregator;
mod idle;
mod proxy;
mod stack;

use gridhaul_core::tcp::{
    StackParams, discovers_path_mtu, ecn_through_proxies, oversized_segments,
};
use gridhaul_scenario::backend::{Unsupported, attacks};
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Flow, IpVersion, Load, PacketTooBig, ProxyMode, Scenario, Shaper,
    Transport,
};
use gridhaul_scenario::units::{BitRate, Bytes};

use crate::kernel_congestion_control;
use crate::network::{FLOWS_MAX, MEMBERS_MAX};
use crate::traffic::NUMBER_BYTES;
use aggregator::unsupported_aggregator_keys;
use idle::unsupported_idle_keys;
use proxy::unsupported_proxy_keys;
use stack::unsupported_stack_keys;

/// All keys of a scenario that this backend does not support.
pub(crate) fn unsupported_keys(scenario: &Scenario) -> Vec<Unsupported> {
    let mut unsupported = attacks(scenario);
    let mut reject = |key: String, reason: &str| {
        unsupported.push(Unsupported { key, reason: reason.to_owned() });
    };
    for (key, reason) in unsupported_proxy_keys(scenario) {
        reject(key, &reason);
    }
    for (key, reason) in unsupported_aggregator_keys(scenario) {
        reject(key, &reason);
    }
    let aggregators = scenario.node.values().filter(|node| node.aggregator.is_some()).count();
    // Two routers have the addresses of a flow.
    let router_pairs = scenario.hybrid_routers().count() / 2;
    if scenario.flow.len() + aggregators + router_pairs > FLOWS_MAX {
        reject(
            "flow".to_owned(),
            &format!(
                "the emulator supports at most {FLOWS_MAX} flows; use `count` for equal flows"
            ),
        );
    }
    for key in scenario.ecmp_keys() {
        reject(key, "the routes of the emulator have one link for each flow; use backend `sim`");
    }
    for key in scenario.record.keys_of_members() {
        let reason = "the emulator counts per flow, not per member; use backend `sim`";
        reject(key.to_owned(), reason);
    }
    for (name, flow) in &scenario.flow {
        for (key, reason) in unsupported_flow_keys(scenario, flow) {
            reject(format!("flow.{name}.{key}"), &reason);
        }
    }
    for (name, stack) in &scenario.stack {
        let used = scenario.flow.values().any(|flow| {
            flow.transport == Transport::Tcp
                && [&flow.stack, &flow.to_stack].into_iter().flatten().any(|used| used == name)
        }) || upstream_stacks(scenario).any(|used| used == name);
        for (key, reason) in used.then(|| unsupported_stack_keys(stack)).into_iter().flatten() {
            reject(format!("stack.{name}.{key}"), &reason);
        }
    }
    let has_proxy = scenario
        .node
        .values()
        .any(|node| node.proxy.as_ref().is_some_and(|proxy| proxy.mode != ProxyMode::None));
    if scenario.has_mtu() && has_proxy {
        reject(
            "link".to_owned(),
            "the devices of proxies have the size of the hosts' packets; remove `mtu` from the \
             links, or the proxies",
        );
    }
    for (key, reason) in path_mtu(scenario, has_proxy) {
        reject(key, reason);
    }
    let refused = oversized_segments(scenario).into_iter().chain(ecn_through_proxies(scenario));
    for Unsupported { key, reason } in refused {
        reject(key, &reason);
    }
    for (key, shaper) in scenario.shaper_keys() {
        for key in slow_rates(shaper).into_iter().map(|rate| format!("{key}.{rate}")) {
            reject(key, "the kernel counts in bytes per second; expected at least \"8 bit/s\"");
        }
    }
    // A key for both directions is reported once.
    unsupported.dedup();
    unsupported.extend(conflicting_stacks(scenario));
    unsupported
}

/// The keys that networks for other programs do not support either: these programs are not relay
/// daemons.
pub(crate) fn unsupported_standalone_keys(scenario: &Scenario) -> Vec<Unsupported> {
    let daemons = scenario.node.iter().flat_map(|(name, node)| {
        let is_proxy = node.proxy.as_ref().is_some_and(|proxy| proxy.mode != ProxyMode::None);
        let aggregator = node.aggregator.is_some().then_some("aggregator");
        let is_router = node.router.as_ref().is_some_and(|router| router.on);
        let others = [is_proxy.then_some("proxy"), is_router.then_some("router")];
        let kinds = aggregator.into_iter().chain(others.into_iter().flatten());
        kinds.map(move |kind| Unsupported {
            key: format!("node.{name}.{kind}"),
            reason: format!(
                "start relays yourself in a network without {}: remove this key",
                match kind {
                    "proxy" => "proxies",
                    "router" => "hybrid routers",
                    _ => "aggregators",
                }
            ),
        })
    });
    let mut unsupported: Vec<_> = daemons.collect();
    unsupported.extend(scenario.flow.iter().filter_map(|(name, flow)| {
        let key = format!("flow.{name}.{}", flow.connection_key()?);
        let reason = "other programs open and close the connections of this network: remove this \
                      key"
        .to_owned();
        Some(Unsupported { key, reason })
    }));
    if unsupported.is_empty() {
        unsupported = unsupported_keys(scenario);
    }
    unsupported
}

/// Linux, `net.ipv4.route.min_pmtu`.
const REPORTED_MTU_MIN: Bytes = Bytes::new(552);

/// Links with path-MTU discovery or MSS clamping that the emulator does not support.
fn path_mtu(scenario: &Scenario, has_proxy: bool) -> Vec<(String, &'static str)> {
    let mut unsupported = Vec::new();
    let directions = || {
        scenario.link.iter().flat_map(|(name, link)| {
            let sides = [("forward", link.forward()), ("reverse", link.reverse())];
            sides.into_iter().filter_map(move |(side, direction)| Some((name, side, direction?)))
        })
    };
    let with_reports: Vec<_> = directions()
        .filter(|(.., direction)| direction.packet_too_big == Some(PacketTooBig::Icmp))
        .filter_map(|(.., direction)| direction.mtu)
        .collect();
    for (name, flow) in scenario.flow.iter().filter(|(_, flow)| flow.ip == IpVersion::V6) {
        if flow.transport == Transport::Tcp
            && !with_reports.is_empty()
            && discovers_path_mtu(scenario, name)
        {
            unsupported.push((
                format!("flow.{name}.ip"),
                "nodes between the ends have no IPv6 address from which they could report an MTU; \
                 use backend `sim`, or write a smaller `mss` in the stack",
            ));
        }
    }
    for (name, side, direction) in directions() {
        let reports = direction.packet_too_big == Some(PacketTooBig::Icmp);
        if reports && direction.mtu.is_some_and(|mtu| mtu < REPORTED_MTU_MIN) {
            unsupported.push((
                format!("link.{name}.{side}.mtu"),
                "a kernel accepts no MTU below 552 B from a report; use backend `sim`",
            ));
        }
        let is_hole = direction.packet_too_big == Some(PacketTooBig::BlackHole);
        if is_hole && direction.mtu.is_some_and(|mtu| with_reports.contains(&mtu)) {
            unsupported.push((
                format!("link.{name}.{side}.packet_too_big"),
                "another link with this MTU has \"icmp\", and reports name no link: give both \
                 links different MTUs",
            ));
        }
        if direction.mss_clamp.is_some() && has_proxy {
            unsupported.push((
                format!("link.{name}.{side}.mss_clamp"),
                "proxies keep the segment size of the hosts; remove this key, or the proxies",
            ));
        }
    }
    unsupported
}

/// Names of the stacks of upstream connections.
fn upstream_stacks(scenario: &Scenario) -> impl Iterator<Item = &String> {
    let aggregators = scenario.node.values().filter_map(|node| node.aggregator.as_ref());
    aggregators.filter_map(|aggregator| aggregator.stack.as_ref())
}

/// Rates of a shaper below one byte per second, the resolution of `sch_htb`.
fn slow_rates(shaper: &Shaper) -> Vec<String> {
    let slow = |rate: BitRate| rate.as_bits_per_sec() < 8;
    let shares = shaper.share.iter().filter(|(_, share)| slow(share.guarantee));
    let shares = shares.map(|(flow, _)| format!("share.{flow}.guarantee"));
    slow(shaper.rate).then(|| "rate".to_owned()).into_iter().chain(shares).collect()
}

fn unsupported_flow_keys(scenario: &Scenario, flow: &Flow) -> Vec<(&'static str, String)> {
    let mut unsupported = Vec::new();
    let members = scenario.connections(flow);
    if members > u64::from(MEMBERS_MAX) {
        unsupported.push((
            "count",
            format!("{members} equal flows; the emulator supports at most {MEMBERS_MAX}"),
        ));
    }
    unsupported.extend(unsupported_connection_keys(scenario, flow));
    let size = match &*flow.load.plain() {
        Load::Periodic(load) => Some(load.size),
        Load::Poisson(load) => Some(load.size),
        Load::OnOff(load) => Some(load.size),
        Load::Burst(load) => Some(load.size),
        _ => None,
    };
    let is_numbered = matches!(flow.transport, Transport::Datagram | Transport::Echo);
    if is_numbered && size.is_some_and(|size| size.get() < NUMBER_BYTES) {
        unsupported.push((
            "load",
            format!("a datagram contains its number; expected at least {NUMBER_BYTES} B"),
        ));
    }
    unsupported
}

/// Limits on connections that the kernel has for a whole host, and nodes that serve one connection
/// for each member.
fn unsupported_connection_keys(scenario: &Scenario, flow: &Flow) -> Vec<(&'static str, String)> {
    let Some(key) = flow.connection_key() else { return Vec::new() };
    let mut unsupported = Vec::new();
    if flow.tls.as_ref().is_some_and(|tls| tls.early_data) {
        let reason = "early data over real sockets were not compared with those of a TLS library; \
                      use backend `sim`";
        unsupported.push(("tls.early_data", reason.to_owned()));
    }
    if flow.fast_open {
        let reason = "the emulator writes after the handshake; use backend `sim`";
        unsupported.push(("fast_open", reason.to_owned()));
    }
    if flow.accept.is_some() {
        let reason = "the emulator accepts each connection at once; use backend `sim`";
        unsupported.push(("accept", reason.to_owned()));
    }
    unsupported.extend(unsupported_idle_keys(scenario, flow));
    if flow.local_ports.is_some() {
        let reason = "the kernel has 28,232 local ports; remove this key, or use backend `sim`";
        unsupported.push(("local_ports", reason.to_owned()));
    }
    let has_relay = scenario.node.values().any(|node| {
        let is_proxy = node.proxy.as_ref().is_some_and(|proxy| proxy.mode != ProxyMode::None);
        let is_router = node.router.as_ref().is_some_and(|router| router.on);
        node.aggregator.is_some() || is_proxy || is_router
    });
    if has_relay {
        let reason = "the emulator opens managed connections only in networks without aggregators, \
                      proxies and hybrid routers; remove this key, or these nodes";
        unsupported.push((key, reason.to_owned()));
    }
    unsupported
}

/// Finds stacks with different values of a setting that a kernel has once for all connections.
fn conflicting_stacks(scenario: &Scenario) -> Option<Unsupported> {
    let tcp = scenario.flow.iter().filter(|(_, flow)| flow.transport == Transport::Tcp);
    let stacks = tcp.flat_map(|(name, flow)| {
        let receiver = flow.to_stack.as_ref().or(flow.stack.as_ref());
        [(name, flow.ip, flow.stack.as_ref()), (name, flow.ip, receiver)]
    });
    let upstream = scenario.flow.first().map(|(name, flow)| (name, flow.ip));
    let upstream = upstream
        .into_iter()
        .flat_map(|(name, ip)| upstream_stacks(scenario).map(move |stack| (name, ip, Some(stack))));
    let stacks = stacks.chain(upstream);
    let (mut first, mut vegas) = (None, None);
    for (name, ip, stack) in stacks {
        let params = StackParams::named(scenario, stack, ip);
        let same = match params.congestion_control {
            CongestionControlAlgorithm::Vegas => {
                *vegas.get_or_insert(kernel_congestion_control::vegas(&params))
                    == kernel_congestion_control::vegas(&params)
            }
            _ => true,
        };
        if !same {
            return Some(Unsupported {
                key: format!("flow.{name}.stack"),
                reason: "the kernel has one set of parameters of vegas: make them the same in all \
                         stacks"
                    .to_owned(),
            });
        }
        let StackParams { sack, timestamps, ecn, mtu_probing, .. } = params;
        let StackParams { restart_after_idle, dupthresh, .. } = params;
        let shared = (sack, timestamps, ecn, mtu_probing, restart_after_idle, dupthresh);
        if *first.get_or_insert(shared) != shared {
            return Some(Unsupported {
                key: format!("flow.{name}.stack"),
                reason: "`sack`, `timestamps`, `ecn`, `mtu_probing`, `restart_after_idle` and \
                         `dupthresh` are settings of a whole kernel: make them the same in all \
                         stacks"
                    .to_owned(),
            });
        }
    }
    None
}
