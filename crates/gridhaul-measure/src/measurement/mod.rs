//! A measurement as a value: protocol, network, messages and experiment. A file of
//! `gridhaul measure run` is this value in TOML, and the options of the other commands fill it.

mod broker_url;
mod check;
mod connection;
mod draft;
mod experiment;
mod file;
mod fingerprint;
mod frames;
pub mod limits;
mod place;
mod protocol;
mod protocol_settings;
#[cfg(feature = "schema")]
pub mod reference;
#[cfg(test)]
mod reference_tests;

use gridhaul_scenario::units::Duration;
use serde::{Deserialize, Serialize};

pub use broker_url::BrokerUrl;
pub(crate) use connection::RequestedBroker;
pub use connection::{
    BrokerConnection, BrokerSource, DirectConnection, GivenBroker, MqttBrokerSource, Nodelay,
    Reconnect, StartedBroker,
};
pub use draft::{Draft, Key};
pub use experiment::{
    BrokerOutage, Capture, ConstantRate, CrossTrafficSettings, Disturbance, Experiment, LinkOutage,
    ObservedOutage, OutageExperiment, RateExperiment, Record, ScheduleSettings,
};
pub(crate) use fingerprint::BYTES as FINGERPRINT_BYTES;
pub use fingerprint::Fingerprint;
pub use frames::{DataSetName, DoublingIntervals, GooseRetransmission, VlanTag};
pub use place::{
    AgentPlace, EmulatedNetwork, NetworkSource, Place, ScenarioNetwork, SubscriberEnd,
};
pub use protocol::ProtocolUnderTest;
pub use protocol_settings::{
    Amqp10Settings, Amqp091Settings, Dnp3Settings, GooseSettings, Iec104Settings, Mqtt5Settings,
    MqttSettings, NullSettings, SampledValuesSettings, StreamSettings, UdpSettings, XmppSettings,
};

/// A measurement of a protocol, message by message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Measured quantity, and the rate and number of the messages.
    pub experiment: Experiment,
    /// Protocol under test, with its settings.
    pub protocol: ProtocolUnderTest,
    /// Network between the ends. Absent: the messages stay on this machine.
    #[serde(default)]
    pub place: Place,
    /// A message.
    #[serde(default)]
    pub message: MessageSettings,
    /// Thread that sends the messages.
    #[serde(default)]
    pub generator: GeneratorSettings,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MessageSettings {
    /// Bytes of a message, with a header of 16 B. The data set 9-2LE of Sampled Values has 32 B,
    /// whatever this key states.
    #[serde(default = "default_bytes")]
    pub bytes: usize,
    /// Time after which a message is lost. An outage adds twice its length.
    #[serde(default = "default_horizon")]
    pub horizon: Duration,
}

impl Default for MessageSettings {
    fn default() -> Self {
        Self { bytes: default_bytes(), horizon: default_horizon() }
    }
}

/// The thread that sends the messages, and the processors of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GeneratorSettings {
    /// Processor on which the messages are sent, from 0. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<usize>,
    /// Whether processors enter idle states from which they wake up late. Otherwise they are kept
    /// awake during the run if the program may write to `/dev/cpu_dma_latency`, as root.
    #[serde(default)]
    pub idle_states: bool,
}

const fn default_bytes() -> usize {
    132
}

const fn default_horizon() -> Duration {
    Duration::from_secs(5)
}

impl Measurement {
    /// A measurement on this machine with default settings.
    #[must_use]
    pub fn new(experiment: Experiment, protocol: ProtocolUnderTest) -> Self {
        Self {
            experiment,
            protocol,
            place: Place::ThisMachine,
            message: MessageSettings::default(),
            generator: GeneratorSettings::default(),
        }
    }

    /// Bytes of a message.
    #[must_use]
    pub fn message_bytes(&self) -> usize {
        self.protocol.fixed_bytes().unwrap_or(self.message.bytes)
    }
}
