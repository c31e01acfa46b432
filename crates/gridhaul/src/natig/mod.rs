//! Import of the configuration of NATIG, a co-simulation of power grids and networks with ns-3
//! (`topology.json` and `grid.json`), as a scenario.
//!
//! The network is that of its wired topologies: a control centre, a gateway for each substation,
//! links between them, and a link from each gateway to its substation. Over TCP, the control centre
//! polls each substation, which responds.

mod json;
mod network;
mod paths;
mod scenario;

use gridhaul_scenario::units::{Bytes, Duration};

pub use crate::import::{File, ImportError};

use json::Object;
use network::Network;

/// Options of the import.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time between two polls of a substation; `None`: `PollReqFreq` of `grid.json`.
    pub poll: Option<Duration>,
    /// Simulated time; `None`: `SimTime` of `grid.json`.
    pub duration: Option<Duration>,
    /// Size of a poll.
    pub request: Bytes,
    /// Size of a response; `None`: from the number of elements of the substation in `grid.json`.
    pub response: Option<Bytes>,
    /// Whether a substation is polled over each path of at most one further gateway, instead of
    /// the shortest path only.
    pub all_paths: bool,
    /// Whether another program sends the polls and responses: flows of load `external`.
    pub external: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            poll: None,
            duration: None,
            request: Bytes::new(20),
            response: None,
            all_paths: false,
            external: false,
        }
    }
}

/// The scenario of a configuration, as TOML.
///
/// # Errors
/// A file that is not JSON, a missing or invalid key, a link to a node that does not exist, a node
/// without a path to the control centre.
pub fn import(
    topology: File<'_>,
    grid: Option<File<'_>>,
    options: &Options,
) -> Result<String, ImportError> {
    let topology = Object::parse(topology)?;
    let grid = grid.map(Object::parse).transpose()?;
    let network = Network::new(&topology, grid.as_ref())?;
    scenario::write(&network, &topology, grid.as_ref(), options)
}
