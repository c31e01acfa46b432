//! The scenario of a network, as TOML.

use std::fmt::Write;

use gridhaul_scenario::units::{Bytes, Duration};

use super::json::Object;
use super::network::{Medium, Network, Substation};
use super::paths::{self, Path};
use super::{ImportError, Options};

/// DNP3 reports an analog value of 32 bits with flags in 5 bytes (IEEE 1815, group 30 variation 1).
const BYTES_PER_ELEMENT: u64 = 5;

/// Headers of a response of DNP3: those of the link, transport and application layers.
const RESPONSE_HEADERS: u64 = 20;

pub(super) fn write(
    network: &Network,
    topology: &Object,
    grid: Option<&Object>,
    options: &Options,
) -> Result<String, ImportError> {
    let simulation = grid.map(|grid| grid.first("Simulation")).transpose()?;
    let number = |key: &str, expected: &str, default: f64| match &simulation {
        Some(simulation) => simulation.value(key, expected, default),
        None => Ok(default),
    };
    let poll = match options.poll {
        Some(poll) => poll,
        None => Duration::from_secs_f64(number("PollReqFreq", "milliseconds", 15.0)? / 1e3),
    };
    let duration = match options.duration {
        Some(duration) => duration,
        None => Duration::from_secs_f64(number("SimTime", "seconds", 60.0)?),
    };
    let mut text = format!(
        "# Imported from a configuration of NATIG. Polls and responses are over TCP, and losses\n\
         # are independent. Attacks are not imported.\n\
         title = \"NATIG: {}, {} substations\"\nduration = \"{duration}\"\n\n\
         [node]\ncontrol = {{}}\n",
        if options.all_paths { "all paths" } else { "shortest paths" },
        network.substations.len(),
    );
    for node in (0..network.nodes).filter(|&node| node != network.control) {
        let _ = writeln!(text, "{} = {{}}", node_name(network, node));
    }
    for substation in &network.substations {
        let _ = writeln!(text, "{} = {{}}", substation.name);
    }
    write_links(&mut text, network);
    write_flows(&mut text, network, topology, options, poll)?;
    Ok(text)
}

fn write_links(text: &mut String, network: &Network) {
    for (index, link) in network.links.iter().enumerate() {
        let [from, to] = link.ends.map(|end| node_name(network, end));
        let name = link_name(network, index);
        let _ = writeln!(text, "\n[link.{name}]\nfrom = \"{from}\"\nto = \"{to}\"");
        // Packets of `forward` arrive at the second end.
        if link.loss[0].to_bits() == link.loss[1].to_bits() {
            let _ = writeln!(text, "both = {}", direction(link.medium, link.loss[0]));
        } else {
            let _ = writeln!(text, "forward = {}", direction(link.medium, link.loss[1]));
            let _ = writeln!(text, "reverse = {}", direction(link.medium, link.loss[0]));
        }
    }
    for (index, Substation { name, .. }) in network.substations.iter().enumerate() {
        let gateway = node_name(network, index);
        let access = direction(network.access, 0.0);
        let _ = writeln!(
            text,
            "\n[link.{}]\nfrom = \"{gateway}\"\nto = \"{name}\"\nboth = {access}",
            access_name(index)
        );
    }
}

fn direction(medium: Medium, loss: f64) -> String {
    let Medium { rate, delay } = medium;
    let mut keys = format!("{{ rate = \"{rate}\", delay = \"{delay}\"");
    if loss > 0.0 {
        // One error of 1e-3 is 0.1 %: no digits of a binary fraction.
        let percent = (loss * 1e14).round() / 1e12;
        let _ = write!(keys, ", loss = {{ bernoulli = \"{percent} %\" }}");
    }
    keys + " }"
}

fn write_flows(
    text: &mut String,
    network: &Network,
    topology: &Object,
    options: &Options,
    poll: Duration,
) -> Result<(), ImportError> {
    let shortest = paths::shortest(network);
    for (index, substation) in network.substations.iter().enumerate() {
        let paths = if options.all_paths {
            paths::with_detours(network, index)
        } else {
            shortest[index].clone().into_iter().collect()
        };
        if paths.is_empty() {
            let message = format!("no path leads from the control centre to node {index}");
            return Err(topology.error("Node", &message, "add connections to the nodes"));
        }
        let size = RESPONSE_HEADERS + BYTES_PER_ELEMENT * substation.elements;
        let response = options.response.unwrap_or(Bytes::new(size));
        for (number, path) in paths.iter().enumerate() {
            let suffix = if number == 0 { String::new() } else { format!("-{}", path[1] + 1) };
            let name = &substation.name;
            let load = |size: Bytes| match options.external {
                true => "\"external\"".to_owned(),
                false => format!("{{ periodic = {{ size = \"{size}\", every = \"{poll}\" }} }}"),
            };
            let links = links(network, path, index);
            let (there, back) = (route(links.iter()), route(links.iter().rev()));
            let _ = write!(
                text,
                "\n[flow.poll-{name}{suffix}]\nfrom = \"control\"\nto = \"{name}\"\n\
                 load = {}\nroute = {there}\nreverse_route = {back}\n",
                load(options.request)
            );
            let _ = write!(
                text,
                "\n[flow.response-{name}{suffix}]\nfrom = \"{name}\"\nto = \"control\"\n\
                 load = {}\nroute = {back}\nreverse_route = {there}\n",
                load(response)
            );
        }
    }
    Ok(())
}

/// A list of links in TOML.
fn route<'a>(links: impl Iterator<Item = &'a String>) -> String {
    let quoted: Vec<_> = links.map(|link| format!("\"{link}\"")).collect();
    format!("[{}]", quoted.join(", "))
}

/// The links of a path, and that from the gateway to its substation.
fn links(network: &Network, path: &Path, gateway: usize) -> Vec<String> {
    let hops = path.windows(2).filter_map(|hop| network.link(hop[0], hop[1]));
    let names = hops.map(|link| link_name(network, link));
    names.chain([access_name(gateway)]).collect()
}

fn link_name(network: &Network, index: usize) -> String {
    let ends = network.links[index].ends.map(|end| node_name(network, end));
    format!("{}-{}", ends[0], ends[1])
}

fn access_name(gateway: usize) -> String {
    format!("access-{}", gateway + 1)
}

fn node_name(network: &Network, node: usize) -> String {
    if node == network.control {
        return "control".to_owned();
    }
    // Nodes beyond the control centre have no substation.
    let kind = if node < network.substations.len() { "gateway" } else { "node" };
    format!("{kind}-{}", node + 1)
}
