//! Keys that the equations do not support.

use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Direction, Flow, FullBufferPolicy, Hop, Load, Loss, Node,
    ProxyMode, Scenario, Stack, Transport,
};

use crate::model_rules::ModelRules;

/// Every unsupported key, with the reason.
pub(crate) fn unsupported_keys(scenario: &Scenario, rules: ModelRules) -> Vec<Unsupported> {
    let mut unsupported = UnsupportedKeys(Vec::new());
    if scenario.record.interval.is_some() {
        unsupported.key(
            "record.interval",
            "the equations describe a steady state and give no time series; use backend `sim`",
        );
    }
    if !scenario.record.pcap.is_empty() {
        unsupported.key("record.pcap", "the equations send no packets; use backend `sim`");
    }
    if !scenario.record.events.is_empty() {
        unsupported.key("record.events", "the equations have no connections; use backend `sim`");
    }
    for key in scenario.record.keys_of_members() {
        unsupported.key(key, "the equations have no members; use backend `sim`");
    }
    for (name, node) in &scenario.node {
        unsupported.node(&format!("node.{name}"), node, rules);
        unsupported.proxy(&format!("node.{name}"), node);
    }
    for key in scenario.hybrid_router_keys().chain(scenario.ecmp_keys()) {
        unsupported.key(&key, "not in the equations; use backend `sim`");
    }
    for (name, link) in &scenario.link {
        for (key, present) in
            [("medium", link.medium.is_some()), ("handover", link.handover.is_some())]
        {
            if present {
                let key = format!("link.{name}.{key}");
                unsupported.key(&key, "not in the equations; use backend `sim`");
            }
        }
        for (which, direction) in
            [("both", &link.both), ("forward", &link.forward), ("reverse", &link.reverse)]
        {
            if let Some(direction) = direction {
                unsupported.direction(&format!("link.{name}.{which}"), direction);
            }
        }
    }
    for (name, stack) in &scenario.stack {
        unsupported.stack(&format!("stack.{name}"), stack);
    }
    for (name, flow) in &scenario.flow {
        unsupported.flow(&format!("flow.{name}"), flow);
        unsupported.stages(scenario, name);
    }
    unsupported.0
}

struct UnsupportedKeys(Vec<Unsupported>);

impl UnsupportedKeys {
    fn key(&mut self, key: &str, reason: &str) {
        self.0.push(Unsupported { key: key.to_owned(), reason: reason.to_owned() });
    }

    fn node(&mut self, key: &str, node: &Node, rules: ModelRules) {
        let closes_windows = node
            .aggregator
            .as_ref()
            .is_some_and(|aggregate| aggregate.when_full == FullBufferPolicy::Backpressure);
        if closes_windows && rules.are_of_a_paper() {
            self.key(
                &format!("{key}.aggregator.when_full"),
                "the paper's equations assume a buffer that drops; use \"drop\", or backend \
                 `model`",
            );
        }
    }

    fn proxy(&mut self, key: &str, node: &Node) {
        if node.proxy.as_ref().is_some_and(|proxy| proxy.mode != ProxyMode::None) {
            self.key(
                &format!("{key}.proxy"),
                "the equations of meters support aggregators (`aggregator`) only, no proxies; \
                    use backend `sim`",
            );
        }
    }

    fn direction(&mut self, key: &str, direction: &Direction) {
        let random = "the equations assume independent loss; use `bernoulli`, or backend `sim`";
        match &direction.loss {
            Some(Loss::GilbertElliott(_)) => {
                self.key(&format!("{key}.loss.gilbert_elliott"), random);
            }
            Some(Loss::Packets(_)) => self.key(&format!("{key}.loss.packets"), random),
            Some(Loss::Bernoulli(_)) | None => {}
        }
        for (name, present) in
            [("shadowing", direction.shadowing.is_some()), ("noise", !direction.noise.is_empty())]
        {
            if present {
                self.key(&format!("{key}.{name}"), random);
            }
        }
        for (name, present) in [
            ("jitter", direction.jitter.is_some()),
            ("reorder", direction.reorder.is_some()),
            ("route_change", direction.route_change.is_some()),
            ("rate_change", !direction.rate_change.is_empty()),
            ("trace", direction.trace.is_some()),
            ("quality", direction.quality.is_some()),
            ("drx", direction.drx.is_some()),
            ("radio", direction.radio.is_some()),
            ("duplicate", direction.duplicate.is_some()),
            ("outage", !direction.outage.is_empty()),
            ("mtu", direction.mtu.is_some()),
            ("mss_clamp", direction.mss_clamp.is_some()),
            ("aqm", direction.aqm.is_some()),
            ("scheduler", direction.scheduler.is_some()),
            ("load_latency", direction.load_latency.is_some()),
            ("compression", direction.compression.is_some()),
        ] {
            if present {
                self.key(&format!("{key}.{name}"), "not in the equations; use backend `sim`");
            }
        }
        if direction.active_shaper().is_some() {
            self.key(&format!("{key}.shaper"), "not in the equations; use backend `sim`");
        }
    }

