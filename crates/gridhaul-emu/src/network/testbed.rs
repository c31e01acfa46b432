//! The namespaces and devices of a run.

use super::link_device::LinkDevice;
use super::nat::configure_nats;
use super::plan::NetworkPlan;
use crate::error::EmulationError;
use crate::socket_config::tcp_sysctls;
use gridhaul_linux::{
    Namespace, Tun, disable_ipv6_autoconfiguration, enable_forwarding, limit_receive_windows,
    run_batch, set_sysctl, set_tcp_buffer_limits,
};
use gridhaul_scenario::scenario::Transport;

/// The namespaces and devices of a run. Dropping this value removes them.
#[derive(Debug)]
pub(crate) struct Testbed {
    /// One for each node.
    pub namespaces: Vec<Namespace>,
    /// One for each port of the plan.
    pub devices: Vec<Tun>,
}

impl Testbed {
    /// Creates the network of a plan.
    pub(crate) fn build(plan: &NetworkPlan) -> Result<Self, EmulationError> {
        let mut namespaces = Vec::with_capacity(plan.nodes.len());
        let mut devices: Vec<Option<Tun>> = plan.ports.iter().map(|_| None).collect();
        for (number, name) in plan.nodes.iter().enumerate() {
            let namespace = Namespace::new()?;
            let made = namespace.enter(|| configure_node(plan, number, name))??;
            for (port, device) in made {
                devices[port] = Some(device);
            }
            namespaces.push(namespace);
        }
        // Each port belongs to a node, so all devices exist now.
        let devices = devices.into_iter().flatten().collect();
        Ok(Self { namespaces, devices })
    }
}

/// Creates the devices, addresses, routes and settings of a node, inside its namespace.
fn configure_node(
    plan: &NetworkPlan,
    node: usize,
    name: &str,
) -> Result<Vec<(usize, Tun)>, EmulationError> {
    let mut made = Vec::new();
    for (number, port) in plan.ports.iter().enumerate().filter(|(_, port)| port.node == node) {
        let LinkDevice { device, link, .. } = port;
        let doing = format!("creating the device of link `{link}` at node `{name}` (/dev/net/tun)");
        let has_frames = plan.frames().is_some() || plan.proxy_at(number).is_some();
        let opened = if has_frames { Tun::tap(device) } else { Tun::new(device) };
        made.push((number, opened.map_err(EmulationError::call(doing))?));
    }
    configure(plan, node)?;
    plan.configuration(node).run(name)?;
    configure_nats(plan, node, name)?;
    let shaping = plan.shaping(node);
    if !shaping.is_empty() {
        run_batch("tc", &shaping, name)?;
    }
    Ok(made)
}

/// Applies the settings of the namespace, before its devices are up.
fn configure(plan: &NetworkPlan, node: usize) -> Result<(), EmulationError> {
    enable_forwarding()?;
    disable_ipv6_autoconfiguration()?;
    // A connection must not use cached metrics of another one.
    set_sysctl("ipv4/tcp_no_metrics_save", "1")?;
    limit_buffers(plan, node)?;
    let mut ends = plan.flows.iter().flat_map(|flow| flow.ends.iter().zip(&flow.stacks));
    if let Some((_, stack)) = ends.find(|(end, _)| **end == node) {
        tcp_sysctls(stack).apply()?;
    }
    Ok(())
}

/// Limits the buffers of the sockets of a run, or the windows of other programs at this node.
fn limit_buffers(plan: &NetworkPlan, node: usize) -> Result<(), EmulationError> {
    if plan.is_for_programs {
        let at_node = plan.flows.iter().flat_map(|flow| {
            let is_tcp = flow.transport == Transport::Tcp;
            let ends = flow.ends.iter().zip(&flow.stacks).filter(|(end, _)| **end == node);
            ends.map(move |(_, stack)| (is_tcp, stack.receive_window))
        });
        // The stack of a flow of datagrams counts if no other flow ends here.
        if let Some((_, window)) = at_node.max() {
            return Ok(limit_receive_windows(window)?);
        }
    }
    let stacks = plan.flows.iter().flat_map(|flow| &flow.stacks);
    let largest = stacks.map(|stack| stack.receive_window).max().unwrap_or_default();
    Ok(set_tcp_buffer_limits(largest)?)
}
