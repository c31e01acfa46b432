//! The table of latencies.

use gridhaul_report::TextTable;
use gridhaul_scenario::units::{counted, was_or_were};

use super::distribution::{LATENCY_HEADERS, distribution_row as row};
use super::path::kernel_rows;
use super::run::title;
use crate::run::Run;

/// The distributions of a run.
pub(super) fn table(run: &Run) -> TextTable {
    let summary = &run.outcome.summary;
    let measured = run.distributions();
    let mut rows: Vec<_> = measured.into_iter().map(|(name, latency)| row(name, latency)).collect();
    rows.extend(summary.kernel.as_deref().into_iter().flat_map(kernel_rows));
    rows.extend(run.floor.as_ref().map(|floor| row("floor (null protocol)", floor)));
    let counts = summary.counts;
    let other = [("refused by the protocol", counts.refused), ("corrupt", counts.corrupt)];
    let other = other.iter().filter(|(_, count)| *count > 0);
    let other: String = other.map(|(kind, count)| format!(", {count} {kind}")).collect();
    let note = format!(
        "{} after the warm-up, of which {} {} lost{other}",
        counted(counts.messages, "message"),
        counts.lost,
        was_or_were(counts.lost)
    );
    TextTable {
        title: title(run),
        headers: LATENCY_HEADERS.map(String::from).to_vec(),
        rows,
        key_columns: 1,
        note: Some(note),
    }
}
