//! `gridhaul measure outage`.

use std::process::ExitCode;

use gridhaul_report::TextTable;
use gridhaul_report::format::UNKNOWN;
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::json;

use super::disturbance::Disturbance;
use super::path;
use super::report::{create, publish, title};
use super::run::{Run, execute};
use crate::args::{FailingPart, OutageArgs};

/// Interrupts all links of a scenario, or kills the broker, and measures the recovery.
pub(crate) fn run(args: &OutageArgs) -> anyhow::Result<ExitCode> {
    let OutageArgs { part, start, length, .. } = *args;
    let disturbance = Disturbance { part, start, length };
    disturbance.check(&args.run)?;
    args.run.out.as_deref().map_or(Ok(()), create)?;
    // A message may wait for the end of the outage, and then for a retransmission whose timeout has doubled during the outage
    // (RFC 6298, rule 5.5) and so lasts no longer than the outage did.
    let mut arguments = args.run.clone();
    arguments.common.horizon += length * 2;
    let run = execute(&arguments, Some(&disturbance))?;
    let outage = match part {
        FailingPart::Links => Some([start, start + length].map(|at| Instant::ZERO + at)),
        FailingPart::Broker => run.broker_outage,
    };
    let recovery = outage.and_then(|outage| Recovery::new(&run, outage));
    let seconds = |duration: Option<Duration>| duration.map(Duration::as_secs_f64);
    let document = json!({
        "of": part.name(),
        "length_s": length.as_secs_f64(),
        "broker_unavailable_s": seconds(run.broker_outage.map(|[start, end]| end.since(start))),
        "without_arrival_s": seconds(recovery.as_ref().map(|it| it.gap)),
        "first_arrival_after_end_s": seconds(recovery.as_ref().map(|it| it.first_after)),
    });
    let table = table(&run, args, recovery.as_ref());
    let tables = std::iter::once(table).chain(path::table(&run)).collect();
    publish(&arguments, "outage", &run, tables, [("outage", document)])
}

/// What the messages show of the outage.
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
        let gap = outcome.summary.longest_gap()?;
        let [last, first] = gap.map(|at| outcome.start + at.since(Instant::ZERO));
        let contains = last < end && first >= end && outcome.start < begin;
        contains.then(|| Self { gap: first.since(last), first_after: first.since(end) })
    }
}

fn table(run: &Run, args: &OutageArgs, recovery: Option<&Recovery>) -> TextTable {
    let counts = run.outcome.summary.counts;
    let seconds = |duration: Duration| format!("{:.3} s", duration.as_secs_f64());
    let known = |duration: Option<Duration>| duration.map_or_else(|| UNKNOWN.into(), seconds);
    let gap = run.outcome.summary.longest_gap().map(|[last, first]| first.since(last));
    let note = format!(
        "The longest time without an arrival does not contain the end of the outage. If no message arrived before it, begin \
         later with --start (the schedule began {:.1} s after the network); if none arrived after it, send more messages.",
        run.outcome.start.as_secs_f64()
    );
    let mut rows = vec![("length of the outage", seconds(args.length))];
    rows.extend(
        run.broker_outage.map(|[start, end]| {
            ("until the broker accepted connections", seconds(end.since(start)))
        }),
    );
    rows.extend([
        ("longest time without an arrival", known(gap)),
        ("first arrival after the end of the outage", known(recovery.map(|it| it.first_after))),
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
        note: recovery.is_none().then_some(note),
    }
}
