//! `gridhaul measure latency`.

use std::process::ExitCode;

use gridhaul_measure::method::Distribution;
use gridhaul_report::TextTable;

use super::remote;
use super::report::{SHARES, create, judge_and_publish, millis, title};
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
    let headers =
        ["ms", "messages", "p2", "p25", "p50", "p75", "p98", "p98 at most", "p99.9", "max", "mean"];
    let measured = run.distributions();
    let mut rows: Vec<_> = measured.into_iter().map(|(name, it)| row(name, it)).collect();
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
