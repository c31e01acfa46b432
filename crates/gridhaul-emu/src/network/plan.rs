//! The plan of the network: namespaces, devices, routes, and the paths of the flows over
//! directions.

use gridhaul_core::tcp::StackParams;
use gridhaul_data::link_trace;
use gridhaul_linux::{DeviceAttributes, Htb, IpCommands, Route};
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Directions, FlowEnd, Hop, PacketTooBig, Scenario, Transport};

use super::address::Address;
use super::flow_layout::FlowLayout;
use super::link_device::LinkDevice;
use super::proxies::{self, ProxyLayout};
use super::relays::{self, RelayLayout};
use super::routers::{self, RouterLayout};
use super::shaper::token_bucket;
use crate::socket_config::kernel_mss;

/// The network of a scenario, before it is created.
#[derive(Debug)]
pub(crate) struct NetworkPlan {
    /// Names of the nodes. Each node has one namespace, including a group.
    pub nodes: Vec<String>,
    /// Devices, two for each link: at its `from` node, then at its `to` node.
    pub ports: Vec<LinkDevice>,
    /// One for each flow of the scenario, then one for the upstream connections of each aggregator,
    /// and one for the probes of each pair of hybrid routers.
    pub flows: Vec<FlowLayout>,
    /// Aggregators, which are relay daemons.
    pub relays: Vec<RelayLayout>,
    /// Proxies, which are relay daemons as well.
    pub proxies: Vec<ProxyLayout>,
    /// Hybrid routers, which are relay daemons as well.
    pub routers: Vec<RouterLayout>,
    /// The directions of all links.
    pub directions: Directions,
    /// The device at which the directions of each row end.
    arrivals: Vec<usize>,
    /// Shapers, each with the index of its device.
    shapers: Vec<(usize, Htb)>,
    /// The flow whose frames the links carry; `None` if the links carry IP packets.
    frames: Option<usize>,
    /// Whether other programs than those of a run use the network.
    pub is_for_programs: bool,
}

