//! What has to be built: namespaces, devices, routes, and the ways of the flows over directions.

use gridhaul_core::tcp::StackParams;
use gridhaul_linux::{DeviceAttributes, Htb, IpCommands, Route, RouteMetrics, TCP_RTO_MIN};
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{
    CongestionControlAlgorithm, Directions, Flow, Hop, Scenario, Transport,
};
use gridhaul_scenario::units::Duration;

use super::address::{Address, Family, Side};
use super::shaper::token_bucket;
use crate::traffic::kernel_mss;

/// Everything that follows from the scenario before anything is made.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Names of the nodes; each has one namespace, a group too.
    pub nodes: Vec<String>,
    /// Devices, two for each link: that of its `from`, then that of its `to`.
    pub ports: Vec<Port>,
    /// One for each flow of the scenario.
    pub flows: Vec<FlowPlan>,
    /// The directions of all links.
    pub directions: Directions,
    /// The device at which the directions of each row end.
    arrivals: Vec<usize>,
    /// Shapers, each with the number of its device.
    shapers: Vec<(usize, Htb)>,
}

/// A device: one end of a link, for all of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    /// Number of the node.
    pub node: usize,
    /// Name of the link.
    pub link: String,
    /// Name of the device.
    pub device: String,
    /// The direction of the link that begins here, if it has one.
    pub leads: Option<Hop>,
}

/// A flow of the scenario: all of its members.
#[derive(Debug, Clone)]
pub(crate) struct FlowPlan {
    /// Number of equal flows, and of members of the group on either side.
    pub count: u32,
    pub group: u64,
    pub family: Family,
    pub transport: Transport,
    /// Nodes of its ends.
    pub ends: [usize; 2],
    /// The stacks of its ends.
    pub stacks: [StackParams; 2],
    /// From `from` to `to`, and back; datagrams have no way back in a run.
    pub ways: [Vec<Hop>; 2],
    /// Whether the scenario chooses the variant of each end.
    chosen: [bool; 2],
    /// What routes say besides to programs that set nothing at their sockets.
    for_programs: bool,
    /// The congestion control that they say at each end, if any.
    pub controls: [Option<String>; 2],
}

impl Plan {
    /// Plans the network of a scenario that is supported.
    ///
    /// # Errors
    /// No way for a flow.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let node = |name: &str| {
            scenario.node.get_index_of(name).expect("a valid scenario names nodes that it has")
        };
        let mut ports = Vec::new();
        for (index, (name, link)) in scenario.link.iter().enumerate() {
            let sides = [(&link.from, link.forward(), true), (&link.to, link.reverse(), false)];
            for (at, direction, forward) in sides {
                ports.push(Port {
                    node: node(at),
                    link: name.clone(),
                    device: format!("link{index}"),
                    leads: direction.map(|_| Hop { link: index, forward }),
                });
            }
        }
        let mut flows = Vec::new();
        for (name, flow) in &scenario.flow {
            flows.push(FlowPlan::new(scenario, name, flow, [node(&flow.from), node(&flow.to)])?);
        }
        let nodes = scenario.node.keys().cloned().collect();
        // Rows stand in the order of links, forward before reverse, as ports do.
        let leads = ports.iter().enumerate().filter(|(_, port)| port.leads.is_some());
        let arrivals = leads.map(|(number, _)| number ^ 1).collect();
        let shapers = scenario.shapers().map(|(_, hop, shaper)| {
            (port_number(&hop, false), token_bucket(scenario, shaper, &flows))
        });
        let shapers = shapers.collect();
        Ok(Self { nodes, ports, flows, directions: Directions::new(scenario), arrivals, shapers })
    }

    /// Lets routes say to programs of one's own what a run sets at its sockets, as far as routes can:
    /// segments, the least timeout, and the congestion control where the scenario chooses it; `control`
    /// says what the kernel calls that of a stack. Programs may answer datagrams, too.
    pub(crate) fn serve_programs<'c>(
        &mut self,
        scenario: &Scenario,
        control: impl Fn(&StackParams) -> Option<&'c str>,
    ) {
        for (name, flow) in scenario.flow.keys().zip(&mut self.flows) {
            if flow.transport == Transport::Datagram {
                flow.ways[1] = scenario.reverse_path(name).unwrap_or_default();
            }
        }
        for flow in self.flows.iter_mut().filter(|flow| flow.transport == Transport::Tcp) {
            flow.for_programs = true;
            flow.controls = [0, 1].map(|end| {
                flow.chosen[end].then(|| control(&flow.stacks[end]))?.map(str::to_owned)
            });
        }
    }

    /// The commands for `tc` that install the shapers of a node; empty if the node has none.
    pub(crate) fn shaping(&self, node: usize) -> String {
        let own = self.shapers.iter().filter(|(port, _)| self.ports[*port].node == node);
        own.map(|(port, shaper)| shaper.commands(&self.ports[*port].device)).collect()
    }

    /// The devices, addresses and routes of a node.
    pub(crate) fn configuration(&self, node: usize) -> IpCommands {
        let mut commands = IpCommands::default();
        commands.set_up_loopback();
        for (number, port) in self.ports.iter().enumerate().filter(|(_, port)| port.node == node) {
            // A shaper counts packets: the link must not receive one as several.
            let is_shaped = self.shapers.iter().any(|(shaped, _)| *shaped == number);
            let attributes = DeviceAttributes {
                mtu: MTU,
                transmit_queue_len: DEVICE_QUEUE,
                gso_max_segments: is_shaped.then_some(1),
            };
            commands.set_up_device(&port.device, attributes);
        }
        self.assign_addresses(node, &mut commands);
        self.add_routes(node, &mut commands);
        commands
    }

    fn assign_addresses(&self, node: usize, commands: &mut IpCommands) {
        for (number, flow, side) in self.ends().filter(|(_, flow, side)| flow.node(*side) == node) {
            commands.add_local_prefix(Address::block(number as u16, side, flow.family));
            commands.add_address("lo", first(number, side).ip(flow.family));
        }
    }

    /// Routes to the ends of flows at other nodes; their source addresses must be assigned.
    fn add_routes(&self, node: usize, commands: &mut IpCommands) {
        for (number, flow, side) in self.ends().filter(|(_, flow, side)| flow.node(*side) != node) {
            let Some(device) = self.device_towards(flow, side as usize, node) else { continue };
            let own = SIDES.into_iter().find(|own| flow.node(*own) == node);
            commands.add_route(&Route {
                destination: Address::block(number as u16, side, flow.family),
                device,
                source: own.map(|own| first(number, own).ip(flow.family)),
                metrics: own.map(|own| flow.route_metrics(own as usize)).unwrap_or_default(),
            });
        }
    }

    /// Both ends of all flows, each with the number of the flow.
    fn ends(&self) -> impl Iterator<Item = (usize, &FlowPlan, Side)> {
        let flows = self.flows.iter().enumerate();
        flows.flat_map(|(number, flow)| SIDES.map(|side| (number, flow, side)))
    }

    /// The device through which this node reaches an end of a flow, if it lies on its way.
    fn device_towards(&self, flow: &FlowPlan, end: usize, node: usize) -> Option<&str> {
        // What leads to the `to` end is the way out; to the `from` end, the way back.
        let mut ports = flow.ways[1 - end].iter().map(|hop| self.port(hop, false));
        ports.find(|port| port.node == node).map(|port| port.device.as_str())
    }

    /// The device where a hop begins, or the one where it ends.
    fn port(&self, hop: &Hop, end: bool) -> &Port {
        &self.ports[port_number(hop, end)]
    }

    /// The device at which a direction ends.
    pub(crate) fn arrival(&self, direction: u32) -> usize {
        let row = self.directions.row_of()[direction as usize] as usize;
        self.arrivals[row]
    }

    /// Its number.
    pub(crate) fn port_number(&self, hop: &Hop, end: bool) -> usize {
        port_number(hop, end)
    }
}

