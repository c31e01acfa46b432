//! The measurements of a matrix: all combinations of the values.

use anyhow::{Context, bail, ensure};
use clap::{CommandFactory, FromArgMatches};
use gridhaul_measure::experiment::matrix::{PROTOCOL, Planned};
use gridhaul_measure::measurement::{Experiment, Measurement};
use gridhaul_protocols::payload::Sample;
use gridhaul_scenario::units::Duration;

use super::axis::{ENCODING, VALUES, VariedOption, encoding, protocol};
use crate::args::{Cli, Command, ProtocolName, applies};

/// Least number of messages, unless it is given.
const LEAST_MESSAGES: u64 = 200;

/// Sorts the axes such that measurements with the same broker follow each other.
///
/// # Errors
/// An option is given twice, or there is no protocol.
pub(super) fn sorted(mut axes: Vec<VariedOption>) -> anyhow::Result<Vec<VariedOption>> {
    for (index, VariedOption { axis, .. }) in axes.iter().enumerate() {
        let is_first = axes[..index].iter().all(|other| other.axis.name != axis.name);
        ensure!(
            is_first,
            "--vary {}: the option is given twice\n  help: give all values at once",
            axis.name
        );
    }
    ensure!(
        axes.iter().any(|option| option.axis.name == PROTOCOL),
        "there is no protocol\n  help: add --vary protocol=udp,mqtt or another list"
    );
    const FIRST: [&str; 5] =
        ["scenario", "system", PROTOCOL, "congestion-control", "receive-window"];
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    axes.sort_by_key(|option| place(&option.axis.name));
    Ok(axes)
}

/// All measurements. The last axis varies fastest; combinations that differ only in options without
/// effect are one measurement.
///
/// # Errors
/// The command of a measurement is not valid.
pub(super) fn plan(
    axes: &[VariedOption],
    options: &[String],
    time: Duration,
) -> anyhow::Result<Vec<Planned>> {
    let mut planned: Vec<Planned> = Vec::new();
    let combinations: usize = axes.iter().map(|option| option.axis.values.len()).product();
    for number in 0..combinations {
        let mut rest = number;
        let mut values: Vec<_> = axes
            .iter()
            .rev()
            .map(|VariedOption { axis, .. }| {
                let value = &axis.values[rest % axis.values.len()];
                rest /= axis.values.len();
                Some(value.clone())
            })
            .collect();
        values.reverse();
        let words = words(axes, &mut values)?;
        if planned.iter().any(|known| known.values == values) {
            continue;
        }
        planned.push(complete(words, options, (values, time))?);
    }
    Ok(planned)
}

/// The words of a command, without the options of all measurements. Values that have no effect
/// become `None`.
fn words(axes: &[VariedOption], values: &mut [Option<String>]) -> anyhow::Result<Vec<String>> {
    let find = |option: &str, values: &[Option<String>]| {
        let index = axes.iter().position(|known| known.axis.name == option)?;
        values[index].clone()
    };
    let name = find(PROTOCOL, values).unwrap_or_default();
    let protocol = protocol(&name).context("a protocol was checked before")?;
    let mut words = vec!["measure".to_owned(), "latency".to_owned(), name];
    for (VariedOption { axis, is_flag }, value) in axes.iter().zip(&mut *values) {
        let is_own = [PROTOCOL, VALUES].contains(&axis.name.as_str());
        if !is_own && !has_effect(&axis.name, protocol)? {
            *value = None;
        }
        let Some(value) = value else { continue };
        match (axis.name.as_str(), *is_flag, value.as_str()) {
            (PROTOCOL | VALUES | ENCODING, ..) | (_, true, "false") => {}
            (option, true, _) => words.push(format!("--{option}")),
            (option, false, value) => words.extend([format!("--{option}"), value.to_owned()]),
        }
    }
    let (count, name) = (find(VALUES, values), find(ENCODING, values));
    if count.is_some() || name.is_some() {
        let count = count.map_or(Ok(10), |count| count.parse())?;
        let default = if protocol == ProtocolName::Sv { "float32" } else { "protobuf" };
        let encoding = encoding(name.as_deref().unwrap_or(default));
        let encoding = encoding.context("an encoding was checked before")?;
        let bytes = encoding.encode(&Sample::typical(count)).len();
        words.extend(["--bytes".to_owned(), bytes.to_string()]);
    }
    Ok(words)
}

/// Whether an option changes measurements of a protocol. Sampled Values have an encoding of their
/// own.
fn has_effect(option: &str, protocol: ProtocolName) -> anyhow::Result<bool> {
    match option {
        ENCODING => Ok(protocol != ProtocolName::Sv),
        "subscriber" => Ok(protocol.has_broker()),
        option => applies(&option.replace('-', "_"), protocol),
    }
}

