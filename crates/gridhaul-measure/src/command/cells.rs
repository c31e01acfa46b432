//! Measurements of a matrix: each is a command `gridhaul measure latency`.

use anyhow::bail;
use clap::{CommandFactory, FromArgMatches};
use gridhaul_measure::broker::{Broker, BrokerAddress, BrokerProgram, BrokerUrl};
use gridhaul_measure::method::findings;
use gridhaul_measure::network::Sites;
use gridhaul_report::chart::BoxStatistics;
use serde::{Deserialize, Serialize};

use super::charts::statistics;
use super::place::{Interrupt, Place};
use super::protocols::{Selection, start};
use super::report::create;
use super::run::{Run, at_sites, carrier, execute_until};
use crate::args::{Cli, Command, MqttBroker, OutageArgs, ProtocolName, RunArgs};
use crate::terminal::message;

/// Numbers of a measurement; latencies are from the send time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CellResult {
    pub(super) messages: u64,
    pub(super) missing: u64,
    pub(super) mean_s: f64,
    /// Standard deviation.
    pub(super) deviation_s: f64,
    pub(super) p2_s: f64,
    pub(super) p25_s: f64,
    pub(super) p50_s: Option<f64>,
    pub(super) p75_s: f64,
    pub(super) p98_s: f64,
    pub(super) p999_s: Option<f64>,
    pub(super) max_s: f64,
    /// Whether lateness of the generator could explain a part of the result.
    pub(super) invalid: Vec<String>,
    /// Settings of the protocol, its broker and the kernel.
    pub(super) settings: Vec<(String, String)>,
}

/// Result of a measurement: its numbers, or `None` if no message arrived.
pub(super) type Outcome = anyhow::Result<Option<CellResult>>;

impl CellResult {
    /// The numbers of a run; `None` if no message arrived.
    pub(super) fn new(run: &Run) -> Option<Self> {
        let summary = &run.outcome.summary;
        let median = summary.from_send.quantile(0.5).map(|it| it.value.as_secs_f64());
        let deviation = summary.from_send.standard_deviation()?.as_secs_f64();
        statistics(&summary.from_send).map(|it| Self {
            messages: summary.counts.messages,
            missing: summary.missing(),
            mean_s: it.mean,
            deviation_s: deviation,
            p2_s: it.whiskers[0],
            p25_s: it.quartiles[0],
            p50_s: median,
            p75_s: it.quartiles[1],
            p98_s: it.whiskers[1],
            p999_s: it.tail,
            max_s: it.max,
            invalid: findings(summary).iter().map(ToString::to_string).collect(),
            settings: run.settings.clone(),
        })
    }

    /// The numbers of the box.
    pub(super) const fn statistics(&self) -> BoxStatistics {
        BoxStatistics {
            whiskers: [self.p2_s, self.p98_s],
            quartiles: [self.p25_s, self.p75_s],
            mean: self.mean_s,
            tail: self.p999_s,
            max: self.max_s,
        }
    }
}

/// Measures each command, in this order, until the user interrupts. `finish` receives the number of the command and its outcome.
///
/// RabbitMQ starts slowly: successive measurements with the same network and the same settings of the broker share one.
pub(super) fn measure_each(
    runs: &[RunArgs],
    interrupt: &Interrupt,
    finish: &mut dyn FnMut(usize, Outcome),
) {
    let mut first = 0;
    for group in runs.chunk_by(|a, b| shares_broker(a) && shares_broker(b) && has_same_place(a, b))
    {
        match group {
            _ if interrupt.is_set() => return,
            [run] => finish(first, measure(run, interrupt)),
            group => {
                let mut finish = |number, outcome| finish(first + number, outcome);
                measure_at_one_broker(group, interrupt, &mut finish);
            }
        }
        first += group.len();
    }
}

/// The arguments of a command `gridhaul measure latency`, with options that do not concern its result.
///
/// # Errors
/// The command is not valid, or an option has no effect.
pub(super) fn parse(command: &str) -> anyhow::Result<RunArgs> {
    parse_words(command.strip_prefix("gridhaul ").unwrap_or(command).split(' ').map(str::to_owned))
}

/// As [`parse`], with the words of the command after `gridhaul`.
///
/// # Errors
/// As [`parse`].
pub(super) fn parse_words(words: impl Iterator<Item = String>) -> anyhow::Result<RunArgs> {
    match parse_command(words)? {
        Command::Latency(args) => Ok(args.run),
        other => bail!("expected a command `latency`, found {other:?}"),
    }
}

