//! The measurements of a matrix: all combinations of the values. Each is the measurement of the
//! options of all, in which the keys of the options that are varied are set.

use anyhow::{Context, anyhow, bail, ensure};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use gridhaul_measure::experiment::matrix::{Axis, PROTOCOL, Planned};
use gridhaul_measure::measurement::{Draft, EmulatedNetwork, Experiment, Measurement, Place};
use gridhaul_protocols::payload::Sample;
use gridhaul_scenario::units::Duration;

use super::axis::{ENCODING, SCENARIO, SYSTEM, VALUES, encoding, protocol};
use crate::args::{Cli, Command, ProtocolName, given, in_terms_of_options, keys};

/// Minimum number of messages, unless it is given.
const MESSAGES_MIN: u64 = 200;

/// A network for which a system is named, to see whether an option needs one.
const ANY_SYSTEM: &str = "ethernet";

/// Sorts the axes such that measurements with the same broker follow each other.
///
/// # Errors
/// An option is given twice, or there is no protocol.
pub(super) fn sorted(mut axes: Vec<Axis>) -> anyhow::Result<Vec<Axis>> {
    for (index, axis) in axes.iter().enumerate() {
        let is_first = axes[..index].iter().all(|other| other.name != axis.name);
        ensure!(
            is_first,
            "--vary {}: the option is given twice\n  help: give all values at once",
            axis.name
        );
    }
    ensure!(
        axes.iter().any(|axis| axis.name == PROTOCOL),
        "there is no protocol\n  help: add --vary protocol=udp,mqtt or another list"
    );
    let is_varied = |name: &str| axes.iter().any(|axis| axis.name == name);
    if let Some(other) = [VALUES, ENCODING].into_iter().find(|name| is_varied(name)) {
        ensure!(
            !is_varied("bytes"),
            "--vary bytes: the values of a message and their encoding determine its bytes\n  \
             help: remove --vary bytes, or --vary {other}"
        );
    }
    const FIRST: [&str; 5] = [SCENARIO, SYSTEM, PROTOCOL, "congestion-control", "receive-window"];
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    axes.sort_by_key(|axis| place(&axis.name));
    Ok(axes)
}

/// All measurements. The last axis varies fastest; combinations that differ only in options without
/// effect are one measurement.
///
/// # Errors
/// A measurement is not valid, or an option of all measurements has no effect on one.
pub(super) fn plan(
    axes: &[Axis],
    options: &[String],
    time: Duration,
) -> anyhow::Result<Vec<Planned>> {
    let common = CommonOptions::parse(options, axes)?;
    let mut planned: Vec<Planned> = Vec::new();
    let combinations: usize = axes.iter().map(|axis| axis.values.len()).product();
    for number in 0..combinations {
        let mut rest = number;
        let mut values = Vec::new();
        for axis in axes.iter().rev() {
            values.push(Some(axis.values[rest % axis.values.len()].clone()));
            rest /= axis.values.len();
        }
        values.reverse();
        let mut combination = Combination { axes, values };
        let found = combination.measurement(&common);
        if planned.iter().any(|known| known.values == combination.values) {
            continue;
        }
        let words = [combination.words()?, options.to_vec()].concat();
        let found =
            found.with_context(|| format!("the measurement `gridhaul {}`", words.join(" ")))?;
        planned.push(complete(found, words, combination, common.has_messages(axes), time));
    }
    Ok(planned)
}

/// The options of every measurement.
struct CommonOptions {
    /// With any protocol and network.
    command: Command,
    matches: ArgMatches,
}

impl CommonOptions {
    /// Reads the options, as those of `gridhaul measure latency`.
    ///
    /// # Errors
    /// An option is not valid, or is varied as well.
    fn parse(options: &[String], axes: &[Axis]) -> anyhow::Result<Self> {
        let any = ["measure", "latency", "udp"].map(str::to_owned);
        let matches = Cli::command().try_get_matches_from(any.iter().chain(options))?;
        let command = Cli::from_arg_matches(&matches)?.command;
        ensure!(matches!(command, Command::Latency(_)), "expected options of `latency`");
        for option in given(&matches) {
            let option = option.replace('_', "-");
            let sets_bytes = |axis: &Axis| [VALUES, ENCODING].contains(&axis.name.as_str());
            let varies = |axis: &Axis| {
                axis.name == option && option != PROTOCOL || option == "bytes" && sets_bytes(axis)
            };
            if let Some(axis) = axes.iter().find(|axis| varies(axis)) {
                bail!(
                    "--vary {}: the options of all measurements have --{option}\n  \
                     help: remove one of the two options",
                    axis.name
                );
            }
        }
        Ok(Self { command, matches })
    }

    /// The measurement with these options, whose values are not checked yet.
    ///
    /// # Errors
    /// An option has no effect.
    fn measurement(
        &self,
        protocol: ProtocolName,
        scenario: Option<String>,
        system: Option<String>,
    ) -> anyhow::Result<Measurement> {
        let command = self.command.with(protocol).over(scenario.map(Into::into), system);
        let options = command.unchecked_options(&self.matches)?;
        options.map(|options| options.measurement).context("expected options of `latency`")
    }

