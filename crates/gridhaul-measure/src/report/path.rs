//! The path of the messages in a report: the legs of captures and the receive times of the kernel.

use gridhaul_protocols::capture::CapturePoint;
use gridhaul_report::TextTable;
use gridhaul_scenario::units::{counted, was_or_were};
use serde_json::{Map, Value, json};

use super::distribution::{LATENCY_HEADERS, distribution, distribution_row};
use crate::capture::CaptureReport;
use crate::method::{Distribution, KernelSummary, PathSummary, Stage};
use crate::run::Run;

/// Names of the parts for a route through a broker: in tables, and in JSON.
const STAGES: [(Stage, &str, &str); 6] = [
    (Stage::PublisherClient, "publisher: hand-over to packet", "publisher_client"),
    (Stage::ToBroker, "leg 1: publisher to broker", "leg_1"),
    (Stage::Broker, "broker", "broker"),
    (Stage::FromBroker, "leg 2: broker to subscriber", "leg_2"),
    (Stage::SubscriberClient, "subscriber: packet to message", "subscriber_client"),
    (Stage::BetweenClients, "between both clients", "between_clients"),
];

/// The parts of the path that captures saw, with their names.
pub(super) fn stages(path: &PathSummary) -> impl Iterator<Item = (&'static str, &Distribution)> {
    let stages = STAGES.iter().map(|(stage, name, _)| (*name, path.stage(*stage)));
    stages.filter(|(_, distribution)| distribution.count() > 0)
}

/// The table of the path; `None` without captures.
pub(super) fn table(run: &Run) -> Option<TextTable> {
    let report = run.outcome.capture.as_ref()?;
    let path = run.outcome.summary.path.as_deref();
    let rows = path.into_iter().flat_map(stages);
    let mut table = TextTable {
        title: "Path of the messages, from captured packets".into(),
        headers: LATENCY_HEADERS.map(String::from).to_vec(),
        rows: rows.map(|(name, distribution)| distribution_row(name, distribution)).collect(),
        key_columns: 1,
        note: None,
    };
    notes(run, path, report).iter().for_each(|note| table.add_note(note));
    Some(table)
}

/// The rows of the table of latencies for receive times of the kernel.
pub(super) fn kernel_rows(kernel: &KernelSummary) -> [Vec<String>; 2] {
    [
        distribution_row("from the send time to the kernel", &kernel.from_send),
        distribution_row("from the kernel to the program", &kernel.to_program),
    ]
}

/// Receive times of the kernel as JSON.
pub(super) fn kernel_json(kernel: &KernelSummary) -> Value {
    json!({
        "from_send": distribution(&kernel.from_send),
        "to_program": distribution(&kernel.to_program),
    })
}

/// The path as JSON; null without captures.
pub(super) fn json(run: &Run) -> Value {
    let Some(report) = &run.outcome.capture else { return Value::Null };
    let path = run.outcome.summary.path.as_deref();
    let mut stages = Map::new();
    let known = STAGES.iter().filter_map(|(stage, _, key)| Some((key, path?.stage(*stage))));
    for (key, known) in known.filter(|(_, known)| known.count() > 0) {
        stages.insert((*key).to_owned(), distribution(known));
    }
    let lost = |point| path.map_or(0, |path| path.lost_after(point));
    json!({
        "captured_messages": path.map_or(0, |path| path.captured),
        "stages": stages,
        "lost_before_departure": lost(None),
        "lost_after_publisher_departure": lost(Some(CapturePoint::PublisherDeparture)),
        "lost_after_broker_arrival": lost(Some(CapturePoint::BrokerArrival)),
        "lost_after_broker_departure": lost(Some(CapturePoint::BrokerDeparture)),
        "lost_after_subscriber_arrival": lost(Some(CapturePoint::SubscriberArrival)),
        "contradictory": path.map_or(0, |path| path.contradictory),
        "retransmitted_segments": report.counters.retransmissions,
        "missed_bytes": report.counters.missed_bytes,
        "dropped_packets": report.dropped_packets,
        "unusable_packets": report.unusable_packets,
        "clock_step_s": report.clock_step.as_secs_f64(),
        "fault": report.fault,
    })
}

/// Limits of the captures, and the places of lost messages.
fn notes(run: &Run, path: Option<&PathSummary>, report: &CaptureReport) -> Vec<String> {
    let counts = run.outcome.summary.counts;
    let captured = path.map_or(0, |path| path.captured);
    let mut notes = vec![format!(
        "captures saw {captured} of {} after the warm-up, and {}",
        counted(counts.messages, "message"),
        counted(report.counters.retransmissions, "retransmitted TCP segment")
    )];
    if captured == 0 {
        notes.push(format!(
            "the captures contain no message: {} divides or encodes messages, or they pass no \
             network",
            run.protocol
        ));
    }
    let lost = |point| path.map_or(0, |path| path.lost_after(point));
    let places = [
        (None, "before their departure at the publisher"),
        (Some(CapturePoint::PublisherDeparture), "after their departure at the publisher"),
        (Some(CapturePoint::BrokerArrival), "at the broker"),
        (Some(CapturePoint::BrokerDeparture), "after their departure at the broker"),
        (Some(CapturePoint::SubscriberArrival), "after their arrival at the subscriber"),
    ];
    let lost = places.map(|(point, place)| (lost(point), place));
    let lost: Vec<_> = lost.iter().filter(|(count, _)| *count > 0).collect();
    for (count, place) in lost {
        let messages = counted(*count, "message");
        notes.push(format!("{messages} {} lost {place}", was_or_were(*count)));
    }
    let contradictory = path.map_or(0, |path| path.contradictory);
    let problems = [
        (contradictory, "messages have contradictory times"),
        (report.dropped_packets, "packets were not captured, because the buffer was full"),
        (report.unusable_packets, "captured packets have no time, or were truncated"),
        (report.counters.missed_bytes, "bytes of TCP streams were not captured"),
    ];
    let problems = problems.iter().filter(|(count, _)| *count > 0);
    notes.extend(problems.map(|(count, problem)| format!("{count} {problem}")));
    if !report.clock_step.is_zero() {
        notes.push(format!(
            "the times of the captures are invalid: the system's clock was set by {:.3} ms during \
             the run",
            report.clock_step.as_secs_f64() * 1e3
        ));
    }
    notes.extend(report.fault.clone());
    notes
}
