//! Options that have an effect only with some protocols, or only on one machine. Without this check, a comparison of `--qos 0` with
//! `--qos 1` over AMQP would compare two equal runs.

use clap::parser::ValueSource;
use clap::{ArgMatches, ValueEnum};

use super::{Command, FailingPart, ProtocolArgs, ProtocolName};

/// The name of an option in the command's arguments, and the protocols that it applies to.
type Limited = (&'static str, fn(ProtocolName) -> bool);

const LIMITED: [Limited; 28] = [
    ("broker", ProtocolName::has_broker),
    ("tls", ProtocolName::has_broker),
    ("ca", ProtocolName::has_broker),
    ("data_set", |protocol| protocol == ProtocolName::Sv),
    ("connections", ProtocolName::has_broker),
    ("keep_alive", ProtocolName::has_broker),
    ("nodelay", is_stream),
    ("congestion_control", is_stream),
    ("receive_window", is_stream),
    ("reconnect_after", is_stream),
    ("no_reconnect", is_stream),
    ("broker_program", |protocol| protocol == ProtocolName::Mqtt),
    ("queue", is_stream),
    ("port", |protocol| is_stream(protocol) && !protocol.has_broker()),
    ("qos", |protocol| matches!(protocol, ProtocolName::Mqtt | ProtocolName::Mqtt5)),
    ("prefetch", |protocol| matches!(protocol, ProtocolName::Amqp091 | ProtocolName::Amqp10)),
    ("persistent", |protocol| protocol == ProtocolName::Amqp091),
    ("unsettled", |protocol| protocol == ProtocolName::Amqp10),
    ("node", |protocol| protocol == ProtocolName::Amqp10),
    ("k", |protocol| protocol == ProtocolName::Iec104),
    ("w", |protocol| protocol == ProtocolName::Iec104),
    ("poll", |protocol| protocol == ProtocolName::Dnp3),
    ("interface", has_frames),
    ("vlan", has_frames),
    ("vlan_priority", has_frames),
    ("retransmit_after", |protocol| protocol == ProtocolName::Goose),
    ("retransmit_every", |protocol| protocol == ProtocolName::Goose),
    ("no_retransmission", |protocol| protocol == ProtocolName::Goose),
];

/// Options of runs on one machine: with an agent, the network is that between both machines.
const ONE_MACHINE: [&str; 17] = [
    "scenario",
    "system",
    "flow",
    "reverse",
    "subscriber",
    "connections",
    "congestion_control",
    "receive_window",
    "network_share",
    "capture",
    "kernel_times",
    "predict",
    "cross_traffic",
    "cross_traffic_reverse",
    "cross_traffic_bytes",
    "busy_poll",
    "broker_program",
];

/// Whether an option, by its identifier, has an effect with a protocol.
pub(crate) fn applies(option: &str, protocol: ProtocolName) -> bool {
    LIMITED.iter().all(|(limited, applies)| *limited != option || applies(protocol))
}

impl Command {
    /// Checks that every option on the command line has an effect.
    ///
    /// # Errors
    /// An option without effect.
    pub(crate) fn check_options(&self, matches: &ArgMatches) -> anyhow::Result<()> {
        let Some((common, has_agent)) = self.measured() else { return Ok(()) };
        let protocol = common.protocol;
        let Some((_, given)) = matches.subcommand() else { return Ok(()) };
        let is_given = |option: &str| {
            let is_known = given.ids().any(|id| id == option);
            is_known && given.value_source(option) == Some(ValueSource::CommandLine)
        };
        for (option, applies) in LIMITED {
            if is_given(option) && !applies(protocol) {
                let remedy = format!("leave it out; it is an option of {}", names(applies));
                return Err(without_effect(option, &name(protocol), &remedy));
            }
        }
        if let Some(option) = ONE_MACHINE.into_iter().find(|it| has_agent && is_given(it)) {
            let remedy = "leave it out, or measure on one machine";
            return Err(without_effect(option, "--agent", remedy));
        }
        common.check()?;
        if let Self::Outage(args) = self {
            if args.part() == FailingPart::Observed && is_given("start") {
                let remedy = "interrupt the network when you want";
                return Err(without_effect("start", "--of observed", remedy));
            }
            if is_given("class") {
                let remedy = "leave it out; latency and reliability judge classes";
                return Err(without_effect("class", "outage", remedy));
            }
        }
        Ok(())
    }

    /// The protocol of a measurement with its settings, and whether an agent is its other end.
    const fn measured(&self) -> Option<(&ProtocolArgs, bool)> {
        match self {
            Self::Latency(args) | Self::Reliability(args) => {
                Some((&args.run.common, args.remote.agent.is_some()))
            }
            Self::Outage(args) => Some((&args.run.common, args.remote.agent.is_some())),
            Self::Rate(args) => Some((&args.common, args.remote.agent.is_some())),
            Self::Agent(_)
            | Self::Corruption(_)
            | Self::Efficiency(_)
            | Self::Matrix(_)
            | Self::Reserve(_)
            | Self::Sync(_) => None,
        }
    }
}

fn without_effect(option: &str, with: &str, remedy: &str) -> anyhow::Error {
    let option = option.replace('_', "-");
    anyhow::anyhow!("--{option} has no effect with {with}\n  help: {remedy}")
}

/// Whether a protocol runs over TCP.
fn is_stream(protocol: ProtocolName) -> bool {
    !matches!(protocol, ProtocolName::Null | ProtocolName::Udp) && !has_frames(protocol)
}

/// Whether a protocol runs over Ethernet.
fn has_frames(protocol: ProtocolName) -> bool {
    matches!(protocol, ProtocolName::Sv | ProtocolName::Goose)
}

pub(super) fn name(protocol: ProtocolName) -> String {
    protocol.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn names(applies: fn(ProtocolName) -> bool) -> String {
    let protocols = ProtocolName::value_variants().iter().filter(|protocol| applies(**protocol));
    protocols.map(|protocol| name(*protocol)).collect::<Vec<_>>().join(", ")
}
