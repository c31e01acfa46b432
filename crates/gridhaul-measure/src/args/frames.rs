//! Arguments of Sampled Values and GOOSE.

use clap::{Args, ValueEnum};
use gridhaul_measure::measurement;
use gridhaul_scenario::units::Duration;

use super::value_parsers::packet_interval;

/// Data set of Sampled Values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataSetName {
    /// The bytes of the message
    Raw,
    /// 9-2LE with 80 samples in a cycle of 50 Hz: four currents and four voltages; messages of 32 B
    #[value(name = "9-2le")]
    LightEdition50,
    /// The same with 60 Hz
    #[value(name = "9-2le-60hz")]
    LightEdition60,
}

impl From<DataSetName> for measurement::DataSetName {
    fn from(name: DataSetName) -> Self {
        match name {
            DataSetName::Raw => Self::Raw,
            DataSetName::LightEdition50 => Self::LightEdition50,
            DataSetName::LightEdition60 => Self::LightEdition60,
        }
    }
}

/// Settings of Sampled Values and GOOSE.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sampled Values and GOOSE")]
pub(crate) struct FrameArgs {
    /// Data set of Sampled Values. That of 9-2LE is sent with --rate 4000 (50 Hz) or 4800 (60 Hz)
    #[arg(long, value_enum, default_value = "raw", conflicts_with = "bytes")]
    pub(crate) data_set: DataSetName,

    /// VLAN identifier of the frames; without it they have no tag
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(0..=4_094))]
    pub(crate) vlan: Option<u16>,

    /// Priority in the VLAN tag
    #[arg(
        long,
        default_value_t = 4,
        requires = "vlan",
        value_parser = clap::value_parser!(u8).range(0..=7)
    )]
    pub(crate) vlan_priority: u8,

    /// Time from an event of GOOSE to its first retransmission; each further interval is twice as
    /// long
    #[arg(long, default_value = "4 ms", value_parser = packet_interval)]
    pub(crate) retransmit_after: Duration,

    /// Longest interval between retransmissions of GOOSE
    #[arg(long, default_value = "1 s", value_parser = packet_interval)]
    pub(crate) retransmit_every: Duration,

    /// No retransmissions of GOOSE
    #[arg(long, conflicts_with_all = ["retransmit_after", "retransmit_every"])]
    pub(crate) no_retransmission: bool,
}
