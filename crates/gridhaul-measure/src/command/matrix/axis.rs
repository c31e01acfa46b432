//! An option that is varied, and its values.

use anyhow::{bail, ensure};
use clap::{Arg, ArgAction, CommandFactory, ValueEnum};
use gridhaul_measure::experiment::matrix::{Axis, PROTOCOL};
use gridhaul_protocols::payload::Encoding;

use crate::args::{Cli, ProtocolName};

/// Number of values in a message.
pub(super) const VALUES: &str = "values";

/// Encoding of the values.
pub(super) const ENCODING: &str = "encoding";

/// Options of `latency` that do not change a measurement, or that the matrix sets itself.
const NOT_VARIED: [&str; 13] = [
    "agent",
    "agent-address",
    "class",
    "fingerprint",
    "help",
    "json",
    "no-echo",
    "no-floor",
    "out",
    "quiet",
    "repetitions",
    "save",
    "token-file",
];

/// An option that is varied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VariedOption {
    /// Name without hyphens at its start, and the values in the order of the command line.
    pub(super) axis: Axis,
    /// Whether the option is a flag, whose values are `true` and `false`.
    pub(super) is_flag: bool,
}

impl VariedOption {
    /// Reads `OPTION=VALUE,VALUE,…`.
    ///
    /// # Errors
    /// There is no such option, or its values are invalid.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let Some((option, values)) = text.split_once('=') else {
            bail!(
                "--vary {text}: expected an option and its values\n  help: write, for example, --vary qos=0,1"
            );
        };
        let option = option.trim().trim_start_matches('-').to_owned();
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
        let is_flag = is_flag(&option)?;
        let varied = Self { axis: Axis { name: option, values }, is_flag };
        varied.check()?;
        Ok(varied)
    }

    /// Checks the values that `latency` does not check.
    fn check(&self) -> anyhow::Result<()> {
        let is_valid = |value: &str| match self.axis.name.as_str() {
            VALUES => value.parse().is_ok_and(|count: usize| (1..=5_000).contains(&count)),
            ENCODING => encoding(value).is_some(),
            PROTOCOL => protocol(value).is_some(),
            _ => !self.is_flag || matches!(value, "true" | "false"),
        };
        let Some(wrong) = self.axis.values.iter().find(|value| !is_valid(value)) else {
            return Ok(());
        };
        let expected = match self.axis.name.as_str() {
            VALUES => "a number of values between 1 and 5000".into(),
            ENCODING => Encoding::ALL.map(Encoding::name).join(", "),
            PROTOCOL => ProtocolName::value_variants()
                .iter()
                .filter_map(ValueEnum::to_possible_value)
                .map(|value| value.get_name().to_owned())
                .collect::<Vec<_>>()
                .join(", "),
            _ => "true, false".into(),
        };
        bail!("--vary {}: {wrong} is not valid\n  help: expected {expected}", self.axis.name);
    }
}

/// The protocol of this name.
pub(super) fn protocol(name: &str) -> Option<ProtocolName> {
    ProtocolName::from_str(name, false).ok()
}

/// The encoding of this name.
pub(super) fn encoding(name: &str) -> Option<Encoding> {
    Encoding::ALL.into_iter().find(|encoding| encoding.name() == name)
}

/// Whether an option of `latency` is a flag.
fn is_flag(option: &str) -> anyhow::Result<bool> {
    if [PROTOCOL, VALUES, ENCODING].contains(&option) {
        return Ok(false);
    }
    let program = Cli::command();
    let latency = program.find_subcommand("latency").map(clap::Command::get_arguments);
    let options: Vec<&Arg> = latency.into_iter().flatten().collect();
    let names = options.iter().filter_map(|argument| argument.get_long());
    let varied: Vec<_> = names.filter(|name| !NOT_VARIED.contains(name)).collect();
    if !varied.contains(&option) {
        bail!(
            "--vary {option}: not an option that can be varied\n  help: choose from: {PROTOCOL}, {VALUES}, {ENCODING}, {}",
            varied.join(", ")
        );
    }
    let found = options.iter().find(|argument| argument.get_long() == Some(option));
    Ok(found.is_some_and(|argument| matches!(argument.get_action(), ArgAction::SetTrue)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        VariedOption::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn an_axis_has_an_option_and_its_values() {
        let axis = VariedOption::parse("receive-window=16 kB,64 kB").unwrap();
        assert_eq!((axis.axis.name.as_str(), axis.is_flag), ("receive-window", false));
        assert_eq!(axis.axis.values, ["16kB", "64kB"]);
        assert!(VariedOption::parse("persistent=true,false").unwrap().is_flag);
        assert!(VariedOption::parse("--qos=1").is_ok());
    }

    #[test]
    fn errors_name_the_option_and_the_remedy() {
        assert!(error("qos").contains("write, for example, --vary qos=0,1"));
        assert!(error("colour=red").contains("choose from: protocol, values, encoding, rate"));
        assert!(error("out=a").contains("not an option that can be varied"));
        assert!(error("qos=0,,1").contains("a value is empty"));
        assert!(error("qos=0,1,0").contains("0 is given twice"));
        assert!(error("encoding=asn1").contains("expected json, protobuf-float32, protobuf,"));
        assert!(error("protocol=mqt").contains("expected null, udp, mqtt"));
        assert!(error("values=0").contains("between 1 and 5000"));
        assert!(error("persistent=yes").contains("expected true, false"));
    }
}
