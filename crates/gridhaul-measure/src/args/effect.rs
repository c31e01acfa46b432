//! Options without an effect on a measurement, and values that contradict each other. Without these
//! checks, a comparison of `--qos 0` with `--qos 1` over AMQP would compare two equal runs.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, ValueEnum};
use gridhaul_scenario::scenario::Diagnostic;

use super::fill::{Options, ReadOptions, options};
use super::keys::option_of;
use super::{Cli, Command, FailingPart, ProtocolArgs, ProtocolName, RemoteArgs};

/// A network for which a system is named, so that options of emulated networks are read.
const ANY_SYSTEM: &str = "ethernet";

/// Circumstances under which an option may have an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Circumstances {
    /// Those of the command line.
    Given,
    /// On one machine.
    OneMachine,
    /// Over an emulated network.
    Emulated,
}

impl Command {
    /// The measurement that the options mean; `None` for a command that measures no protocol.
    ///
    /// # Errors
    /// An option on the command line has no effect, or values contradict each other.
    pub(crate) fn options(&self, matches: &ArgMatches) -> anyhow::Result<Option<Options>> {
        let Some(found) = self.unchecked_options(matches)? else { return Ok(None) };
        match found.measurement.diagnostics().first() {
            Some(diagnostic) => Err(in_terms_of_options(diagnostic)),
            None => Ok(Some(found)),
        }
    }

    /// The same without a check whether values contradict each other.
    ///
    /// # Errors
    /// An option on the command line has no effect.
    pub(crate) fn unchecked_options(
        &self,
        matches: &ArgMatches,
    ) -> anyhow::Result<Option<Options>> {
        let read = ReadOptions::default();
        let Some(found) = options(self, &read) else { return Ok(None) };
        match given(matches).iter().find(|option| !read.contains(option)) {
            Some(option) => Err(self.without_effect(option)),
            None => Ok(Some(found)),
        }
    }

    /// Why an option has no effect.
    fn without_effect(&self, option: &str) -> anyhow::Error {
        let name = option.replace('_', "-");
        let error = |with: &str, remedy: &str| {
            anyhow!("--{name} has no effect with {with}\n  help: {remedy}")
        };
        let mut own = self.clone();
        let Some((common, remote)) = own.measured() else { return anyhow!("--{name}: no effect") };
        if let Self::Outage(args) = self
            && args.part() == FailingPart::Observed
            && option == "start"
        {
            return error("--of observed", "interrupt the network when you want");
        }
        let has_agent = remote.agent.is_some();
        for circumstances in
            [Circumstances::Given, Circumstances::OneMachine, Circumstances::Emulated]
        {
            let command = self.at(circumstances);
            if command.reads(option) {
                return if has_agent {
                    error("--agent", "leave it out, or measure on one machine")
                } else {
                    anyhow!(
                        "--{name} needs an emulated network\n  help: add --scenario FILE or \
                         --system NAME"
                    )
                };
            }
            let reads = |protocol: &&ProtocolName| command.with(**protocol).reads(option);
            let protocols: Vec<_> = ProtocolName::value_variants().iter().filter(reads).collect();
            if !protocols.is_empty() {
                let names: Vec<_> = protocols.iter().map(|protocol| protocol.name()).collect();
                let remedy = format!("leave it out; it is an option of {}", names.join(", "));
                return error(&common.protocol.name(), &remedy);
            }
        }
        error("outage", "leave it out; latency and reliability judge classes")
    }

    /// Whether a measurement with these options reads this one.
    fn reads(&self, option: &str) -> bool {
        let read = ReadOptions::default();
        options(self, &read).is_some() && read.contains(option)
    }

    /// The same command under other circumstances.
    fn at(&self, circumstances: Circumstances) -> Self {
        let mut command = self.clone();
        if let Some((common, remote)) = command.measured() {
            if circumstances != Circumstances::Given {
                remote.agent = None;
            }
            if circumstances == Circumstances::Emulated {
                common.place.system = Some(ANY_SYSTEM.to_owned());
            }
        }
        command
    }

    /// The same command with another protocol.
    pub(crate) fn with(&self, protocol: ProtocolName) -> Self {
        let mut command = self.clone();
        if let Some((common, _)) = command.measured() {
            common.protocol = protocol;
        }
        command
    }

