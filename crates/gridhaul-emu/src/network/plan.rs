//! What has to be built: namespaces, devices, routes, and the ways of the flows over directions.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Directions, Flow, Hop, Scenario, Transport, Variant};
use gridhaul_scenario::units::Duration;

use super::address::{Address, Family, Side};
use super::shaper::ShaperPlan;
use crate::traffic::{KERNEL_RTO_MIN, kernel_mss};

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
    shapers: Vec<(usize, ShaperPlan)>,
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
            let sides = [(&link.from, link.forward(), true), (&link.to, link.backward(), false)];
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
        // Rows stand in the order of links, forward before backward, as ports do.
        let leads = ports.iter().enumerate().filter(|(_, port)| port.leads.is_some());
        let arrivals = leads.map(|(number, _)| number ^ 1).collect();
        let shapers = scenario
            .shapers()
            .map(|(_, hop, shaper)| (port_number(&hop, false), ShaperPlan::new(scenario, shaper)));
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
                flow.ways[1] = scenario.way_back(name).unwrap_or_default();
            }
        }
        for flow in self.flows.iter_mut().filter(|flow| flow.transport == Transport::Tcp) {
            flow.for_programs = true;
            flow.controls = [0, 1].map(|end| {
                flow.chosen[end].then(|| control(&flow.stacks[end]))?.map(str::to_owned)
            });
        }
    }

    /// What `tc` is told to shape what leaves a node: one line for each command, none where nothing
    /// is shaped.
    pub(crate) fn shaping(&self, node: usize) -> String {
        let own = self.shapers.iter().filter(|(port, _)| self.ports[*port].node == node);
        own.map(|(port, shaper)| shaper.commands(&self.ports[*port].device, &self.flows)).collect()
    }

    /// What `ip` is told to set up a node: one line for each command.
    pub(crate) fn commands(&self, node: usize) -> String {
        let mut lines = vec!["link set lo up".to_owned()];
        for port in self.ports.iter().filter(|port| port.node == node) {
            let device = &port.device;
            let mut line = format!("link set {device} mtu {MTU} txqueuelen {DEVICE_QUEUE}");
            // A shaper counts packets: none shall be cut into several behind it.
            if self.shapers.iter().any(|(shaped, _)| self.ports[*shaped] == *port) {
                line += " gso_max_segs 1";
            }
            lines.push(line + " up");
        }
        // Addresses come first: routes name them.
        let (mut addresses, mut routes) = (Vec::new(), Vec::new());
        for (number, flow) in self.flows.iter().enumerate() {
            for (side, end) in [Side::From, Side::To].into_iter().zip(0..) {
                let block = Address::block(number as u16, side, flow.family);
                if flow.ends[end] == node {
                    let own = first(number, side).ip(flow.family);
                    // No waiting for others that might have the address.
                    let length = if flow.family == Family::V6 { "128 nodad" } else { "32" };
                    addresses.push(format!("route add local {block} dev lo"));
                    addresses.push(format!("address add dev lo {own}/{length}"));
                } else if let Some(device) = self.device_towards(flow, end, node) {
                    let attributes = flow.route_attributes(number, node);
                    routes.push(format!("route add {block} dev {device}{attributes}"));
                }
            }
        }
        lines.extend(addresses);
        lines.extend(routes);
        lines.join("\n") + "\n"
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
        self.transport == Transport::Tcp && self.stacks[0].variant == Variant::Medx
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
            stack.and_then(|name| scenario.stack.get(name)).is_some_and(|it| it.variant.is_some())
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
            ways: [routes.out, routes.back],
            chosen: names.map(chosen),
            for_programs: false,
            controls: [None, None],
        })
    }

    /// What the kernel takes from the route of a connection that begins here.
    fn route_attributes(&self, number: usize, node: usize) -> String {
        let Some(end) = self.ends.iter().position(|&end| end == node) else {
            return String::new();
        };
        // For programs that do not choose an address.
        let own = first(number, if end == 0 { Side::From } else { Side::To });
        let mut attributes = format!(" src {}", own.ip(self.family));
        if self.transport != Transport::Tcp {
            return attributes;
        }
        let stack = &self.stacks[end];
        attributes += &format!(" initcwnd {}", (stack.initial_window / stack.mss).max(1));
        // Every segment is acknowledged at once.
        if stack.delayed_ack == Duration::ZERO {
            attributes += " quickack 1";
        }
        let least = stack.rto_min;
        // The sockets of a run say less than the kernel's own themselves, but take no more.
        if least > KERNEL_RTO_MIN || self.for_programs && least < KERNEL_RTO_MIN {
            // Routes count in milliseconds.
            attributes += &format!(" rto_min {}ms", least.as_nanos().div_ceil(1_000_000));
        }
        if self.for_programs {
            attributes += &self.attributes_for_programs(end);
        }
        attributes
    }

    fn attributes_for_programs(&self, end: usize) -> String {
        // Each end asks the other for no larger segments than both have, as their sockets do in a run.
        let segment = self.stacks.each_ref().map(kernel_mss).into_iter().min().unwrap_or_default();
        let mut attributes = format!(" advmss {segment}");
        if let Some(name) = &self.controls[end] {
            attributes += &format!(" congctl {name}");
        }
        attributes
    }
}

/// The address of the first member.
fn first(flow: usize, side: Side) -> Address {
    Address { flow: flow as u16, side, number: 0 }
}

/// Whatever a scenario sends fits into one packet; the size of segments is set at the sockets.
const MTU: u32 = 65_535;

/// Packets that a device keeps until the emulator reads them. It reads at once; this is for the time
/// in which it is not on a processor.
const DEVICE_QUEUE: u32 = 10_000;
