//! `gridhaul measure outage`.

use std::process::ExitCode;

use anyhow::ensure;
use gridhaul_measure::agent::SILENCE;
use gridhaul_measure::method::Interruption;
use gridhaul_report::TextTable;
use gridhaul_report::format::UNKNOWN;
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::{Value, json};

use super::disturbance::Disturbance;
use super::path;
use super::place::Interrupt;
use super::remote::{self, AgentRequest};
use super::report::{create, publish, title};
use super::run::{Run, execute_until};
use crate::args::{FailingPart, OutageArgs, RunArgs};
use crate::terminal::say;

/// Times without an arrival from this number of message intervals on may be an outage that the user caused; shorter ones also follow
/// from losses and jitter.
const OBSERVED_INTERVALS: f64 = 10.0;

/// Shorter times without an arrival also follow from the load of a machine.
const OBSERVED_LEAST: Duration = Duration::from_millis(100);

/// Longest outage with an agent: its session waits for three times as long.
const LENGTH_MAX: Duration = Duration::from_secs(900);

/// Interrupts all links of a scenario, kills the broker, or finds an outage that the user causes, and measures the recovery.
pub(crate) fn run(args: &OutageArgs) -> anyhow::Result<ExitCode> {
    let OutageArgs { start, length, .. } = *args;
    let part = args.part();
    args.run.out.as_deref().map_or(Ok(()), create)?;
    // A message may wait for the end of the outage, and then for a retransmission whose timeout has doubled during the outage
    // (RFC 6298, rule 5.5) and so lasts no longer than the outage did.
    let mut arguments = args.run.clone();
    arguments.common.horizon += length * 2;
    let run = execute(args, &arguments, Disturbance { part, start, length })?;
    let outage = match part {
        FailingPart::Links => Some([start, start + length].map(|at| Instant::ZERO + at)),
        FailingPart::Broker => run.broker_outage,
        FailingPart::Observed => None,
    };
    let recovery = outage.and_then(|outage| Recovery::new(&run, outage));
    let document = document(&run, args, recovery.as_ref());
    let table = table(&run, args, recovery.as_ref());
    let tables = std::iter::once(table).chain(path::table(&run)).collect();
    publish(&arguments, "outage", &run, tables, [("outage", document)])
}

/// Measures with an outage of this program, or one of the user, on this machine or between two.
fn execute(
    args: &OutageArgs,
    arguments: &RunArgs,
    disturbance: Disturbance,
) -> anyhow::Result<Run> {
    let part = disturbance.part;
    let interrupt = Interrupt::new()?;
    if part == FailingPart::Observed && !arguments.common.quiet {
        let time = arguments.messages as f64 / arguments.rate;
        say(format_args!(
            "interrupt the network under test during the messages, which take {time:.0} s after the warm-up"
        ));
    }
    let mut run = match args.remote.agent {
        Some(address) => {
            ensure!(
                part == FailingPart::Observed,
                "--of {}: with --agent, this program interrupts nothing\n  help: leave out --of, and interrupt the network yourself",
                part.name()
            );
            ensure!(
                args.length <= LENGTH_MAX,
                "--length: expected at most {LENGTH_MAX} with --agent"
            );
            // The control channel may be interrupted too, and its TCP waits at most as long again after the outage.
            let silence = SILENCE + args.length * 3;
            let remote = &args.remote;
            let request = AgentRequest { remote, address, is_returned: false, silence };
            remote::execute(arguments, request, &interrupt)?
        }
        None => {
            disturbance.check(arguments)?;
            let disturbs = part != FailingPart::Observed;
            execute_until(arguments, &interrupt, disturbs.then_some(&disturbance))?
        }
    };
    if part == FailingPart::Observed {
        let found = observed(&run).map(|it| [it.start, it.end].map(Instant::as_secs_f64));
        run.outages.extend(found);
    }
    Ok(run)
}

/// The longest time without an arrival, if it may be an outage.
fn observed(run: &Run) -> Option<Interruption> {
    let summary = &run.outcome.summary;
    let least = summary.interval.mul_f64(OBSERVED_INTERVALS).max(OBSERVED_LEAST);
    summary.interruption().filter(|it| it.length() >= least)
}

