//! Results of an outage in a table and JSON.

use gridhaul_report::TextTable;
use gridhaul_report::format::UNKNOWN;
use gridhaul_scenario::units::Duration;
use serde_json::{Value, json};

use super::run::title;
use crate::measurement::Disturbance;
use crate::method::Interruption;
use crate::run::{OBSERVED_INTERVALS, OBSERVED_MIN, Recovery, Run, observed};

/// The recovery from the outage of a run, if its messages show one.
pub(super) fn recovery(run: &Run, disturbance: &Disturbance) -> Option<Recovery> {
    let outage = match disturbance {
        Disturbance::Links(outage) => Some(outage.times()),
        Disturbance::Broker(_) => run.broker_outage,
        Disturbance::Observed(_) => None,
    };
    Recovery::new(run, outage?)
}

/// The outage as JSON.
pub(super) fn document(run: &Run, disturbance: &Disturbance, recovery: Option<&Recovery>) -> Value {
    let seconds = |duration: Option<Duration>| duration.map(Duration::as_secs_f64);
    let is_observed = disturbance.is_observed();
    let gap = gap(run, is_observed, recovery);
    json!({
        "of": disturbance.name(),
        "length_s": (!is_observed).then(|| disturbance.length().as_secs_f64()),
        "broker_unavailable_s": seconds(run.broker_outage.map(|[start, end]| end.since(start))),
        "without_arrival_s": seconds(gap.as_ref().map(Interruption::length)),
        "first_arrival_after_end_s": seconds(recovery.and_then(|recovery| recovery.first_after)),
    })
}

/// The time without an arrival that is that of the outage.
fn gap(run: &Run, is_observed: bool, recovery: Option<&Recovery>) -> Option<Interruption> {
    if is_observed { observed(run) } else { recovery.map(|recovery| recovery.gap) }
}

/// The length of a time without an arrival.
pub(super) fn length(interruption: &Interruption) -> String {
    bounded(interruption, interruption.length())
}

/// A time that follows from one without an arrival, which may be longer.
fn bounded(interruption: &Interruption, time: Duration) -> String {
    let at_least = if interruption.is_lower_bound() { "at least " } else { "" };
    format!("{at_least}{:.3} s", time.as_secs_f64())
}

/// The table of an outage.
pub(super) fn table(
    run: &Run,
    disturbance: &Disturbance,
    recovery: Option<&Recovery>,
) -> TextTable {
    let summary = &run.outcome.summary;
    let counts = summary.counts;
    let seconds = |duration: Duration| format!("{:.3} s", duration.as_secs_f64());
    let known = |duration: Option<Duration>| duration.map_or_else(|| UNKNOWN.into(), seconds);
    let is_observed = disturbance.is_observed();
    let mut rows = Vec::new();
    if !is_observed {
        rows.push(("length of the outage", seconds(disturbance.length())));
    }
    rows.extend(
        run.broker_outage.map(|[start, end]| {
            ("until the broker accepted connections", seconds(end.since(start)))
        }),
    );
    let longest = summary.interruption().as_ref().map(length);
    rows.push(("longest time without an arrival", longest.unwrap_or_else(|| UNKNOWN.into())));
    if !is_observed {
        let first_after = known(recovery.and_then(|recovery| recovery.first_after));
        rows.push(("first arrival after the end of the outage", first_after));
    }
    // Another time without an arrival states nothing about the outage.
    let found = gap(run, is_observed, recovery);
    let of_gap = |text: &dyn Fn(&Interruption) -> Option<String>| {
        found.as_ref().and_then(text).unwrap_or_else(|| UNKNOWN.into())
    };
    let survival = |found: &Interruption| bounded(found, found.survival_time(summary.interval));
    rows.extend([
        (
            "shortest survival time that bridges it (3GPP TS 22.104)",
            of_gap(&|found| Some(survival(found))),
        ),
        ("lost in this time", of_gap(&|found| Some(found.lost.to_string()))),
        (
            "backlog: arrived late after this time",
            of_gap(&|found| (!found.is_open).then(|| found.backlog.to_string())),
        ),
        ("until the backlog had drained", of_gap(&|found| found.drain().map(seconds))),
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
        note: note(run, is_observed, recovery),
    }
}

/// Remedy if the messages show no outage.
fn note(run: &Run, is_observed: bool, recovery: Option<&Recovery>) -> Option<String> {
    if is_observed {
        let min = OBSERVED_MIN.as_secs_f64();
        return observed(run).is_none().then(|| {
            format!(
                "No outage was found: the longest time without an arrival is shorter than \
                 {OBSERVED_INTERVALS} intervals between \
                 messages, or than {min} s. Interrupt the network while the messages are sent."
            )
        });
    }
    if recovery.is_some_and(|recovery| recovery.gap.is_open) {
        let reason = "No message arrived after the outage had begun: send more messages.";
        return Some(reason.to_owned());
    }
    recovery.is_none().then(|| {
        format!(
            "The longest time without an arrival does not contain the end of the outage. If no \
             message arrived before it, begin \
             later with --start (the schedule began {:.1} s after the network); if none arrived \
             after it, send more messages.",
            run.outcome.start.as_secs_f64()
        )
    })
}
