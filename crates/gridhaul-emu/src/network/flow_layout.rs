//! A flow of the network: its members, ends, stacks and paths.

use gridhaul_core::load::IdleRules;
use gridhaul_core::tcp::StackParams;
use gridhaul_linux::{RouteMetrics, TCP_RTO_MIN};
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Flow, FlowEnd, Hop, Scenario, Transport,
};
use gridhaul_scenario::units::Duration;

use super::address::AddressFamily;
use crate::socket_config::kernel_mss;

/// A flow of the scenario: all of its members.
#[derive(Debug, Clone)]
pub(crate) struct FlowLayout {
    /// Number of equal flows, and of members of the group on either side.
    pub count: u32,
    pub group: u64,
    pub family: AddressFamily,
    pub transport: Transport,
    /// Nodes of the ends of its connections: with an aggregator, the second one.
    pub ends: [usize; 2],
    /// Node of the server that receives the data: the second end, unless there is an aggregator.
    pub server: usize,
    /// Traffic class octet of the packets of both ends.
    pub traffic_class: u8,
    /// Number of aggregators to which the members are assigned evenly; 0 without aggregators.
    pub aggregators: u32,
    /// Whether routes limit the receive window, because relay daemons open the sockets.
    pub limits_window: bool,
    /// NAT, keep-alive and user timeout, if the flow has any.
    pub idle: Option<IdleRules>,
    /// The stacks of its ends.
    pub stacks: [StackParams; 2],
    /// Path from `from` to `to`, and reverse path; datagrams have no reverse path in a run.
    pub paths: [Vec<Hop>; 2],
    /// Whether the scenario sets the congestion control of each end.
    pub(super) chosen: [bool; 2],
    /// Whether routes also configure the connections of other programs.
    pub(super) for_external_programs: bool,
    /// The congestion control that routes set at each end, if any.
    pub controls: [Option<String>; 2],
}

impl FlowLayout {
    /// Whether the senders classify the causes of losses.
    pub(crate) fn classifies_losses(&self) -> bool {
        self.transport == Transport::Tcp
            && self.stacks[0].congestion_control == CongestionControlAlgorithm::Medx
    }

    /// Whether the stacks request explicit congestion notification.
    pub(crate) fn has_ecn(&self) -> bool {
        self.transport == Transport::Tcp && self.stacks[0].ecn
    }

    pub(super) fn new(
        scenario: &Scenario,
        name: &str,
        flow: &Flow,
        ends: [usize; 2],
    ) -> Result<Self, RunError> {
        let routes =
            scenario.routes(name).map_err(|problem| RunError::Invalid(problem.to_string()))?;
        let group = scenario.members(&flow.from, &flow.to).unwrap_or(1);
        let chosen = |stack: Option<&String>| {
            stack
                .and_then(|name| scenario.stack.get(name))
                .is_some_and(|stack| stack.congestion_control.is_some())
        };
        let names = [flow.stack.as_ref(), flow.to_stack.as_ref().or(flow.stack.as_ref())];
        let stacks = names.map(|name| StackParams::named(scenario, name, flow.ip));
        Ok(Self {
            count: group.saturating_mul(flow.count),
            group: u64::from(group),
            family: AddressFamily::of(flow.ip),
            transport: flow.transport,
            ends,
            server: ends[1],
            traffic_class: flow.dscp.octet(),
            aggregators: 0,
            limits_window: false,
            idle: IdleRules::of(flow),
            stacks,
            paths: [routes.forward, routes.reverse],
            chosen: names.map(chosen),
            for_external_programs: false,
            controls: [None, None],
        })
    }

    /// The node of an end.
    pub(crate) fn node(&self, side: FlowEnd) -> usize {
        self.ends[side as usize]
    }

    /// Route metrics for connections that this end opens.
    pub(super) fn route_metrics(&self, end: usize) -> RouteMetrics<'_> {
        if self.transport != Transport::Tcp {
            return RouteMetrics::default();
        }
        let stack = &self.stacks[end];
        let rto_min = stack.rto_min;
        // The sockets of a run lower the timeout themselves, but cannot raise it.
        let is_routed =
            rto_min > TCP_RTO_MIN || self.for_external_programs && rto_min < TCP_RTO_MIN;
        let window = self.limits_window.then_some(stack.receive_window);
        let metrics = RouteMetrics {
            window,
            initial_window: Some((stack.initial_window / stack.mss).max(1)),
            quick_ack: stack.delayed_ack == Duration::ZERO,
            rto_min: is_routed.then_some(rto_min),
            ..RouteMetrics::default()
        };
        if !self.for_external_programs {
            return metrics;
        }
        // Like the sockets of a run, each end advertises the smaller MSS of both stacks.
        let segment = self.stacks.each_ref().map(kernel_mss).into_iter().min();
        let congestion_control = self.controls[end].as_deref();
        RouteMetrics { advertised_mss: segment, congestion_control, ..metrics }
    }
}
