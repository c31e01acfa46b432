//! Arguments of Sampled Values and GOOSE.

use clap::Args;
use gridhaul_scenario::units::Duration;

use super::value_parsers::packet_interval;

/// Settings of Sampled Values and GOOSE.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sampled Values and GOOSE")]
pub(crate) struct FrameArgs {
    /// VLAN identifier of the frames; without it they have no tag
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(0..=4_094))]
    pub(crate) vlan: Option<u16>,

    /// Priority in the VLAN tag
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) vlan_priority: u8,

    /// Time from an event of GOOSE to its first retransmission; each further interval is twice as long
    #[arg(long, default_value = "4 ms", value_parser = packet_interval)]
    pub(crate) retransmit_after: Duration,

    /// Longest interval between retransmissions of GOOSE
    #[arg(long, default_value = "1 s", value_parser = packet_interval)]
    pub(crate) retransmit_every: Duration,

    /// No retransmissions of GOOSE
    #[arg(long)]
    pub(crate) no_retransmission: bool,
}
