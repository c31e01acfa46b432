//! Arguments of the network and of the load on it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gridhaul_measure::measurement::{self, EmulatedNetwork, NetworkSource, Place, ScenarioNetwork};
use gridhaul_scenario::units::BitRate;

use super::value_parsers::bit_rate;

/// An end of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SubscriberEnd {
    /// The end of the publisher: messages pass the network twice
    From,
    /// The end of the broker: messages pass the network once
    To,
}

/// The network of a measurement.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// Scenario file whose network is emulated; without it the messages stay on this machine
    #[arg(long, value_name = "FILE", conflicts_with = "system")]
    pub(crate) scenario: Option<PathBuf>,

    /// Emulated network by name: ethernet, 5g-ready, 5g-prototype, private-lte, gprs,
    /// plc-narrowband or plc-broadband
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,

    /// Flow of the scenario between whose ends the messages pass; the first one by default. A
    /// broker is at its `to` end, publisher and subscriber are at its `from` end
    #[arg(long, value_name = "NAME", requires = "scenario")]
    pub(crate) flow: Option<String>,

    /// Send the messages from the `to` end of the flow to its `from` end: the downlink of the
    /// systems
    #[arg(long)]
    pub(crate) reverse: bool,

    /// End of the subscriber of a protocol with a broker
    #[arg(long, value_enum, default_value = "from")]
    pub(crate) subscriber: SubscriberEnd,
}

impl PlaceArgs {
    /// Whether the network is emulated.
    pub(crate) const fn is_emulated(&self) -> bool {
        self.scenario.is_some() || self.system.is_some()
    }

    /// The network of a command that measures no protocol.
    pub(crate) fn place(&self) -> Place {
        let network = match (&self.scenario, &self.system) {
            (Some(file), _) => {
                let (file, flow) = (file.clone(), self.flow.clone());
                NetworkSource::Scenario(ScenarioNetwork { file, flow })
            }
            (None, Some(name)) => NetworkSource::System(name.clone()),
            (None, None) => return Place::ThisMachine,
        };
        let reverse = self.reverse;
        let (congestion_control, receive_window) = (None, None);
        Place::Emulated(EmulatedNetwork { network, reverse, congestion_control, receive_window })
    }
}

/// A background load on the links of an emulated network.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cross traffic")]
pub(crate) struct CrossTrafficArgs {
    /// Mean rate of packets of other applications from the `from` end to the `to` end, such as "8
    /// Mbit/s". They are a Poisson process
    #[arg(long, value_name = "RATE", value_parser = bit_rate)]
    pub(crate) cross_traffic: Option<BitRate>,

    /// Mean rate of such packets from the `to` end to the `from` end
    #[arg(long, value_name = "RATE", value_parser = bit_rate)]
    pub(crate) cross_traffic_reverse: Option<BitRate>,

    /// Bytes of such a packet, with the headers of IP and UDP, or of Ethernet for `sv` and `goose`
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1_200,
        value_parser = clap::value_parser!(u16).range(60..=1_500)
    )]
    pub(crate) cross_traffic_bytes: u16,
}

impl From<SubscriberEnd> for measurement::SubscriberEnd {
    fn from(end: SubscriberEnd) -> Self {
        match end {
            SubscriberEnd::From => Self::From,
            SubscriberEnd::To => Self::To,
        }
    }
}