    fn stack(&mut self, key: &str, stack: &Stack) {
        if let Some(
            congestion_control @ (CongestionControlAlgorithm::Bbr
            | CongestionControlAlgorithm::Fixed
            | CongestionControlAlgorithm::Medx
            | CongestionControlAlgorithm::Veno
            | CongestionControlAlgorithm::Westwood),
        ) = stack.congestion_control
        {
            let reason = format!(
                "there are no equations for `{}`; use backend `sim`",
                congestion_control.name()
            );
            self.key(&format!("{key}.congestion_control"), &reason);
        }
        let fixed = "the equations use the default of the congestion control algorithm; remove \
            this key, or use backend `sim`";
        for (name, set) in [
            ("recovery", stack.recovery.is_some()),
            ("fixed_window", stack.fixed_window.is_some()),
            ("dupthresh", stack.dupthresh.is_some_and(|threshold| threshold != 3)),
            ("delayed_ack", stack.delayed_ack.is_some_and(|delay| !delay.is_zero())),
            ("nagle", stack.nagle == Some(true)),
            ("vegas_gamma", stack.vegas_gamma.is_some()),
        ] {
            if set {
                self.key(&format!("{key}.{name}"), fixed);
            }
        }
    }

    fn stages(&mut self, scenario: &Scenario, name: &str) {
        // A flow without a path is rejected when the scenario is read.
        let Ok(stages) = scenario.stages(name) else { return };
        if let Some(third) = stages.get(2) {
            self.key(
                &format!("node.{}.aggregator", third.from),
                "the equations support one aggregator per path; use backend `sim`",
            );
        }
        let Some(second) = stages.get(1) else { return };
        // Regions of one group of aggregators may share a link, since they are equal: each has the
        // same share of its load.
        let of_another_group = |hop: &Hop| {
            second.forward.contains(hop)
                || scenario.flow.keys().filter(|other| *other != name).any(|other| {
                    let Ok(others) = scenario.stages(other) else { return false };
                    let same = others.get(1).is_some_and(|stage| {
                        (&stage.from, &stage.to, &stage.stack)
                            == (&second.from, &second.to, &second.stack)
                    });
                    let first = usize::from(same);
                    others.iter().skip(first).any(|stage| stage.forward.contains(hop))
                })
        };
        for hop in &stages[0].forward {
            let (link, entry) = scenario.link.get_index(hop.link).expect("a hop is a link");
            let shared = u64::from(scenario.link_members(entry)) < second.connections;
            if shared && of_another_group(hop) || second.forward.contains(hop) {
                self.key(
                    &format!("link.{link}"),
                    "the equations assume that a link before aggregators carries the flows of one \
                     group of aggregators only; use backend `sim`",
                );
            }
        }
    }

    fn synchronised(&mut self, key: &str, load: &str, set: bool) {
        if set {
            self.key(
                &format!("{key}.load.{load}.synchronised"),
                "the equations assume independent senders; use backend `sim`",
            );
        }
    }

    fn flow(&mut self, key: &str, flow: &Flow) {
        if flow.transport != Transport::Tcp {
            self.key(
                &format!("{key}.transport"),
                "the equations describe TCP only; use \
                backend `sim`",
            );
        }
        if flow.to_stack.is_some() {
            self.key(
                &format!("{key}.to_stack"),
                "the equations assume one stack for both ends; \
                remove `to_stack`",
            );
        }
        match &*flow.load.plain() {
            Load::OnOff(load) if load.on.is_zero() || load.off.is_zero() => {
                self.key(&format!("{key}.load.on_off"), "expected `on` and `off` above zero");
            }
            Load::OnOff(load) => self.synchronised(key, "on_off", load.synchronised),
            Load::Poisson(load) => self.synchronised(key, "poisson", load.synchronised),
            Load::Periodic(load) => self.synchronised(key, "periodic", load.synchronised),
            _ => self.key(
                &format!("{key}.load"),
                "the equations of meters support `on_off`, `periodic` and `poisson`; use \
                    backend `sim`",
            ),
        }
    }
}
