//! `gridhaul measure latency`.

use std::process::ExitCode;

use gridhaul_report::TextTable;

use super::path::kernel_rows;
use super::report::{LATENCY_HEADERS, create, distribution_row as row, judge_and_publish, title};
use super::run::{Run, execute};
use super::verdicts::classes;
use crate::args::RunArgs;

/// Measures the latency of messages.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    args.out.as_deref().map_or(Ok(()), create)?;
    classes(args.class.as_deref())?;
    let run = execute(args, |_| {})?;
    judge_and_publish(args, "latency", &run, table(&run))
}

fn table(run: &Run) -> TextTable {
    let summary = &run.outcome.summary;
    let mut rows = vec![
        row("from the schedule", &summary.from_schedule),
        row("from the send time", &summary.from_send),
        row("generator lateness", &summary.lateness),
    ];
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