    fn has_messages(&self, axes: &[Axis]) -> bool {
        axes.iter().any(|axis| axis.name == "messages")
            || given(&self.matches).iter().any(|option| option == "messages")
    }
}

/// A value of each axis; `None` for an option that has no effect with the others.
struct Combination<'a> {
    axes: &'a [Axis],
    values: Vec<Option<String>>,
}

impl Combination<'_> {
    fn value(&self, option: &str) -> Option<&String> {
        let index = self.axes.iter().position(|axis| axis.name == option)?;
        self.values[index].as_ref()
    }

    fn protocol(&self) -> anyhow::Result<ProtocolName> {
        let name = self.value(PROTOCOL).context("there is no protocol")?;
        protocol(name).context("a protocol was checked before")
    }

    /// The measurement. Values that have no effect become `None`.
    fn measurement(&mut self, common: &CommonOptions) -> anyhow::Result<Measurement> {
        let protocol = self.protocol()?;
        if protocol == ProtocolName::Sv {
            // Sampled Values have an encoding of their own.
            self.remove(ENCODING);
        }
        let (scenario, system) = (self.value(SCENARIO).cloned(), self.value(SYSTEM).cloned());
        let mut measurement = common.measurement(protocol, scenario, system)?;
        if let Some(bytes) = self.bytes()? {
            measurement.message.bytes = bytes;
        }
        if let Experiment::Latency(run) = &mut measurement.experiment {
            run.record.floor = false;
        }
        let mut draft = Draft::new(&measurement);
        let mut found = Vec::new();
        for (axis, value) in self.axes.iter().zip(&mut self.values) {
            let is_own =
                [PROTOCOL, SCENARIO, SYSTEM, VALUES, ENCODING].contains(&axis.name.as_str());
            let Some(text) = value.as_ref().filter(|_| !is_own) else { continue };
            match keys(&draft, &axis.name, text) {
                Some(own) => found.extend(own),
                None if needs_network(&measurement, &axis.name, text) => bail!(
                    "--{} needs an emulated network\n  \
                     help: add --vary system=NAME, or -- --system NAME",
                    axis.name
                ),
                None => *value = None,
            }
        }
        // A variant, such as that of the broker, is set before the keys in its table.
        found.sort_by_key(|(key, _)| key.depth());
        for (key, value) in found {
            draft.set(&key, value);
        }
        draft.read().map_err(|found| {
            found.first().map_or_else(|| anyhow!("it is not valid"), in_terms_of_options)
        })
    }

    fn remove(&mut self, option: &str) {
        if let Some(index) = self.axes.iter().position(|axis| axis.name == option) {
            self.values[index] = None;
        }
    }

    /// Bytes of a message, if its values or their encoding are varied.
    fn bytes(&self) -> anyhow::Result<Option<usize>> {
        let (count, name) = (self.value(VALUES), self.value(ENCODING));
        if count.is_none() && name.is_none() {
            return Ok(None);
        }
        let count = count.map_or(Ok(10), |count| count.parse())?;
        let default = if self.protocol()? == ProtocolName::Sv { "float32" } else { "protobuf" };
        let encoding = encoding(name.map_or(default, String::as_str));
        let encoding = encoding.context("an encoding was checked before")?;
        Ok(Some(encoding.encode(&Sample::typical(count)).len()))
    }

    /// The words of the command of this measurement alone, without the options of all.
    fn words(&self) -> anyhow::Result<Vec<String>> {
        let protocol = self.value(PROTOCOL).context("there is no protocol")?;
        let mut words = vec!["measure".to_owned(), "latency".to_owned(), protocol.clone()];
        for (axis, value) in self.axes.iter().zip(&self.values) {
            let Some(value) = value else { continue };
            match (axis.name.as_str(), value.as_str()) {
                (PROTOCOL | VALUES | ENCODING, _) | (_, "false") => {}
                (option, "true") => words.push(format!("--{option}")),
                (option, value) => words.extend([format!("--{option}"), value.to_owned()]),
            }
        }
        if let Some(bytes) = self.bytes()? {
            words.extend(["--bytes".to_owned(), bytes.to_string()]);
        }
        Ok(words)
    }
}

/// Whether an option would have an effect over an emulated network.
fn needs_network(measurement: &Measurement, option: &str, value: &str) -> bool {
    let place = Place::Emulated(EmulatedNetwork::system(ANY_SYSTEM));
    let emulated = Measurement { place, ..measurement.clone() };
    measurement.place.emulated().is_none() && keys(&Draft::new(&emulated), option, value).is_some()
}

/// A measurement with its command, and the number of messages.
fn complete(
    mut measurement: Measurement,
    mut words: Vec<String>,
    combination: Combination<'_>,
    has_messages: bool,
    time: Duration,
) -> Planned {
    if let Experiment::Latency(run) = &mut measurement.experiment
        && !has_messages
    {
        let needed = (run.schedule.rate * time.as_secs_f64()).ceil() as u64;
        run.schedule.messages = MESSAGES_MIN.max(needed);
        words.extend(["--messages".to_owned(), run.schedule.messages.to_string()]);
    }
    let command = format!("gridhaul {}", words.join(" "));
    Planned { values: combination.values, command, measurement }
}

