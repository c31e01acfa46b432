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
    let gap = if is_observed {
        observed(run).map(|interruption| interruption.length())
    } else {
        recovery.map(|recovery| recovery.gap)
    };
    json!({
        "of": disturbance.name(),
        "length_s": (!is_observed).then(|| disturbance.length().as_secs_f64()),
        "broker_unavailable_s": seconds(run.broker_outage.map(|[start, end]| end.since(start))),
        "without_arrival_s": seconds(gap),
        "first_arrival_after_end_s": seconds(recovery.map(|recovery| recovery.first_after)),
    })
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
    let interruption = summary.interruption();
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
    rows.push((
        "longest time without an arrival",
        known(interruption.map(|interruption| interruption.length())),
    ));
    if !is_observed {
        let first_after = known(recovery.map(|recovery| recovery.first_after));
        rows.push(("first arrival after the end of the outage", first_after));
    }
    let survival_time =
        interruption.map(|interruption| interruption.survival_time(summary.interval));
    let number = |of: fn(&Interruption) -> u64| {
        interruption
            .as_ref()
            .map_or_else(|| UNKNOWN.into(), |interruption| of(interruption).to_string())
    };
    rows.extend([
        ("shortest survival time that bridges it (3GPP TS 22.104)", known(survival_time)),
        ("lost in this time", number(|interruption| interruption.lost)),
        ("backlog: arrived late after this time", number(|interruption| interruption.backlog)),
        (
            "until the backlog had drained",
            known(interruption.and_then(|interruption| interruption.drain())),
        ),
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
