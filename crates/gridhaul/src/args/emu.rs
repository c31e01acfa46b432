//! Arguments of `emu`.

use std::path::PathBuf;

use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Args, Subcommand};
use gridhaul::Setting;
use gridhaul_scenario::scenario::{NAME_RULE, Scenario};

use crate::command::error::EXIT_CODES;

/// What `emu` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum EmuCommand {
    /// Make the network and let it stand until Ctrl-C
    ///
    /// Each node becomes a network namespace that `ip netns exec` knows, each link two devices with
    /// an emulated link between them. Programs reach each other at the addresses that are printed, as
    /// far as links lead there; whatever they send passes the links of the scenario. With a sweep, its
    /// first point. Nothing is recorded.
    Up(EmuUpArgs),
    /// Remove the namespaces that killed runs have left
    Clean,
}

/// Arguments of `emu up`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES, args = changes_of_runs())]
pub(crate) struct EmuUpArgs {
    /// Scenario file (TOML); '-' is standard input
    pub(crate) file: PathBuf,
    /// What the names of the namespaces begin with
    #[arg(long, value_name = "NAME", default_value = "gh", value_parser = prefix)]
    pub(crate) prefix: String,
    /// Seed of all chance on the links
    #[arg(long, value_name = "N", help_heading = "Changes to the scenario")]
    pub(crate) seed: Option<u64>,
    /// Set a key, as in 'link.uplink.forward.rate=3 Mbit/s'; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Changes to the scenario")]
    pub(crate) set: Vec<Setting>,
}

/// Changes that `run` knows and a network that stands has no use for: each is refused with what does
/// it there.
fn changes_of_runs() -> [Arg; 3] {
    let instead = [
        (
            "pcap",
            "LINK",
            "capture in a namespace, such as 'ip netns exec gh-a tcpdump -i any -w a.pcap', or use \
             'run --on emu --pcap'",
        ),
        (
            "series",
            "INTERVAL",
            "look at connections in a namespace, such as 'ip netns exec gh-a ss -ti', or use \
             'run --on emu --series'",
        ),
        ("replications", "N", "the network stands once; use 'run --on emu --replications'"),
    ];
    instead.map(|(name, value, text)| {
        let refusal = UnknownArgumentValueParser::suggest(text);
        Arg::new(name).long(name).value_name(value).value_parser(refusal).hide(true)
    })
}

/// What can be the beginning of names in `/run/netns`: by the rule for nodes, but `ip` takes what begins
/// with `-` for an option. How long it may be depends on the nodes.
fn prefix(text: &str) -> Result<String, String> {
    if !Scenario::is_name(text) {
        return Err(NAME_RULE.to_owned());
    }
    if text.starts_with('-') {
        return Err(format!(
            "{NAME_RULE}, but no `-` at the beginning: `ip` reads an option there"
        ));
    }
    Ok(text.to_owned())
}
