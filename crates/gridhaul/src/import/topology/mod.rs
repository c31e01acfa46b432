//! Import of topologies: GraphML (NetworkX, yEd, Internet Topology Zoo) and node-link JSON
//! (NetworkX).

mod graphml;
mod node_link;
mod scenario;

use std::collections::BTreeMap;

use gridhaul_scenario::units::{BitRate, Bytes, Duration};

use super::{File, ImportError};

/// Values that the topology does not contain.
#[derive(Debug, Clone)]
pub struct Options {
    /// Rate of links without one.
    pub rate: BitRate,
    /// Delay of links without one.
    pub delay: Duration,
    /// Unit of rates without one, such as "Mbit/s"; `None`: they are an error.
    pub rate_unit: Option<String>,
    /// Unit of delays without one, such as "ms"; `None`: they are an error.
    pub delay_unit: Option<String>,
    /// The node to which all others send; `None`: the one with the most links.
    pub centre: Option<String>,
    /// Size of a message.
    pub size: Bytes,
    /// Time between two messages of a node.
    pub every: Duration,
}

/// A topology as it is in a file.
#[derive(Debug, Default)]
struct Graph {
    /// Identifiers in the order of the file.
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

#[derive(Debug)]
struct Node {
    id: String,
    attributes: Attributes,
}

#[derive(Debug)]
struct Edge {
    source: String,
    target: String,
    attributes: Attributes,
    /// Its place in the file, for errors.
    place: String,
}

/// Attributes by their name in lower case.
type Attributes = BTreeMap<String, String>;

/// The scenario of a topology, as TOML. The format is that of the contents.
///
/// # Errors
/// A file of another format, a link to a node that does not exist, or a value without a unit.
pub fn import(file: File<'_>, options: &Options) -> Result<String, ImportError> {
    let start = file.text.trim_start();
    let graph = if start.starts_with('<') {
        graphml::read(file)?
    } else if start.starts_with('{') {
        node_link::read(file)?
    } else {
        let message = "expected GraphML or node-link JSON";
        let help = "write it with networkx: nx.write_graphml(graph, file)";
        return Err(file.error("the file", message, help));
    };
    scenario::write(file, &graph, options)
}