/// The arguments of a command `gridhaul measure outage`, as [`parse`].
///
/// # Errors
/// As [`parse`].
pub(super) fn parse_outage(command: &str) -> anyhow::Result<OutageArgs> {
    let words = command.strip_prefix("gridhaul ").unwrap_or(command).split(' ');
    match parse_command(words.map(str::to_owned))? {
        Command::Outage(args) => Ok(args),
        other => bail!("expected a command `outage`, found {other:?}"),
    }
}

fn parse_command(words: impl Iterator<Item = String>) -> anyhow::Result<Command> {
    let words = words.chain(["--no-floor", "--quiet"].map(str::to_owned));
    let matches = Cli::command().try_get_matches_from(words)?;
    let command = Cli::from_arg_matches(&matches)?.command;
    command.check_options(&matches)?;
    Ok(command)
}

fn measure(run: &RunArgs, interrupt: &Interrupt) -> Outcome {
    run.out.as_deref().map_or(Ok(()), create)?;
    Ok(CellResult::new(&execute_until(run, interrupt, None)?))
}

/// Whether the broker of a run is RabbitMQ, and this program starts it.
fn shares_broker(run: &RunArgs) -> bool {
    let is_rabbitmq = match run.common.protocol {
        ProtocolName::Amqp091 | ProtocolName::Amqp10 => true,
        ProtocolName::Mqtt => run.common.connection.broker_program == MqttBroker::Rabbitmq,
        _ => false,
    };
    is_rabbitmq && run.common.connection.broker.is_none() && !run.common.connection.tls
}

/// The run with a broker that is running already.
pub(super) fn at_broker(run: &RunArgs, broker: &Broker) -> RunArgs {
    let mut run = run.clone();
    let BrokerAddress { address, credentials, .. } = match Selection::new(&run.common) {
        Selection::Broker(clients) => broker.address_for(&clients.protocol),
        _ => broker.address(),
    };
    run.common.connection.broker = Some(BrokerUrl::plain(address, credentials));
    run
}

fn has_same_place(a: &RunArgs, b: &RunArgs) -> bool {
    let key = |run: &RunArgs| {
        let connection = &run.common.connection;
        let place = &run.common.place;
        let network =
            (place.scenario.clone(), place.system.clone(), place.flow.clone(), place.reverse);
        let tcp = (connection.congestion_control, connection.receive_window);
        (network, place.subscriber, tcp, connection.broker_nodelay())
    };
    key(a) == key(b)
}

/// Measures runs with the same network and one broker. If network or broker fail, so do the runs that are left.
fn measure_at_one_broker(
    runs: &[RunArgs],
    interrupt: &Interrupt,
    finish: &mut dyn FnMut(usize, Outcome),
) {
    let mut measured = 0;
    let mut measure = || -> anyhow::Result<()> {
        let first = &runs[0];
        let place = Place::of_protocol(&first.common)?;
        let settings = first.common.connection.broker_settings();
        let prepare = |sites: &Sites<'_>| Ok(BrokerProgram::RabbitMq.start(&sites.to, settings)?);
        place.enter(carrier(first.common.protocol), prepare, |sites, broker| {
            for run in runs.iter().take_while(|_| !interrupt.is_set()) {
                let run = at_broker(run, &broker);
                let outcome = run.out.as_deref().map_or(Ok(()), create);
                let outcome =
                    outcome.and_then(|()| start(&run.common, sites)).and_then(|started| {
                        at_sites(
                            &run,
                            (sites, started),
                            place.name.clone(),
                            (None, interrupt.flag()),
                        )
                    });
                finish(
                    measured,
                    outcome.map(|(mut run, _)| {
                        // To the run, the broker is one that another program has started.
                        for (key, value) in &mut run.settings {
                            match key.as_str() {
                                "broker_program" => broker.name().clone_into(value),
                                "broker_nodelay" => *value = settings.nodelay.to_string(),
                                _ => {}
                            }
                        }
                        CellResult::new(&run)
                    }),
                );
                measured += 1;
            }
            Ok(())
        })
    };
    if let Err(error) = measure() {
        let reason = message(&error);
        for number in measured..runs.len() {
            finish(number, Err(anyhow::anyhow!(reason.clone())));
        }
    }
}
