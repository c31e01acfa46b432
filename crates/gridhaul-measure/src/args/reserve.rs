//! Arguments of `reserve`.

use clap::{Args, ValueEnum};
use gridhaul_measure::experiment::reserve;

use super::OutputArgs;
use super::exit_codes::EXIT_CODES;

/// A part of the report RESERVE D4.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReservePart {
    /// Test 8: packets and bytes, Tables 4 and 5
    Efficiency,
    /// Figures 6, 7, 8 and 10
    Latency,
    /// Tests 4 and 5
    Outages,
}

impl From<ReservePart> for reserve::ReservePart {
    fn from(part: ReservePart) -> Self {
        match part {
            ReservePart::Efficiency => Self::Efficiency,
            ReservePart::Latency => Self::Latency,
            ReservePart::Outages => Self::Outages,
        }
    }
}

/// Arguments of `reserve`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ReserveArgs {
    /// Fewer rates, sizes and messages, and AMQP on one system only: about three minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// Discard the measurements of an earlier command in the folder of --out
    #[arg(long)]
    pub(crate) force: bool,

    /// Measure only this part of the report; may be repeated
    #[arg(long, value_enum, value_name = "PART")]
    pub(crate) part: Vec<ReservePart>,

    /// Measure the latency on this system only; may be repeated
    #[arg(long, value_name = "NAME", value_parser = ["ethernet", "5g-prototype", "5g-ready"])]
    pub(crate) system: Vec<String>,

    /// Repetitions of each measurement of the latency; fewer than 6 have no interval and decide
    /// nothing [default: 6]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repetitions: Option<u32>,

    /// Where the results go.
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
