//! The namespaces and devices of a run.

use super::plan::{Plan, Port};
use crate::fault::Fault;
use gridhaul_linux::{Namespace, Tun, run_batch, set_sysctl};

/// What was made for a run. It vanishes with this.
#[derive(Debug)]
pub(crate) struct Lab {
    /// One for each node.
    pub namespaces: Vec<Namespace>,
    /// One for each port of the plan.
    pub devices: Vec<Tun>,
}

impl Lab {
    /// Makes the network of a plan.
    pub(crate) fn build(plan: &Plan) -> Result<Self, Fault> {
        let mut namespaces = Vec::with_capacity(plan.nodes.len());
        let mut devices: Vec<Option<Tun>> = plan.ports.iter().map(|_| None).collect();
        for (number, name) in plan.nodes.iter().enumerate() {
            let namespace = Namespace::new()?;
            let made = namespace.enter(|| furnish(plan, number, name))??;
            for (port, device) in made {
                devices[port] = Some(device);
            }
            namespaces.push(namespace);
        }
        // Every port belongs to a node, so each has its device by now.
        let devices = devices.into_iter().flatten().collect();
        Ok(Self { namespaces, devices })
    }
}

/// Makes the devices of a node, then addresses, routes and settings; inside its namespace.
fn furnish(plan: &Plan, node: usize, name: &str) -> Result<Vec<(usize, Tun)>, Fault> {
    let mut made = Vec::new();
    for (number, port) in plan.ports.iter().enumerate().filter(|(_, port)| port.node == node) {
        let Port { device, link, .. } = port;
        let doing = format!("making the device of link `{link}` at node `{name}` (/dev/net/tun)");
        made.push((number, Tun::new(device).map_err(Fault::call(doing))?));
    }
    configure(plan, node, name)?;
    plan.configuration(node).run(name)?;
    let shaping = plan.shaping(node);
    if !shaping.is_empty() {
        run_batch("tc", &shaping, name)?;
    }
    Ok(made)
}

/// Settings of the namespace, before its devices come up.
fn configure(plan: &Plan, node: usize, name: &str) -> Result<(), Fault> {
    let set = |setting: &str, value: &str| {
        set_sysctl(setting, value)
            .map_err(Fault::call(format!("setting {setting} = {value} at node `{name}`")))
    };
    set("ipv4/ip_forward", "1")?;
    set("ipv6/conf/all/forwarding", "1")?;
    // Ways out and back may differ; no packet but those of the flows shall be sent.
    set("ipv4/conf/all/rp_filter", "0")?;
    set("ipv4/conf/default/rp_filter", "0")?;
    set("ipv6/conf/default/addr_gen_mode", "1")?;
    set("ipv6/conf/default/accept_dad", "0")?;
    set("ipv6/conf/default/router_solicitations", "0")?;
    // One connection must not learn from another.
    set("ipv4/tcp_no_metrics_save", "1")?;
    // Send buffers grow as far as they need. Windows are set at the sockets; the limit here decides
    // in which steps they can be told (RFC 7323, section 2.2), so that it is no larger than needed.
    set("ipv4/tcp_wmem", "4096 65536 67108864")?;
    let stacks = plan.flows.iter().flat_map(|flow| &flow.stacks);
    let window = stacks.map(|stack| stack.receive_window).max().unwrap_or_default();
    set("ipv4/tcp_rmem", &format!("4096 131072 {}", window.max(131_072)))?;
    let ends = plan.flows.iter().flat_map(|flow| flow.ends.iter().zip(&flow.stacks));
    if let Some((_, stack)) = ends.into_iter().find(|(end, _)| **end == node) {
        let flag = |on: bool| if on { "1" } else { "0" };
        set("ipv4/tcp_sack", flag(stack.sack))?;
        set("ipv4/tcp_timestamps", flag(stack.timestamps))?;
        set("ipv4/tcp_slow_start_after_idle", flag(stack.restart_after_idle))?;
        set("ipv4/tcp_reordering", &stack.dupthresh.to_string())?;
    }
    Ok(())
}
