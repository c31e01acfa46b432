//! The network of a measurement.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use gridhaul_scenario::units::WindowSize;
use serde::{Deserialize, Serialize};

use super::Fingerprint;

/// Network between the ends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Place {
    /// The loopback device of this machine.
    #[default]
    ThisMachine,
    /// An emulated network on this machine.
    Emulated(EmulatedNetwork),
    /// The network to another machine, on which an agent receives the messages.
    Agent(AgentPlace),
}

/// An emulated network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EmulatedNetwork {
    /// Origin of the network.
    pub network: NetworkSource,
    /// Whether the messages pass from the `to` end of the flow to its `from` end: the downlink of
    /// the systems.
    #[serde(default)]
    pub reverse: bool,
    /// Congestion control of the TCP connections at both ends. Absent: that of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<CongestionControlAlgorithm>,
    /// Largest receive window at both ends; it limits the receive buffers. Absent: that of the
    /// scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<WindowSize>,
}

/// Origin of an emulated network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NetworkSource {
    /// A system by name: `ethernet`, `5g-ready`, `5g-prototype`, `private-lte`, `gprs`,
    /// `plc-narrowband` or `plc-broadband`.
    System(String),
    /// The network of a scenario.
    Scenario(ScenarioNetwork),
}

/// The network of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScenarioNetwork {
    /// Scenario file. A relative path begins at the folder of the file of the measurement.
    pub file: PathBuf,
    /// Flow between whose ends the messages pass. Absent: the first one. A broker is at its `to`
    /// end, the publisher at its `from` end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
}

/// Another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentPlace {
    /// Address and port of the control channel of `gridhaul measure agent`. The clocks are compared
    /// over this address.
    pub address: SocketAddr,
    /// Fingerprint of the key of the agent, which the agent prints at its start.
    pub fingerprint: Fingerprint,
    /// File with the token of the agent. Absent: the environment variable `GRIDHAUL_AGENT_TOKEN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Address of the agent on the network under test. Absent: that of the control channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_address: Option<IpAddr>,
    /// Interface of this machine through which `sv` and `goose` send frames to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Whether messages come back, so that there is a round-trip time; in `latency` and
    /// `reliability` only.
    #[serde(default = "yes")]
    pub echo: bool,
}

/// An end of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SubscriberEnd {
    /// The end of the publisher: messages pass the network twice.
    #[default]
    From,
    /// The end of the broker: messages pass the network once.
    To,
}

impl Place {
    /// The emulated network, if there is one.
    #[must_use]
    pub const fn emulated(&self) -> Option<&EmulatedNetwork> {
        match self {
            Self::Emulated(network) => Some(network),
            Self::ThisMachine | Self::Agent(_) => None,
        }
    }

    /// The other machine, if there is one.
    #[must_use]
    pub const fn agent(&self) -> Option<&AgentPlace> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::ThisMachine | Self::Emulated(_) => None,
        }
    }
}

impl EmulatedNetwork {
    /// The network of a system, from its `from` end to its `to` end.
    #[must_use]
    pub fn system(name: &str) -> Self {
        Self {
            network: NetworkSource::System(name.to_owned()),
            reverse: false,
            congestion_control: None,
            receive_window: None,
        }
    }
}

const fn yes() -> bool {
    true
}
