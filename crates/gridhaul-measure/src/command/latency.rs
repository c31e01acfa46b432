//! `gridhaul measure latency`.

use std::process::ExitCode;

use gridhaul_report::TextTable;
use gridhaul_report::format::count;

use super::path::kernel_rows;
use super::repetitions;
use super::report::{LATENCY_HEADERS, distribution_row as row, title};
use super::run::Run;
use crate::args::PathArgs;

/// Measures the latency of messages.
pub(crate) fn run(args: &PathArgs) -> anyhow::Result<ExitCode> {
    repetitions::run(args, "latency", table)
}

fn table(run: &Run) -> TextTable {
    let summary = &run.outcome.summary;
    let measured = run.distributions();
    let mut rows: Vec<_> = measured.into_iter().map(|(name, it)| row(name, it)).collect();
    rows.extend(summary.kernel.as_deref().into_iter().flat_map(kernel_rows));
    rows.extend(run.floor.as_ref().map(|floor| row("floor (null protocol)", floor)));
    let counts = summary.counts;
    let other = [("refused by the protocol", counts.refused), ("corrupt", counts.corrupt)];
    let other = other.iter().filter(|(_, count)| *count > 0);
    let other: String = other.map(|(fate, count)| format!(", {count} {fate}")).collect();
    let note = format!(
        "{} after the warm-up, {} of them lost{other}",
        count(counts.messages, "message"),
        counts.lost
    );
    TextTable {
        title: title(run),
        headers: LATENCY_HEADERS.map(String::from).to_vec(),
        rows,
        key_columns: 1,
        note: Some(note),
    }
}
