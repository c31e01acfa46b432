//! Arguments of `emu`.

use std::path::PathBuf;

use crate::Setting;
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Args, Subcommand};
use gridhaul_scenario::scenario::{NAME_RULE, Scenario};

use super::exit_codes::EXIT_CODES;

/// Commands of `emu`.
#[derive(Debug, Subcommand)]
pub(crate) enum EmuCommand {
    /// Build the network and keep it up until Ctrl-C
    ///
    /// Each node becomes a named network namespace (`ip netns exec`), each link a pair of devices
    /// with an emulated link between them. Programs in the namespaces reach each other at the
    /// printed addresses where a route exists, and their packets pass the links of the scenario. If
    /// the scenario has a sweep, its first point is used. Nothing is recorded.
    Up(EmuUpArgs),
    /// Remove the namespaces of killed runs
    Clean,
}

/// Arguments of `emu up`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES, args = options_of_run())]
pub(crate) struct EmuUpArgs {
    /// Scenario file (TOML); '-' reads standard input
    pub(crate) file: PathBuf,
    /// Prefix of the namespace names
    #[arg(long, value_name = "NAME", default_value = "gh", value_parser = prefix)]
    pub(crate) prefix: String,
    /// Random seed of the links
    #[arg(long, value_name = "N", help_heading = "Changes to the scenario")]
    pub(crate) seed: Option<u64>,
    /// Set a key, such as 'link.uplink.forward.rate=3 Mbit/s'; repeatable
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Changes to the scenario")]
    pub(crate) set: Vec<Setting>,
}

/// Options of `run` that do not apply to `emu up`: each is rejected with an alternative.
fn options_of_run() -> [Arg; 4] {
    let alternatives = [
        (
            "pcap",
            "LINK",
            "capture in a namespace, such as 'ip netns exec gh-a tcpdump -i any -w a.pcap', or use \
             'run --on emu --pcap'",
        ),
        (
            "events",
            "FLOW",
            "inspect connections in a namespace, such as 'ip netns exec gh-a ss -ti', or use \
             'run --on emu --events'",
        ),
        (
            "series",
            "INTERVAL",
            "inspect connections in a namespace, such as 'ip netns exec gh-a ss -ti', or use \
             'run --on emu --series'",
        ),
        ("replications", "N", "the network is built once; use 'run --on emu --replications'"),
    ];
    alternatives.map(|(name, value, text)| {
        let rejection = UnknownArgumentValueParser::suggest(text);
        Arg::new(name).long(name).value_name(value).value_parser(rejection).hide(true)
    })
}

/// Parses a prefix of names in `/run/netns`. The rule for node names applies, and a leading `-` is
/// rejected, since `ip` would read it as an option. The maximum length depends on the node names.
fn prefix(text: &str) -> Result<String, String> {
    if !Scenario::is_name(text) {
        return Err(NAME_RULE.to_owned());
    }
    if text.starts_with('-') {
        return Err(format!("{NAME_RULE}, but no leading `-`: `ip` would read it as an option"));
    }
    Ok(text.to_owned())
}