#[cfg(test)]
mod tests {
    use gridhaul_measure::experiment::matrix::estimate;

    use super::*;
    use crate::command::matrix::axis::axis;

    fn planned(axes: &[&str], options: &str) -> anyhow::Result<Vec<Planned>> {
        let axes = axes.iter().map(|text| axis(text)).collect::<anyhow::Result<_>>()?;
        let options: Vec<_> = options.split_whitespace().map(str::to_owned).collect();
        plan(&sorted(axes)?, &options, Duration::from_secs(6))
    }

    fn commands(axes: &[&str], options: &str) -> Vec<String> {
        planned(axes, options).unwrap().into_iter().map(|planned| planned.command).collect()
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

    /// Options of every kind: with the name of their key and with another one, flags, and values
    /// that only some protocols have.
    #[test]
    fn a_command_means_the_measurement_of_its_row() {
        let all = [
            ("protocol=mqtt,zeromq,udp", "rate=10,2000", ""),
            ("protocol=mqtt", "keep-alive=10 s,1 min", "--system ethernet --subscriber to"),
            ("protocol=mqtt,amqp-1.0", "broker-program=mosquitto,rabbitmq", ""),
            ("protocol=mqtt,mqtt5", "tls=true,false", "--qos 1"),
            ("protocol=amqp-0-9-1", "persistent=true,false", ""),
            ("protocol=zeromq,mqtt", "nodelay=both,clients,broker,none", ""),
            ("protocol=mqtt,udp", "broker=127.0.0.1:1883,mqtt://127.0.0.1:1", ""),
            ("protocol=iec-104,dnp3", "no-reconnect=true,false", ""),
            ("protocol=mqtt", "reconnect-after=1 s,2 s", "--queue"),
            ("protocol=goose", "retransmit-after=1ms,2ms", "--retransmit-every 2s"),
            ("protocol=goose,sv", "no-retransmission=true,false", ""),
            ("protocol=sv,goose,udp", "vlan=5,6", ""),
            ("protocol=sv", "data-set=raw,9-2le", ""),
            ("protocol=udp", "capture=true,false", "--system ethernet"),
            ("protocol=udp", "predict=true,false", "--system ethernet"),
            ("protocol=udp", "cross-traffic=1 Mbit/s,2 Mbit/s", "--system ethernet"),
            ("protocol=udp", "cross-traffic-bytes=100,1000", "--system 5g-ready --reverse"),
            ("protocol=udp", "reverse=true,false", "--system ethernet"),
            ("protocol=udp,mqtt", "congestion-control=cubic,reno", "--system ethernet"),
            ("protocol=udp", "busy-poll=true,false", "--allow-idle-states"),
            ("protocol=udp", "system=ethernet,5g-ready", "--horizon 1s"),
            ("protocol=udp", "warm-up=0,10", "--bytes 200"),
            ("protocol=dnp3", "poll=1 s,30ms", "--port 20000"),
        ];
        for (protocols, axis, options) in all {
            for row in planned(&[protocols, axis], options).unwrap() {
                let words = row.command.split(' ').skip(1).chain(["--no-floor"]);
                let matches = Cli::command().try_get_matches_from(words).unwrap();
                let command = Cli::from_arg_matches(&matches).unwrap().command;
                let expected = command.options(&matches).unwrap().unwrap().measurement;
                assert_eq!(row.measurement, expected, "{}", row.command);
            }
        }
    }

    #[test]
    fn an_option_needs_the_network_that_it_concerns() {
        let message = planned(&["protocol=mqtt", "congestion-control=cubic,reno"], "");
        let message = format!("{:#}", message.unwrap_err());
        assert!(message.contains("--congestion-control needs an emulated network"), "{message}");
        let message = planned(&["protocol=mqtt", "rate=1,2"], "--rate 5").unwrap_err().to_string();
        assert!(message.contains("--vary rate: the options of all"), "{message}");
    }

    #[test]
    fn errors_name_the_measurement() {
        let error =
            |axes: &[&str], options: &str| format!("{:#}", planned(axes, options).unwrap_err());
        assert!(error(&["rate=10"], "").contains("help: add --vary protocol="));
        assert!(
            error(&["protocol=udp", "protocol=mqtt"], "").contains("the option is given twice")
        );
        for axis in ["values=10,20", "encoding=json"] {
            let message = error(&["protocol=udp", "bytes=100,200", axis], "");
            assert!(message.contains("--vary bytes: the values of a message"), "{message}");
        }
        let message = error(&["protocol=udp", "rate=fast"], "");
        assert!(message.contains("gridhaul measure latency udp --rate fast"), "{message}");
        assert!(message.contains("--rate: expected a number"), "{message}");
        let message = error(&["protocol=udp", "rate=0"], "");
        assert!(message.contains("--rate: expected messages per second"), "{message}");
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