/// A measurement with the options of all, and the number of messages.
fn complete(
    mut words: Vec<String>,
    options: &[String],
    (values, time): (Vec<Option<String>>, Duration),
) -> anyhow::Result<Planned> {
    words.extend(options.iter().cloned());
    let mut measurement = measurement(&words)
        .with_context(|| format!("the measurement `gridhaul {}`", words.join(" ")))?;
    let is_given = |word: &String| word == "--messages" || word.starts_with("--messages=");
    if let Experiment::Latency(run) = &mut measurement.experiment {
        if !words.iter().any(is_given) {
            let needed = (run.schedule.rate * time.as_secs_f64()).ceil() as u64;
            run.schedule.messages = LEAST_MESSAGES.max(needed);
            words.extend(["--messages".to_owned(), run.schedule.messages.to_string()]);
        }
        run.record.floor = false;
    }
    Ok(Planned { values, command: format!("gridhaul {}", words.join(" ")), measurement })
}

/// The measurement of a command `gridhaul measure latency`.
///
/// # Errors
/// The command is not valid, or an option has no effect.
fn measurement(words: &[String]) -> anyhow::Result<Measurement> {
    let matches = Cli::command().try_get_matches_from(words)?;
    let command = Cli::from_arg_matches(&matches)?.command;
    match command.options(&matches)? {
        Some(options) if matches!(command, Command::Latency(_)) => Ok(options.measurement),
        _ => bail!("expected a command `latency`"),
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_measure::experiment::matrix::estimate;

    use super::*;

    fn planned(axes: &[&str], options: &str) -> anyhow::Result<Vec<Planned>> {
        let axes =
            axes.iter().map(|axis| VariedOption::parse(axis)).collect::<anyhow::Result<_>>()?;
        let options: Vec<_> = options.split_whitespace().map(str::to_owned).collect();
        plan(&sorted(axes)?, &options, Duration::from_secs(6))
    }

    fn commands(axes: &[&str], options: &str) -> Vec<String> {
        planned(axes, options).unwrap().into_iter().map(|it| it.command).collect()
    }

    #[test]
    fn all_combinations_are_measured_once() {
        let found = commands(
            &["qos=0,1", "protocol=udp,mqtt", "rate=10,100", "system=ethernet"],
            "--subscriber to",
        );
        let command = |text: &str| format!("gridhaul measure latency {text} --subscriber to");
        // Quality of service has no effect with datagrams.
        assert_eq!(found.len(), 6, "{found:?}");
        assert_eq!(found[0], command("udp --system ethernet --rate 10") + " --messages 200");
        assert_eq!(found[1], command("udp --system ethernet --rate 100") + " --messages 600");
        let last = command("mqtt --system ethernet --qos 1 --rate 100") + " --messages 600";
        assert_eq!(found[5], last);
    }

    #[test]
    fn encodings_determine_the_bytes() {
        let found =
            commands(&["protocol=sv,mqtt", "encoding=json,dlms", "values=10"], "--messages 5");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].ends_with("sv --bytes 40 --messages 5"), "{}", found[0]);
        let bytes =
            |command: &str| command.split("--bytes ").nth(1).unwrap()[..3].parse::<u32>().unwrap();
        assert!(bytes(&found[1]) > bytes(&found[2]), "{found:?}");
    }

    #[test]
    fn flags_have_two_values() {
        let found = commands(&["protocol=amqp-0-9-1", "persistent=false,true"], "--messages 5");
        assert_eq!(found[0], "gridhaul measure latency amqp-0-9-1 --messages 5");
        assert_eq!(found[1], "gridhaul measure latency amqp-0-9-1 --persistent --messages 5");
    }

    #[test]
    fn errors_name_the_measurement() {
        let error =
            |axes: &[&str], options: &str| format!("{:#}", planned(axes, options).unwrap_err());
        assert!(error(&["rate=10"], "").contains("help: add --vary protocol="));
        assert!(
            error(&["protocol=udp", "protocol=mqtt"], "").contains("the option is given twice")
        );
        let message = error(&["protocol=udp", "rate=fast"], "");
        assert!(message.contains("gridhaul measure latency udp --rate fast"), "{message}");
        assert!(message.contains("expected messages per second"), "{message}");
        let message = error(&["protocol=udp"], "--qos 1");
        assert!(message.contains("--qos has no effect with udp"), "{message}");
    }

    #[test]
    fn the_estimate_contains_warm_up_and_messages() {
        let found = planned(&["protocol=udp", "rate=10,1000"], "").unwrap();
        // 10 s and 20 s at 10 messages/s, 1 s and 6 s at 1,000, with the overhead.
        assert!((estimate(&found).as_secs_f64() - 40.0).abs() < 1e-6);
    }
}
