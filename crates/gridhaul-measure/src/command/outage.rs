//! `gridhaul measure outage`.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use gridhaul_report::TextTable;
use gridhaul_scenario::scenario::{Outage, OutageMode, Scenario};
use gridhaul_scenario::units::{Duration, Instant};
use serde_json::json;

use super::report::{create, publish, title};
use super::run::{Run, execute};
use crate::args::OutageArgs;

/// Interrupts all links of a scenario and measures the recovery.
pub(crate) fn run(args: &OutageArgs) -> anyhow::Result<ExitCode> {
    let scenario = args.run.scenario.as_ref();
    scenario.context("an outage needs an emulated network\n  help: add --scenario FILE")?;
    args.run.out.as_deref().map_or(Ok(()), create)?;
    let run = execute(&args.run, |scenario| interrupt(scenario, args.start, args.length))?;
    let recovery = Recovery::new(&run, args)?;
    let gap = recovery.gap.as_secs_f64();
    let after = recovery.first_after.as_secs_f64();
    let additional = [(
        "outage",
        json!({
            "length_s": args.length.as_secs_f64(),
            "without_arrival_s": gap,
            "first_arrival_after_end_s": after,
        }),
    )];
    publish(&args.run, "outage", &run, table(&run, args, &recovery), additional)
}

/// What the messages show of the outage.
#[derive(Debug)]
struct Recovery {
    /// Longest time without an arrival.
    gap: Duration,
    /// Time from the end of the outage to the next arrival.
    first_after: Duration,
}

impl Recovery {
    fn new(run: &Run, args: &OutageArgs) -> anyhow::Result<Self> {
        let outcome = &run.outcome;
        let [last, first] = outcome.summary.longest_gap().context("no message arrived")?;
        let [begin, end] = [args.start, args.start + args.length].map(|at| Instant::ZERO + at);
        let first_on_network = outcome.start + first.since(Instant::ZERO);
        let last_on_network = outcome.start + last.since(Instant::ZERO);
        ensure!(
            first_on_network >= end && last_on_network < end && outcome.start < begin,
            "no message arrived before or after the outage\n  help: begin later with --start, or send more messages: the \
             schedule began {:.1} s after the network, with a warm-up of {:.1} s",
            outcome.start.as_secs_f64(),
            run.plan.schedule.warm_up().as_secs_f64()
        );
        Ok(Self { gap: first.since(last), first_after: first_on_network.since(end) })
    }
}

/// Adds an outage to both directions of all links.
fn interrupt(scenario: &mut Scenario, start: Duration, length: Duration) {
    for link in scenario.link.values_mut() {
        let directions = [&mut link.both, &mut link.forward, &mut link.reverse];
        for direction in directions.into_iter().flatten() {
            let outage = Outage { start, length, every: None, mode: OutageMode::Drop };
            direction.outage.push(outage);
        }
    }
}

fn table(run: &Run, args: &OutageArgs, recovery: &Recovery) -> TextTable {
    let counts = run.outcome.summary.counts;
    let seconds = |duration: Duration| format!("{:.3} s", duration.as_secs_f64());
    let rows = [
        ("length of the outage", seconds(args.length)),
        ("longest time without an arrival", seconds(recovery.gap)),
        ("first arrival after the end of the outage", seconds(recovery.first_after)),
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
        note: None,
    }
}
