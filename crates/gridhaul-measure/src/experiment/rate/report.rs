//! Results of a search of the highest rate.

use gridhaul_report::{TextTable, format};
use serde_json::{Value, json};

use super::Search;
use crate::measurement::{Measurement, RateExperiment};
use crate::method::RateLimit;
use crate::report::Report;

/// The report of a search.
pub(in crate::experiment) fn report(
    measurement: &Measurement,
    settings: &RateExperiment,
    search: &Search,
) -> Report {
    let tables = vec![table(settings, search)];
    let document = document(measurement, settings, search);
    Report { tables, document, is_class_not_met: false }
}

fn document(measurement: &Measurement, settings: &RateExperiment, search: &Search) -> Value {
    json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "command": "rate",
        "protocol": search.protocol,
        "settings": search.settings.to_json(),
        "network": search.network,
        "message_bytes": measurement.message_bytes(),
        "sustained_per_s": search.found.sustained(),
        "failed_per_s": search.found.failed(),
        "disturbed_per_s": search.found.disturbed(),
        "limited_by": match search.found.limit() {
            RateLimit::Network => "network",
            RateLimit::Machine => "machine",
            RateLimit::Range => "range",
        },
        "confirmations": settings.confirmations,
        "complete": search.found.next_rate().is_none(),
        "trials": search.trials,
        "fault": search.fault,
    })
}

fn table(settings: &RateExperiment, search: &Search) -> TextTable {
    let known = |value: Option<f64>| value.map_or_else(|| format::UNKNOWN.into(), format::number);
    let millis = |seconds: Option<f64>| known(seconds.map(|time| (time * 1e6).round() / 1e3));
    let rows = search.trials.iter().map(|trial| {
        vec![
            trial.reason.as_deref().unwrap_or("sustained").to_owned(),
            format::number(trial.rate_per_s.round()),
            trial.messages.to_string(),
            trial.missing.to_string(),
            millis(trial.medians_s[0]),
            millis(trial.medians_s[1]),
            millis(trial.lateness_p98_s),
        ]
    });
    let note = note(settings, search);
    let headers = [
        "trial",
        "rate (1/s)",
        "messages",
        "missing",
        "median, first half (ms)",
        "second half (ms)",
        "lateness p98 (ms)",
    ];
    TextTable {
        title: format!("{}, {}", search.protocol, search.network),
        headers: headers.map(String::from).to_vec(),
        rows: rows.collect(),
        key_columns: 1,
        note: Some([note, search.settings.to_string()].join("\n").trim_end().to_owned()),
    }
}

/// The result in words.
fn note(settings: &RateExperiment, search: &Search) -> String {
    let found = &search.found;
    let known = |value: Option<f64>| {
        value.map_or_else(|| format::UNKNOWN.into(), |rate| format::number(rate.round()))
    };
    let sustained = known(found.sustained());
    if found.next_rate().is_some() {
        return format!(
            "ended early: the highest rate that was sustained until then is {sustained} \
             messages/s, without confirmation; lowest rate that failed: {} messages/s",
            known(found.failed())
        );
    }
    let shown = format!(
        "{sustained} messages/s in {} trials of {} s",
        settings.confirmations + 1,
        settings.trial.as_secs_f64()
    );
    let disturbed = known(found.disturbed());
    match (found.limit(), found.sustained()) {
        (RateLimit::Network, _) => format!(
            "highest sustained rate: {shown}; lowest rate that failed: {} messages/s",
            known(found.failed())
        ),
        (RateLimit::Machine, Some(_)) => format!(
            "sustained rate: at least {shown}; the limit is this machine, which disturbed all \
             trials at {disturbed} messages/s"
        ),
        (RateLimit::Machine, None) => format!(
            "sustained rate: unknown; the limit is this machine, which disturbed all trials at \
             {disturbed} messages/s"
        ),
        (RateLimit::Range, _) => {
            format!(
                "sustained rate: at least {shown}, the highest rate of the search; raise \
                 --rate-max to continue"
            )
        }
    }
}
