//! `gridhaul measure latency`.

use std::process::ExitCode;

use gridhaul_measure::method::Distribution;
use gridhaul_report::TextTable;

use super::repetitions;
use super::report::{SHARES, millis, title};
use super::run::Run;
use crate::args::RepeatedArgs;

/// Measures the latency of messages.
pub(crate) fn run(args: &RepeatedArgs) -> anyhow::Result<ExitCode> {
    repetitions::run(args, "latency", table)
}

fn table(run: &Run) -> TextTable {
    let summary = &run.outcome.summary;
    let headers =
        ["ms", "messages", "p2", "p25", "p50", "p75", "p98", "p98 at most", "p99.9", "max", "mean"];
    let mut rows = vec![
        row("from the schedule", &summary.from_schedule),
        row("from the send time", &summary.from_send),
        row("generator lateness", &summary.lateness),
    ];
    rows.extend(run.floor.as_ref().map(|floor| row("floor (null protocol)", floor)));
    let counts = summary.counts;
    let note = format!(
        "{} messages after the warm-up, of which {} were lost",
        counts.messages, counts.lost
    );
    TextTable {
        title: title(run),
        headers: headers.map(String::from).to_vec(),
        rows,
        key_columns: 1,
        note: Some(note),
    }
}

fn row(name: &str, distribution: &Distribution) -> Vec<String> {
    let mut cells = vec![name.to_owned(), distribution.count().to_string()];
    for share in SHARES {
        let quantile = distribution.quantile(share);
        cells.push(millis(quantile.map(|quantile| quantile.value)));
        if share == 0.98 {
            cells.push(millis(quantile.and_then(|quantile| quantile.high)));
        }
    }
    cells.extend([millis(distribution.max()), millis(distribution.mean())]);
    cells
}
