//! An option that is varied, and its values.

use anyhow::{anyhow, bail, ensure};
use clap::{Arg, CommandFactory, ValueEnum};
use gridhaul_measure::experiment::matrix::{Axis, PROTOCOL};
use gridhaul_measure::measurement::{Draft, Measurement};
use gridhaul_protocols::payload::Encoding;

use crate::args::{Cli, ProtocolName, keys};

/// Number of values in a message.
pub(super) const VALUES: &str = "values";

/// Encoding of the values.
pub(super) const ENCODING: &str = "encoding";

/// Options for the network of a measurement.
pub(super) const SCENARIO: &str = "scenario";
pub(super) const SYSTEM: &str = "system";

/// Settings of several runs, of which a matrix has one for each combination.
const OF_SEVERAL_RUNS: [&str; 2] = ["class", "repetitions"];

/// Reads `OPTION=VALUE,VALUE,…`.
///
/// # Errors
/// There is no such option, or its values are invalid for every protocol.
pub(super) fn axis(text: &str) -> anyhow::Result<Axis> {
    let Some((option, values)) = text.split_once('=') else {
        bail!(
            "--vary {text}: expected an option and its values\n  \
             help: write, for example, --vary qos=0,1"
        );
    };
    let name = option.trim().trim_start_matches('-').to_owned();
    // Units are read without the space before them.
    let values: Vec<_> = values.split(',').map(|value| value.replace(' ', "")).collect();
    for (index, value) in values.iter().enumerate() {
        ensure!(
            !value.is_empty(),
            "--vary {text}: a value is empty\n  help: separate values by single commas"
        );
        ensure!(
            !values[..index].contains(value),
            "--vary {text}: the value {value} is given twice\n  help: remove one of them"
        );
    }
    let axis = Axis { name, values };
    check(&axis)?;
    Ok(axis)
}

/// The protocol of this name.
pub(super) fn protocol(name: &str) -> Option<ProtocolName> {
    ProtocolName::from_str(name, false).ok()
}

/// The encoding of this name.
pub(super) fn encoding(name: &str) -> Option<Encoding> {
    Encoding::ALL.into_iter().find(|encoding| encoding.name() == name)
}

/// Checks that the option exists, and the values of an option that is not a key of a measurement.
fn check(axis: &Axis) -> anyhow::Result<()> {
    let is_valid = |value: &str| match axis.name.as_str() {
        VALUES => value.parse().is_ok_and(|count: usize| (1..=5_000).contains(&count)),
        ENCODING => encoding(value).is_some(),
        PROTOCOL => protocol(value).is_some(),
        _ => true,
    };
    if let Some(wrong) = axis.values.iter().find(|value| !is_valid(value)) {
        let expected = match axis.name.as_str() {
            VALUES => "a number of values between 1 and 5000".into(),
            ENCODING => Encoding::ALL.map(Encoding::name).join(", "),
            _ => {
                let names = ProtocolName::value_variants().iter().map(|name| name.name());
                names.collect::<Vec<_>>().join(", ")
            }
        };
        bail!("--vary {}: {wrong} is not valid\n  help: expected {expected}", axis.name);
    }
    let own = [PROTOCOL, VALUES, ENCODING, SCENARIO, SYSTEM];
    let drafts = drafts();
    let is_varied = |name: &str| {
        let value = axis.values.first().map_or("", String::as_str);
        let is_key = || drafts.iter().any(|draft| keys(draft, name, value).is_some());
        own.contains(&name) || !OF_SEVERAL_RUNS.contains(&name) && is_key()
    };
    if is_varied(&axis.name) {
        return Ok(());
    }
    let program = Cli::command();
    let latency = program.find_subcommand("latency").map(clap::Command::get_arguments);
    let options = latency.into_iter().flatten().filter_map(Arg::get_long);
    let varied: Vec<_> = options.filter(|name| is_varied(name)).collect();
    Err(anyhow!(
        "--vary {}: not an option that can be varied\n  \
         help: choose from: {PROTOCOL}, {VALUES}, {ENCODING}, {}",
        axis.name,
        varied.join(", ")
    ))
}

/// A measurement of each protocol over an emulated network.
fn drafts() -> Vec<Draft> {
    let draft = |protocol: &ProtocolName| {
        let text = format!(
            "[experiment.latency]\n[protocol.\"{}\"]\n[place.emulated.network.scenario]\nfile \
             = \"\"",
            protocol.name()
        );
        Measurement::from_toml(&text, "").ok().map(|measurement| Draft::new(&measurement))
    };
    ProtocolName::value_variants().iter().filter_map(draft).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        axis(text).unwrap_err().to_string()
    }

    #[test]
    fn an_axis_has_an_option_and_its_values() {
        let found = axis("receive-window=16 kB,64 kB").unwrap();
        assert_eq!(found.name, "receive-window");
        assert_eq!(found.values, ["16kB", "64kB"]);
        assert!(axis("persistent=true,false").is_ok());
        assert!(axis("--qos=1").is_ok());
    }

    #[test]
    fn errors_name_the_option_and_the_remedy() {
        assert!(error("qos").contains("write, for example, --vary qos=0,1"));
        let unknown = error("colour=red");
        assert!(unknown.contains("choose from: protocol, values, encoding, "), "{unknown}");
        for option in ["rate", "qos", "pin", "no-reconnect", "vlan-priority", "cross-traffic"] {
            assert!(unknown.contains(&format!(", {option}")), "{unknown}");
        }
        for option in ["out", "agent", "repetitions", "class", "save"] {
            assert!(!unknown.contains(&format!(", {option},")), "{unknown}");
        }
        assert!(error("out=a").contains("not an option that can be varied"));
        assert!(error("qos=0,,1").contains("a value is empty"));
        assert!(error("qos=0,1,0").contains("0 is given twice"));
        assert!(error("encoding=asn1").contains("expected json, protobuf-float32, protobuf,"));
        assert!(error("protocol=mqt").contains("expected null, udp, mqtt"));
        assert!(error("values=0").contains("between 1 and 5000"));
    }
}
