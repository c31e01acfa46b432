//! Statements about outages: sections 4.2, 4.3 and 4.5.

use super::estimate::{all, certain};
use super::{AMQP, Finding, name};
use crate::experiment::reserve::outages::{Client, Fault, OutageCell};

/// A message interval, and the delay of the link with its jitter: who resumes within it resumes at
/// once.
const AT_ONCE_S: f64 = 0.05;

/// Messages that differ from those sent in an outage because its ends do not coincide with
/// messages.
const EDGES: f64 = 4.0;

/// The verdict of a statement; `None` for a name of another part.
pub(super) fn find(claim: &str, cells: &[OutageCell]) -> Option<Finding> {
    let stays_lost = |protocol, fault| {
        let found = of(cells, protocol, Some(fault), Client::StaysLost);
        together(found, |cell| cell.recovers().map(|recovers| !recovers))
    };
    Some(match claim {
        "outage-sv-resumes-at-once" | "outage-duration-connectionless" => {
            let found: Vec<_> = connectionless(cells, "sv").collect();
            let longest = found.iter().map(|cell| cell.case.length_s).reduce(f64::max);
            let is_duration = claim == "outage-duration-connectionless";
            let used =
                found.into_iter().filter(|cell| is_duration || Some(cell.case.length_s) == longest);
            together(used, resumes_at_once)
        }
        "outage-udp-resumes-at-once" => together(connectionless(cells, "udp"), resumes_at_once),
        "outage-link-mqtt-stays-lost" => stays_lost("mqtt", Fault::Link),
        "outage-link-amqp-stays-lost" => stays_lost(AMQP, Fault::Link),
        "outage-broker-mqtt-stays-lost" => stays_lost("mqtt", Fault::Broker),
        "outage-broker-amqp-stays-lost" => stays_lost(AMQP, Fault::Broker),
        "outage-any-client-stays-lost" => {
            let others = cells.iter().filter(|cell| recovering(cell));
            let (verdict, about) =
                together(others, |cell| cell.recovers().map(|recovers| !recovers));
            (verdict, about)
        }
        "outage-tcp-resumes-later" => later(cells),
        "outage-duration-tcp" => {
            let patient = of(cells, "mqtt", Some(Fault::Link), Client::Patient);
            let times: Vec<_> =
                patient.map(|cell| (cell.case.length_s, cell.first_arrival_after_end_s)).collect();
            let known: Option<Vec<_>> = times.iter().map(|(_, time)| *time).collect();
            let grows =
                known.filter(|times| times.len() > 1).map(|times| times.is_sorted_by(|a, b| a < b));
            let text = |(length, time): &(f64, Option<f64>)| {
                format!("{} s after an outage of {length} s", seconds(*time))
            };
            let about = times.iter().map(text).collect::<Vec<_>>().join(", ");
            (certain(grows), about)
        }
        _ => return None,
    })
}

/// The outages of a protocol for clients of a kind.
fn of<'a>(
    cells: &'a [OutageCell],
    protocol: &'a str,
    fault: Option<Fault>,
    client: Client,
) -> impl Iterator<Item = &'a OutageCell> {
    cells.iter().filter(move |cell| {
        let is_fault = fault.is_none_or(|fault| cell.case.fault == fault);
        cell.case.protocol == protocol && is_fault && cell.case.client == client
    })
}

fn connectionless<'a>(
    cells: &'a [OutageCell],
    protocol: &'a str,
) -> impl Iterator<Item = &'a OutageCell> {
    of(cells, protocol, None, Client::Connectionless)
}

/// Whether a client of the outage may recover.
const fn recovering(cell: &OutageCell) -> bool {
    matches!(cell.case.client, Client::Reconnects | Client::Patient)
}

/// Whether the first message after the outage arrives, and those that were sent meanwhile are lost.
fn resumes_at_once(cell: &OutageCell) -> Option<bool> {
    let first = cell.first_arrival_after_end_s?;
    let expected = cell.case.length_s / cell.interval_s;
    let loses_outage = (cell.lost as f64 - expected).abs() <= EDGES;
    Some(first <= cell.interval_s + AT_ONCE_S && loses_outage)
}

/// Each protocol over TCP that recovers from an outage of the link does so later than Sampled
/// Values.
fn later(cells: &[OutageCell]) -> Finding {
    let slowest = connectionless(cells, "sv").filter_map(|cell| cell.first_arrival_after_end_s);
    let slowest = slowest.reduce(f64::max);
    let over_tcp = cells.iter().filter(|cell| cell.case.fault == Fault::Link && recovering(cell));
    let (verdict, about) =
        together(over_tcp, |cell| Some(cell.first_arrival_after_end_s? > slowest?));
    (verdict, format!("Sampled Values {} s | {about}", seconds(slowest)))
}

/// All outages satisfy a condition.
fn together<'a>(
    cells: impl Iterator<Item = &'a OutageCell>,
    holds: impl Fn(&OutageCell) -> Option<bool>,
) -> Finding {
    let (mut verdicts, mut about) = (Vec::new(), Vec::new());
    for cell in cells {
        verdicts.push(certain(holds(cell)));
        about.push(text(cell));
    }
    let about = if about.is_empty() { "not measured".into() } else { about.join(" | ") };
    (all(verdicts), about)
}

fn text(cell: &OutageCell) -> String {
    let OutageCell { case, lost, refused, .. } = cell;
    let what = match case.fault {
        Fault::Link => format!("link down for {} s", case.length_s),
        Fault::Broker => format!("broker away for {} s", seconds(cell.unavailable_s)),
    };
    let after = match (cell.recovers(), cell.first_arrival_after_end_s) {
        (Some(false), _) => "no later message arrives".to_owned(),
        (_, Some(first)) => format!("resumes {first:.2} s after the end"),
        (Some(true), None) => "later messages arrive".to_owned(),
        (None, None) => "unknown".to_owned(),
    };
    let (protocol, client) = (name(&case.protocol), case.client.text());
    let broker = if case.mosquitto { " (mosquitto)" } else { "" };
    format!("{protocol}{broker}, {client}, {what}: {after}, {lost} lost, {refused} refused")
}

fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "unknown".into(), |seconds| format!("{seconds:.2}"))
}
