//! The table of lost, corrupt, reordered and refused messages.

use gridhaul_report::TextTable;

use super::outage;
use super::run::title;
use crate::method::Proportion;
use crate::run::Run;

/// The counts of a run.
pub(super) fn table(run: &Run) -> TextTable {
    let summary = &run.outcome.summary;
    let counts = summary.counts;
    let accepted = counts.messages - counts.refused;
    let rows = [
        ("lost", summary.loss()),
        ("corrupt", Proportion { count: counts.corrupt, of: accepted }),
        ("reordered", Proportion { count: counts.reordered, of: accepted }),
        ("refused by the protocol", Proportion { count: counts.refused, of: counts.messages }),
    ];
    let mut note = format!(
        "bounds with 95 % confidence each, for independent messages\n{} duplicates, {} arrivals \
         after the horizon of {} s",
        counts.duplicates,
        run.outcome.arrivals.after_horizon,
        run.plan.horizon.as_secs_f64()
    );
    if let Some(interruption) = summary.interruption() {
        note += &format!("\nlongest time without an arrival: {}", outage::length(&interruption));
    }
    TextTable {
        title: title(run),
        headers: ["", "count", "of", "share", "at least", "at most"].map(String::from).to_vec(),
        rows: rows.iter().map(|(name, proportion)| row(name, *proportion)).collect(),
        key_columns: 1,
        note: Some(note),
    }
}

fn row(name: &str, proportion: Proportion) -> Vec<String> {
    let [low, high] = proportion.bounds(0.95);
    let percent = |share: f64| format!("{:.3} %", share * 100.0);
    vec![
        name.to_owned(),
        proportion.count.to_string(),
        proportion.of.to_string(),
        proportion.share().map_or_else(|| gridhaul_report::format::UNKNOWN.into(), percent),
        percent(low),
        percent(high),
    ]
}