fn document(run: &Run, args: &OutageArgs, recovery: Option<&Recovery>) -> Value {
    let seconds = |duration: Option<Duration>| duration.map(Duration::as_secs_f64);
    let part = args.part();
    let is_observed = part == FailingPart::Observed;
    let gap =
        if is_observed { observed(run).map(|it| it.length()) } else { recovery.map(|it| it.gap) };
    json!({
        "of": part.name(),
        "length_s": (!is_observed).then(|| args.length.as_secs_f64()),
        "broker_unavailable_s": seconds(run.broker_outage.map(|[start, end]| end.since(start))),
        "without_arrival_s": seconds(gap),
        "first_arrival_after_end_s": seconds(recovery.map(|it| it.first_after)),
    })
}

/// Results of the outage from the messages.
#[derive(Debug)]
pub(super) struct Recovery {
    /// Longest time without an arrival.
    pub(super) gap: Duration,
    /// Time from the end of the outage to the next arrival.
    pub(super) first_after: Duration,
}

impl Recovery {
    /// The recovery from an outage between these times on the clock of the network; `None` if the longest time without an arrival
    /// is not that of the outage.
    pub(super) fn new(run: &Run, [begin, end]: [Instant; 2]) -> Option<Self> {
        let outcome = &run.outcome;
        let found = outcome.summary.interruption()?;
        let [last, first] =
            [found.start, found.end].map(|at| outcome.start + at.since(Instant::ZERO));
        let contains = last < end && first >= end && outcome.start < begin;
        contains.then(|| Self { gap: found.length(), first_after: first.since(end) })
    }
}

fn table(run: &Run, args: &OutageArgs, recovery: Option<&Recovery>) -> TextTable {
    let summary = &run.outcome.summary;
    let counts = summary.counts;
    let seconds = |duration: Duration| format!("{:.3} s", duration.as_secs_f64());
    let known = |duration: Option<Duration>| duration.map_or_else(|| UNKNOWN.into(), seconds);
    let interruption = summary.interruption();
    let is_observed = args.part() == FailingPart::Observed;
    let mut rows = Vec::new();
    if !is_observed {
        rows.push(("length of the outage", seconds(args.length)));
    }
    rows.extend(
        run.broker_outage.map(|[start, end]| {
            ("until the broker accepted connections", seconds(end.since(start)))
        }),
    );
    rows.push(("longest time without an arrival", known(interruption.map(|it| it.length()))));
    if !is_observed {
        let first_after = known(recovery.map(|it| it.first_after));
        rows.push(("first arrival after the end of the outage", first_after));
    }
    let survival_time = interruption.map(|it| it.survival_time(summary.interval));
    let number = |of: fn(&Interruption) -> u64| {
        interruption.as_ref().map_or_else(|| UNKNOWN.into(), |it| of(it).to_string())
    };
    rows.extend([
        ("shortest survival time that bridges it (3GPP TS 22.104)", known(survival_time)),
        ("lost in this time", number(|it| it.lost)),
        ("backlog: arrived late after this time", number(|it| it.backlog)),
        ("until the backlog had drained", known(interruption.and_then(|it| it.drain()))),
        ("messages after the warm-up", counts.messages.to_string()),
        ("lost", counts.lost.to_string()),
        ("refused by the protocol", counts.refused.to_string()),
        ("duplicates", counts.duplicates.to_string()),
        ("reconnections", run.outcome.reconnections.len().to_string()),
    ]);
    TextTable {
        title: title(run),
        headers: ["outage", ""].map(String::from).to_vec(),
        rows: rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect(),
        key_columns: 1,
        note: note(run, is_observed, recovery),
    }
}

/// Remedy if the messages show no outage.
fn note(run: &Run, is_observed: bool, recovery: Option<&Recovery>) -> Option<String> {
    if is_observed {
        let least = OBSERVED_LEAST.as_secs_f64();
        return observed(run).is_none().then(|| {
            format!(
                "No outage was found: the longest time without an arrival is shorter than {OBSERVED_INTERVALS} intervals between \
                 messages, or than {least} s. Interrupt the network while the messages are sent."
            )
        });
    }
    recovery.is_none().then(|| {
        format!(
            "The longest time without an arrival does not contain the end of the outage. If no message arrived before it, begin \
             later with --start (the schedule began {:.1} s after the network); if none arrived after it, send more messages.",
            run.outcome.start.as_secs_f64()
        )
    })
}
