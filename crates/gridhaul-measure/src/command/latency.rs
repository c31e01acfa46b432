//! `gridhaul measure latency`.

use std::process::ExitCode;

use gridhaul_report::TextTable;

use super::path::kernel_rows;
use super::remote;
use super::report::{LATENCY_HEADERS, create, distribution_row as row, judge_and_publish, title};
use super::run::{Run, execute};
use super::verdicts::classes;
use crate::args::PathArgs;

/// Measures the latency of messages.
pub(crate) fn run(args: &PathArgs) -> anyhow::Result<ExitCode> {
    let PathArgs { run: args, remote: other } = args;
    args.out.as_deref().map_or(Ok(()), create)?;
    classes(args.class.as_deref())?;
    let run = match other.agent {
        Some(agent) => remote::execute(args, other, agent)?,
        None => execute(args, |_| {})?,
    };
    judge_and_publish(args, "latency", &run, table(&run))
}

fn table(run: &Run) -> TextTable {
    let summary = &run.outcome.summary;
    let measured = run.distributions();
    let mut rows: Vec<_> = measured.into_iter().map(|(name, it)| row(name, it)).collect();
    rows.extend(summary.kernel.as_deref().into_iter().flat_map(kernel_rows));
    rows.extend(run.floor.as_ref().map(|floor| row("floor (null protocol)", floor)));
    let counts = summary.counts;
    let note = format!(
        "{} messages after the warm-up, of which {} were lost",
        counts.messages, counts.lost
    );
    TextTable {
        title: title(run),
        headers: LATENCY_HEADERS.map(String::from).to_vec(),
        rows,
        key_columns: 1,
        note: Some(note),
    }
}