/// The device where a hop begins, or the one where it ends; two for each link.
fn port_number(hop: &Hop, end: bool) -> usize {
    2 * hop.link + usize::from(hop.forward == end)
}

impl FlowPlan {
    /// Whether its senders tell causes of losses apart and count what they say.
    pub(crate) fn judges(&self) -> bool {
        self.transport == Transport::Tcp
            && self.stacks[0].congestion_control == CongestionControlAlgorithm::Medx
    }

    fn new(
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
                .is_some_and(|it| it.congestion_control.is_some())
        };
        let names = [flow.stack.as_ref(), flow.to_stack.as_ref().or(flow.stack.as_ref())];
        let stacks = names.map(|name| StackParams::named(scenario, name, flow.ip));
        Ok(Self {
            count: group.saturating_mul(flow.count),
            group: u64::from(group),
            family: Family::of(flow.ip),
            transport: flow.transport,
            ends,
            stacks,
            ways: [routes.forward, routes.reverse],
            chosen: names.map(chosen),
            for_programs: false,
            controls: [None, None],
        })
    }

    /// The node of an end.
    fn node(&self, side: Side) -> usize {
        self.ends[side as usize]
    }

    /// What connections that begin at this end take from their route.
    fn route_metrics(&self, end: usize) -> RouteMetrics<'_> {
        if self.transport != Transport::Tcp {
            return RouteMetrics::default();
        }
        let stack = &self.stacks[end];
        let least = stack.rto_min;
        // The sockets of a run lower the timeout themselves, but cannot raise it.
        let is_routed = least > TCP_RTO_MIN || self.for_programs && least < TCP_RTO_MIN;
        let metrics = RouteMetrics {
            initial_window: Some((stack.initial_window / stack.mss).max(1)),
            quick_ack: stack.delayed_ack == Duration::ZERO,
            rto_min: is_routed.then_some(least),
            ..RouteMetrics::default()
        };
        if !self.for_programs {
            return metrics;
        }
        // As the sockets of a run, each end asks the other for no larger segments than both have.
        let segment = self.stacks.each_ref().map(kernel_mss).into_iter().min();
        let congestion_control = self.controls[end].as_deref();
        RouteMetrics { advertised_mss: segment, congestion_control, ..metrics }
    }
}

/// Both ends of a flow, in the order of [`FlowPlan::ends`].
const SIDES: [Side; 2] = [Side::From, Side::To];

/// The address of the first member.
fn first(flow: usize, side: Side) -> Address {
    Address { flow: flow as u16, side, number: 0 }
}

/// Whatever a scenario sends fits into one packet; the size of segments is set at the sockets.
const MTU: u32 = 65_535;

/// Packets that a device keeps until the emulator reads them. It reads at once; this is for the time
/// in which it is not on a processor.
const DEVICE_QUEUE: u32 = 10_000;
