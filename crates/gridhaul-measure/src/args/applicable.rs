//! Options that only some protocols have. Without this check, a comparison of `--qos 0` with `--qos 1` over AMQP would
//! compare two equal runs.

use clap::parser::ValueSource;
use clap::{ArgMatches, ValueEnum};

use super::{Command, ProtocolName};

/// The name of an option in the command's arguments, and the protocols that it applies to.
type Limited = (&'static str, fn(ProtocolName) -> bool);

const LIMITED: [Limited; 21] = [
    ("broker", ProtocolName::has_broker),
    ("tls", ProtocolName::has_broker),
    ("ca", ProtocolName::has_broker),
    ("data_set", |protocol| protocol == ProtocolName::Sv),
    ("connections", ProtocolName::has_broker),
    ("keep_alive", ProtocolName::has_broker),
    ("nodelay", is_stream),
    ("reconnect_after", is_stream),
    ("queue", is_stream),
    ("port", |protocol| is_stream(protocol) && !protocol.has_broker()),
    ("qos", |protocol| matches!(protocol, ProtocolName::Mqtt | ProtocolName::Mqtt5)),
    ("prefetch", |protocol| matches!(protocol, ProtocolName::Amqp091 | ProtocolName::Amqp10)),
    ("persistent", |protocol| protocol == ProtocolName::Amqp091),
    ("unsettled", |protocol| protocol == ProtocolName::Amqp10),
    ("node", |protocol| protocol == ProtocolName::Amqp10),
    ("poll", |protocol| protocol == ProtocolName::Dnp3),
    ("vlan", has_frames),
    ("vlan_priority", has_frames),
    ("retransmit_after", |protocol| protocol == ProtocolName::Goose),
    ("retransmit_every", |protocol| protocol == ProtocolName::Goose),
    ("no_retransmission", |protocol| protocol == ProtocolName::Goose),
];

impl Command {
    /// Checks that every option on the command line has an effect with the protocol.
    ///
    /// # Errors
    /// An option that the protocol does not have.
    pub(crate) fn check_options(&self, matches: &ArgMatches) -> anyhow::Result<()> {
        let protocol = match self {
            Self::Latency(args) | Self::Reliability(args) => args.run.common.protocol,
            Self::Outage(args) => args.run.common.protocol,
            Self::Rate(args) => args.common.protocol,
            Self::Agent(_)
            | Self::Corruption(_)
            | Self::Efficiency(_)
            | Self::Reserve(_)
            | Self::Sync(_) => return Ok(()),
        };
        let Some((_, given)) = matches.subcommand() else { return Ok(()) };
        for (option, applies) in LIMITED {
            let is_given = given.value_source(option) == Some(ValueSource::CommandLine);
            if is_given && !applies(protocol) {
                anyhow::bail!(
                    "--{} has no effect with {}\n  help: leave it out; it is an option of {}",
                    option.replace('_', "-"),
                    name(protocol),
                    names(applies)
                );
            }
        }
        Ok(())
    }
}

/// Whether a protocol runs over TCP.
fn is_stream(protocol: ProtocolName) -> bool {
    !matches!(protocol, ProtocolName::Null | ProtocolName::Udp) && !has_frames(protocol)
}

/// Whether a protocol runs over Ethernet.
fn has_frames(protocol: ProtocolName) -> bool {
    matches!(protocol, ProtocolName::Sv | ProtocolName::Goose)
}

fn name(protocol: ProtocolName) -> String {
    protocol.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn names(applies: fn(ProtocolName) -> bool) -> String {
    let protocols = ProtocolName::value_variants().iter().filter(|protocol| applies(**protocol));
    protocols.map(|protocol| name(*protocol)).collect::<Vec<_>>().join(", ")
}