impl NetworkPlan {
    /// Plans the network of a scenario that is supported.
    ///
    /// # Errors
    /// A flow without a path, or a trace of a link that cannot be read.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let node = |name: &str| {
            scenario.node.get_index_of(name).expect("a valid scenario names nodes that it has")
        };
        let mut ports = Vec::new();
        for (index, (name, link)) in scenario.link.iter().enumerate() {
            let sides = [(&link.from, link.forward(), true), (&link.to, link.reverse(), false)];
            for (at, direction, forward) in sides {
                let mtu = direction.and_then(|direction| direction.mtu);
                ports.push(LinkDevice {
                    node: node(at),
                    mtu: mtu.and_then(|mtu| u32::try_from(mtu.get()).ok()),
                    packet_too_big: direction.and_then(|direction| direction.packet_too_big),
                    mss_clamp: direction
                        .and_then(|direction| direction.mss_clamp)
                        .map(|clamp| u16::try_from(clamp.get()).unwrap_or(u16::MAX)),
                    link: name.clone(),
                    device: format!("link{index}"),
                    leads: direction.map(|_| Hop { link: index, forward }),
                });
            }
        }
        let mut flows = Vec::new();
        for (name, flow) in &scenario.flow {
            flows.push(FlowLayout::new(scenario, name, flow, [node(&flow.from), node(&flow.to)])?);
        }
        let relays = relays::add_relays(scenario, &mut flows)?;
        let routers = routers::add_routers(scenario, &mut flows);
        let nodes = scenario.node.keys().cloned().collect();
        // Rows are in the order of links, forward before reverse, like ports.
        let leads = ports.iter().enumerate().filter(|(_, port)| port.leads.is_some());
        let arrivals = leads.map(|(number, _)| number ^ 1).collect();
        let shapers = scenario.shapers().map(|(_, hop, shaper)| {
            (port_number(&hop, false), token_bucket(scenario, shaper, &flows))
        });
        // A hybrid router has the shapers of its links.
        let is_of_router = |port: &usize| routers.iter().any(|router| router.ports.contains(port));
        let shapers = shapers.filter(|(port, _)| !is_of_router(port)).collect();
        let directions = link_trace::directions(scenario)?;
        let proxies = proxies::proxies(scenario, &ports)?;
        let frames = None;
        Ok(Self {
            nodes,
            ports,
            flows,
            relays,
            proxies,
            routers,
            directions,
            arrivals,
            shapers,
            frames,
            is_for_programs: false,
        })
    }

    /// Makes all links Ethernet links, which carry the frames of the first member of a flow. Its
    /// reverse path exists for datagrams as well.
    pub(crate) fn carry_frames(&mut self, scenario: &Scenario, flow: usize) {
        let name = scenario.flow.get_index(flow).map(|(name, _)| name.as_str());
        if let Some(layout) = self.flows.get_mut(flow).filter(|layout| layout.paths[1].is_empty()) {
            layout.paths[1] = name.and_then(|name| scenario.reverse_path(name)).unwrap_or_default();
        }
        self.frames = Some(flow);
    }

    /// The flow whose frames the links carry; `None` if the links carry IP packets.
    pub(crate) const fn frames(&self) -> Option<usize> {
        self.frames
    }

    /// The proxy that bridges a device, if any. Such a device carries Ethernet frames.
    pub(crate) fn proxy_at(&self, port: usize) -> Option<usize> {
        self.proxies.iter().position(|proxy| proxy.ports.contains(&port))
    }

    /// MTUs of the links that are black holes.
    pub(crate) fn black_holes(&self) -> impl Iterator<Item = u32> {
        let is_hole = |port: &&LinkDevice| port.packet_too_big == Some(PacketTooBig::BlackHole);
        self.ports.iter().filter(is_hole).filter_map(|port| port.mtu)
    }

    /// The devices at both ends of a flow: where frames from `from` to `to` enter the first link
    /// and leave the last one.
    pub(crate) fn end_devices(&self, flow: &FlowLayout) -> Option<[&str; 2]> {
        let [first, last] = [flow.paths[0].first()?, flow.paths[0].last()?];
        Some([self.port(first, false), self.port(last, true)].map(|port| port.device.as_str()))
    }

    /// Configures routes for other programs with the parameters that a run sets at its sockets, as
    /// far as routes support them: segment size, minimum timeout, and the congestion control if the
    /// scenario sets it. `control` returns its name in the kernel. Programs may also reply to
    /// datagrams.
    pub(crate) fn configure_routes_for_programs<'c>(
        &mut self,
        scenario: &Scenario,
        control: impl Fn(&StackParams) -> Option<&'c str>,
    ) {
        self.is_for_programs = true;
        for (name, flow) in scenario.flow.keys().zip(&mut self.flows) {
            if flow.transport == Transport::Datagram {
                flow.paths[1] = scenario.reverse_path(name).unwrap_or_default();
            }
        }
        for flow in self.flows.iter_mut().filter(|flow| flow.transport == Transport::Tcp) {
            flow.for_external_programs = true;
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
            // A shaper counts packets: the device must not carry several segments as one packet
            // (GSO).
            let is_shaped = self.shapers.iter().any(|(shaped, _)| *shaped == number);
            let mtu = match self.frames {
                Some(_) => ETHERNET_MTU,
                None if self.proxy_at(number).is_some() => self.proxy_mtu(),
                None => port.mtu.unwrap_or(MTU),
            };
            let attributes = DeviceAttributes {
                mtu,
                transmit_queue_len: DEVICE_QUEUE,
                gso_max_segments: is_shaped.then_some(1),
            };
            commands.set_up_device(&port.device, attributes);
        }
        self.assign_addresses(node, &mut commands);
        // A bridge has no routes: its kernel must not forward what the daemon forwards.
        if self.proxies.iter().all(|proxy| proxy.node != node) {
            self.add_routes(node, &mut commands);
        }
        commands
    }

    /// MTU of the devices of proxies, which is the size of the hosts' largest packets, options
    /// included: larger ones would be dropped, and a proxy that splits connections derives its
    /// segment size from the MTU.
    pub(crate) fn proxy_mtu(&self) -> u32 {
        let packets = self.flows.iter().flat_map(|flow| {
            flow.stacks.each_ref().map(|stack| match flow.transport {
                Transport::Tcp => stack.header + kernel_mss(stack),
                _ => FRAMES_MTU,
            })
        });
        packets.max().unwrap_or(ETHERNET_MTU).clamp(MTU_MIN, FRAMES_MTU)
    }

    fn assign_addresses(&self, node: usize, commands: &mut IpCommands) {
        for (number, flow, side) in self.ends().filter(|(_, flow, side)| flow.node(*side) == node) {
            commands.add_local_prefix(Address::block(number as u16, side, flow.family));
            commands.add_address("lo", first(number, side).ip(flow.family));
        }
        // Behind the relays, the server has its own addresses, and the head connects from those of
        // the meters.
        for relay in self.relays.iter().filter(|relay| self.flows[relay.flow].server == node) {
            let family = self.flows[relay.flow].family;
            for side in SIDES {
                commands.add_local_prefix(Address::block(relay.flow as u16, side, family));
            }
            commands.add_address("lo", first(relay.flow, FlowEnd::To).ip(family));
        }
    }

    /// Routes to the ends of flows at other nodes; their source addresses must be assigned.
    fn add_routes(&self, node: usize, commands: &mut IpCommands) {
        for (number, flow, side) in self.ends().filter(|(_, flow, side)| flow.node(*side) != node) {
            let Some(port) = self.port_towards(flow, side, node) else { continue };
            let device = &self.ports[port].device;
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
    pub(super) fn ends(&self) -> impl Iterator<Item = (usize, &FlowLayout, FlowEnd)> {
        let flows = self.flows.iter().enumerate();
        flows.flat_map(|(number, flow)| SIDES.map(|side| (number, flow, side)))
    }

    /// Index of the device through which this node reaches an end of a flow, if the node is on its
    /// path.
    pub(super) fn port_towards(
        &self,
        flow: &FlowLayout,
        side: FlowEnd,
        node: usize,
    ) -> Option<usize> {
        // The forward path leads to the `to` end, the reverse path to the `from` end.
        let mut ports = flow.paths[1 - side as usize].iter().map(|hop| port_number(hop, false));
        ports.find(|port| self.ports[*port].node == node)
    }

    /// The device at the start or at the end of a hop.
    fn port(&self, hop: &Hop, end: bool) -> &LinkDevice {
        &self.ports[port_number(hop, end)]
    }

    /// The device at which a direction ends.
    pub(crate) fn arrival(&self, direction: u32) -> usize {
        let row = self.directions.row_of()[direction as usize] as usize;
        self.arrivals[row]
    }

    /// Index of the device at the start or at the end of a hop.
    pub(crate) fn port_number(&self, hop: &Hop, end: bool) -> usize {
        port_number(hop, end)
    }
}

/// Index of the device at the start or at the end of a hop; each link has two.
fn port_number(hop: &Hop, end: bool) -> usize {
    2 * hop.link + usize::from(hop.forward == end)
}

/// Both ends of a flow, in the order of [`FlowLayout::ends`].
const SIDES: [FlowEnd; 2] = [FlowEnd::From, FlowEnd::To];

/// The address of the first member.
fn first(flow: usize, side: FlowEnd) -> Address {
    Address { flow: flow as u16, side, number: 0 }
}

/// Each message of a scenario fits into one packet; the MSS is set at the sockets.
const MTU: u32 = 65_535;

/// The smallest MTU of IPv6 (RFC 8200, section 5).
const MTU_MIN: u32 = 1_280;

/// The largest MTU of a TAP device: its frames have a header of 14 B in addition.
const FRAMES_MTU: u32 = MTU - 14;

/// Payload of an Ethernet frame (IEEE 802.3, section 3.2.7).
const ETHERNET_MTU: u32 = 1_500;

/// Queue length of a device. The emulator reads at once; the queue covers the time in which its
/// thread is not scheduled.
const DEVICE_QUEUE: u32 = 10_000;
