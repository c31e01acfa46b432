//! `gridhaul measure outage`.

use std::process::ExitCode;

use anyhow::ensure;
use gridhaul_report::TextTable;
use gridhaul_report::format::UNKNOWN;
use gridhaul_scenario::scenario::{Outage, OutageMode, Scenario};
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::json;

use super::path;
use super::report::{create, publish, title};
use super::run::{Run, execute};
use crate::args::OutageArgs;

/// Interrupts all links of a scenario and measures the recovery.
pub(crate) fn run(args: &OutageArgs) -> anyhow::Result<ExitCode> {
    let needed =
        "an outage needs an emulated network\n  help: add --scenario FILE or --system NAME";
    ensure!(args.run.common.place.is_emulated(), needed);
    args.run.out.as_deref().map_or(Ok(()), create)?;
    let run = execute(&args.run, |scenario| interrupt(scenario, args.start, args.length))?;
    let recovery = Recovery::new(&run, args.start, args.length);
    let outage = json!({
        "length_s": args.length.as_secs_f64(),
        "without_arrival_s": recovery.as_ref().map(|it| it.gap.as_secs_f64()),
        "first_arrival_after_end_s": recovery.as_ref().map(|it| it.first_after.as_secs_f64()),
    });
    let table = table(&run, args, recovery.as_ref());
    let tables = std::iter::once(table).chain(path::table(&run)).collect();
    publish(&args.run, "outage", &run, tables, [("outage", outage)])
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
    /// `None` if the longest time without an arrival is not that of the outage.
    pub(super) fn new(run: &Run, start: Duration, length: Duration) -> Option<Self> {
        let outcome = &run.outcome;
        let gap = outcome.summary.longest_gap()?;
        let [last, first] = gap.map(|at| outcome.start + at.since(Instant::ZERO));
        let [begin, end] = [start, start + length].map(|at| Instant::ZERO + at);
        let contains = last < end && first >= end && outcome.start < begin;
        contains.then(|| Self { gap: first.since(last), first_after: first.since(end) })
    }
}

/// Adds an outage to both directions of all links.
pub(super) fn interrupt(scenario: &mut Scenario, start: Duration, length: Duration) {
    for link in scenario.link.values_mut() {
        let directions = [&mut link.both, &mut link.forward, &mut link.reverse];
        for direction in directions.into_iter().flatten() {
            let outage = Outage { start, length, every: None, mode: OutageMode::Drop };
            direction.outage.push(outage);
        }
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
    let rows = [
        ("length of the outage", seconds(args.length)),
        ("longest time without an arrival", known(gap)),
        ("first arrival after the end of the outage", known(recovery.map(|it| it.first_after))),
        ("messages after the warm-up", counts.messages.to_string()),
        ("lost", counts.lost.to_string()),
        ("refused by the protocol", counts.refused.to_string()),
        ("duplicates", counts.duplicates.to_string()),
        ("reconnections", run.outcome.reconnections.len().to_string()),
    ];
    TextTable {
        title: title(run),
        headers: ["outage", ""].map(String::from).to_vec(),
        rows: rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect(),
        key_columns: 1,
        note: recovery.is_none().then_some(note),
    }
}
