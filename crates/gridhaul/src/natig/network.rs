//! Nodes and links of a topology.

use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::{BitRate, Duration};

use super::ImportError;
use super::json::Object;

/// The network of a topology.
#[derive(Debug)]
pub(super) struct Network {
    /// Index of the control centre among the nodes.
    pub(super) control: usize,
    /// Number of nodes, without the substations.
    pub(super) nodes: usize,
    pub(super) links: Vec<Link>,
    /// The substations; each has a gateway, the node of the same index.
    pub(super) substations: Vec<Substation>,
    /// The links from gateways to substations.
    pub(super) access: Medium,
}

/// A link between two nodes, the first with the smaller index.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) ends: [usize; 2],
    pub(super) medium: Medium,
    /// Loss of packets that arrive at each end.
    pub(super) loss: [f64; 2],
}

/// Rate and delay of a link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Medium {
    pub(super) rate: BitRate,
    pub(super) delay: Duration,
}

/// A substation, with the elements of the power grid that report.
#[derive(Debug)]
pub(super) struct Substation {
    pub(super) name: String,
    pub(super) elements: u64,
}

impl Network {
    pub(super) fn new(topology: &Object, grid: Option<&Object>) -> Result<Self, ImportError> {
        let nodes = topology.list("Node")?;
        if nodes.len() < 2 {
            let help = "list the control centre, and a gateway for each substation";
            return Err(topology.error("Node", "expected at least two nodes", help));
        }
        let channel = topology.first("Channel")?;
        let access = point_to_point(&channel)?;
        let mut network = Self {
            control: 0,
            nodes: nodes.len(),
            links: Vec::new(),
            substations: Vec::new(),
            access,
        };
        let mut errors = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            network.add_links(index, node, medium(&channel, node)?)?;
            errors.push(error_of(node)?);
        }
        for link in &mut network.links {
            link.loss = link.ends.map(|end| errors[end]);
        }
        network.add_substations(topology, grid)?;
        Ok(network)
    }

    /// The link between two nodes.
    pub(super) fn link(&self, from: usize, to: usize) -> Option<usize> {
        let ends = [from.min(to), from.max(to)];
        self.links.iter().position(|link| link.ends == ends)
    }

    /// Adds the connections of a node. A connection that both nodes list is one link.
    fn add_links(
        &mut self,
        index: usize,
        node: &Object,
        medium: Medium,
    ) -> Result<(), ImportError> {
        let number: usize = node.value("name", "the number of the node", index)?;
        if number != index {
            let help = "number the nodes in the order of the list, from 0";
            return Err(node.error("name", &format!("expected {index}, found {number}"), help));
        }
        for peer in node.numbers("connections")? {
            if peer >= self.nodes || peer == index {
                let message = format!("node {index} cannot be connected to node {peer}");
                let help = format!("name another node, from 0 to {}", self.nodes - 1);
                return Err(node.error("connections", &message, &help));
            }
            if self.link(index, peer).is_none() {
                let ends = [index.min(peer), index.max(peer)];
                self.links.push(Link { ends, medium, loss: [0.0; 2] });
            }
        }
        Ok(())
    }

    /// The substations of `grid.json`, or one for each node but the last. As in NATIG, the node
    /// after the gateways is the control centre.
    fn add_substations(
        &mut self,
        topology: &Object,
        grid: Option<&Object>,
    ) -> Result<(), ImportError> {
        if let Some(grid) = grid {
            for microgrid in grid.list("microgrid")? {
                let name: String = microgrid.required("name", "a name")?;
                // GridLAB-D permits further characters in names.
                let name =
                    name.replace(|c: char| !Scenario::is_name(c.encode_utf8(&mut [0; 4])), "_");
                let elements = microgrid.listed_items();
                self.substations.push(Substation { name, elements });
            }
            if self.substations.is_empty() || self.substations.len() >= self.nodes {
                let message = format!(
                    "expected from 1 to {} substations, one for each gateway, found {}",
                    self.nodes - 1,
                    self.substations.len()
                );
                let help = "use the topology.json and grid.json of one folder of NATIG";
                return Err(grid.error("microgrid", &message, help));
            }
        } else {
            let names = (1..self.nodes).map(|number| format!("SS_{number}"));
            let substation = |name| Substation { name, elements: 100 };
            self.substations = names.map(substation).collect();
        }
        self.control = self.substations.len();
        let connected = |end: &Link| end.ends.contains(&self.control);
        if !self.links.iter().any(connected) {
            let message =
                format!("no node is connected to node {}, the control centre", self.control);
            return Err(topology.error("Node", &message, "add a connection to this node"));
        }
        Ok(())
    }
}

/// Loss of packets that arrive at a node.
fn error_of(node: &Object) -> Result<f64, ImportError> {
    let error: f64 = node.value("error", "a probability such as \"0.001\"", 0.0)?;
    if !(0.0..1.0).contains(&error) {
        let help = "give the share of packets that are lost";
        return Err(node.error("error", "expected a probability below 1", help));
    }
    Ok(error)
}

/// Links of a node: CSMA, Wi-Fi or point to point.
fn medium(channel: &Object, node: &Object) -> Result<Medium, ImportError> {
    let wired = point_to_point(channel)?;
    let uses = |key: &str| Ok(node.value(key, "0 or 1", 0)? == 1);
    if uses("UseCSMA")? {
        // NATIG gives no rate of these channels, only their delay, in nanoseconds.
        let nanos: u64 = channel.value("CSMAdelay", "nanoseconds", 0)?;
        return Ok(Medium { delay: Duration::from_nanos(nanos), ..wired });
    }
    if uses("UseWifi")? {
        let name: String = channel.required("WifiRate", "a rate such as \"DsssRate1Mbps\"")?;
        let digits: String = name
            .trim_end_matches("Mbps")
            .chars()
            .skip_while(|character| !character.is_ascii_digit())
            .map(|character| if character == '_' { '.' } else { character })
            .collect();
        let rate = format!("{digits} Mbit/s").parse().map_err(|_| {
            let message = format!("expected a rate such as \"DsssRate1Mbps\", found {name:?}");
            channel.error("WifiRate", &message, "name a rate of ns-3 with Mbps")
        })?;
        return Ok(Medium { rate, delay: Duration::ZERO });
    }
    Ok(wired)
}

fn point_to_point(channel: &Object) -> Result<Medium, ImportError> {
    let text: String = channel.value("P2PRate", "a rate such as \"60Mb/s\"", "5Mbps".to_owned())?;
    // ns-3 writes "60Mb/s" and "60Mbps".
    let bits = text.replace("bps", "bit/s").replace("b/s", "bit/s");
    let rate = spaced(&bits).parse().map_err(|_| {
        let message = format!("expected a rate such as \"60Mb/s\", found {text:?}");
        channel.error("P2PRate", &message, "write it as ns-3 does, with b/s or bps")
    })?;
    let text: String = channel.value("P2PDelay", "a time such as \"2ms\"", "0ms".to_owned())?;
    let delay = spaced(&text).parse().map_err(|_| {
        let message = format!("expected a time such as \"2ms\", found {text:?}");
        channel.error("P2PDelay", &message, "write it as ns-3 does, with ns, us, ms or s")
    })?;
    Ok(Medium { rate, delay })
}

/// A quantity with a space before its unit, as scenarios have them.
fn spaced(text: &str) -> String {
    let is_number = |character: char| character.is_ascii_digit() || character == '.';
    let unit = text.find(|character| !is_number(character)).unwrap_or(text.len());
    format!("{} {}", &text[..unit], text[unit..].trim())
}