    /// The same command over another emulated network.
    pub(crate) fn over(&self, scenario: Option<PathBuf>, system: Option<String>) -> Self {
        let mut command = self.clone();
        if let Some((common, _)) = command.measured() {
            common.place.scenario = scenario.or(common.place.scenario.take());
            common.place.system = system.or(common.place.system.take());
        }
        command
    }

    /// The options of a measurement, and those of the other machine; `None` for a command that
    /// measures no protocol.
    const fn measured(&mut self) -> Option<(&mut ProtocolArgs, &mut RemoteArgs)> {
        match self {
            Self::Latency(args) | Self::Reliability(args) => {
                Some((&mut args.run.common, &mut args.remote))
            }
            Self::Outage(args) => Some((&mut args.run.common, &mut args.remote)),
            Self::Rate(args) => Some((&mut args.common, &mut args.remote)),
            Self::Agent(_)
            | Self::Corruption(_)
            | Self::Efficiency(_)
            | Self::Matrix(_)
            | Self::Reserve(_)
            | Self::Run(_)
            | Self::PackageFiles(_)
            | Self::Sync(_) => None,
        }
    }
}

/// Identifiers of the options on the command line of the subcommand.
pub(crate) fn given(matches: &ArgMatches) -> Vec<String> {
    let Some((name, given)) = matches.subcommand() else { return Vec::new() };
    let program = Cli::command();
    let known = program.find_subcommand(name).map(clap::Command::get_arguments);
    let identifiers = known.into_iter().flatten().map(|argument| argument.get_id().as_str());
    let is_given = |option: &&str| given.value_source(option) == Some(ValueSource::CommandLine);
    // The options `help` and `version` have no values.
    let own = identifiers.filter(|option| given.ids().any(|id| id == option));
    own.filter(is_given).map(str::to_owned).collect()
}

/// A finding about a measurement with the option in the place of the key.
pub(crate) fn in_terms_of_options(diagnostic: &Diagnostic) -> anyhow::Error {
    let Diagnostic { key, message, remedy, .. } = diagnostic;
    let remedy = if remedy.is_empty() { String::new() } else { format!("\n  help: {remedy}") };
    anyhow!("{}: {message}{remedy}", option_of(key))
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;
    use gridhaul_measure::experiment::reserve;

    use super::*;

    fn parsed(words: &str) -> anyhow::Result<Options> {
        let matches = Cli::command().try_get_matches_from(words.split(' '))?;
        let command = Cli::from_arg_matches(&matches)?.command;
        Ok(command.options(&matches)?.expect("the command measures a protocol"))
    }

    /// The commands are keys of results that are kept: each must mean its measurement for ever.
    #[test]
    fn the_commands_of_the_paper_mean_its_measurements() {
        for quick in [true, false] {
            let planned = reserve::planned(quick);
            assert!(planned.len() > 15);
            for reserve::Planned { command, measurement } in planned {
                let words = format!("{} --no-floor", command.trim_start_matches("gridhaul "));
                let expected = parsed(&words).unwrap().measurement;
                // UDP and Sampled Values have no subscriber whose end could be chosen.
                assert_eq!(measurement, expected, "{command}");
            }
        }
    }

    #[test]
    fn every_option_has_a_protocol_to_which_it_applies() {
        let program = Cli::command();
        let latency = program.find_subcommand("latency").unwrap();
        let command = Cli::from_arg_matches(
            &Cli::command().try_get_matches_from(["measure", "latency", "udp"]).unwrap(),
        );
        let command = command.unwrap().command;
        let agent = [
            "measure",
            "latency",
            "udp",
            "--agent",
            "127.0.0.1:1",
            "--fingerprint",
            "sha256:0000000000000000000000000000000000000000000000000000000000000000",
        ];
        let agent = Cli::from_arg_matches(&Cli::command().try_get_matches_from(agent).unwrap());
        let agent = agent.unwrap().command;
        let scenario = ["measure", "latency", "udp", "--scenario", "a.toml"];
        let scenario =
            Cli::from_arg_matches(&Cli::command().try_get_matches_from(scenario).unwrap());
        let commands = [command.at(Circumstances::Emulated), agent, scenario.unwrap().command];
        for argument in latency.get_arguments().map(|argument| argument.get_id().as_str()) {
            let reads = |protocol: &ProtocolName| {
                commands.iter().any(|command| command.with(*protocol).reads(argument))
            };
            let is_read = ProtocolName::value_variants().iter().any(reads);
            assert!(is_read || ["help", "version"].contains(&argument), "{argument}");
        }
    }
}
