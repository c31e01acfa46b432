//! Import of a capture: the estimated link, and the messages of each connection as load traces.

use std::fmt::Write;

use gridhaul_capture::{ConnectionExplanation, Estimate, Explanation, Message};
use gridhaul_scenario::units::{BitRate, Duration};

use super::link_scenario::{
    Direction, Flow, LinkScenario, Sourced, Stack, bernoulli, delay, percent, rate,
};
use super::{File, ImportError};

pub use super::link_scenario::CapturePoint;

/// A scenario and the traces that it names.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The scenario, as TOML.
    pub scenario: String,
    /// Names and contents of the traces, as CSV.
    pub traces: Vec<(String, String)>,
    /// The flows of the scenario, in its order.
    pub flows: Vec<ImportedFlow>,
}

/// A direction of a connection as a flow.
#[derive(Debug, Clone, Copy)]
pub struct ImportedFlow {
    /// Number of the connection.
    pub connection: usize,
    /// Whether the client sends the data.
    pub is_upload: bool,
}

/// Values that replace those of the capture.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Rate of the link, if no connection shows it.
    pub rate: Option<BitRate>,
    /// The end at which the simulation captures packets, on a link of its own.
    pub capture_point: Option<CapturePoint>,
}

/// The scenario of an explained capture.
///
/// # Errors
/// A capture without data, or without a rate that `options` do not contain either.
pub fn import(
    name: &str,
    explanation: &Explanation,
    options: &Options,
) -> Result<Imported, ImportError> {
    let file = File { name, text: "" };
    let with_data =
        explanation.connections.iter().filter(|connection| connection.counters.payload_byte > 0);
    let mut connections: Vec<_> = with_data.collect();
    // The connections of a proxy's other side carry the same data again.
    connections.retain(|connection| {
        !explanation.connections.iter().any(|other| {
            other.proxied_by.as_ref().is_some_and(|leg| leg.number == connection.number)
        })
    });
    if connections.is_empty() {
        let help = "capture the connections while they transfer data";
        return Err(file.error("the capture", "no TCP connection has data", help));
    }
    let forward = direction(file, &connections, true, options)?;
    let reverse = direction(file, &connections, false, options)?;
    let mut traces = Vec::new();
    let (mut flows, mut imported_flows) = (Vec::new(), Vec::new());
    let mut stacks = Vec::new();
    for connection in &connections {
        let stack = stack(connection);
        for (end, messages) in connection.messages.iter().enumerate() {
            let is_upload = end == 0;
            let flow = flow(connection, is_upload, messages, &stack, explanation, &mut traces);
            let imported = ImportedFlow { connection: connection.number, is_upload };
            imported_flows.extend(flow.iter().map(|_| imported));
            flows.extend(flow);
        }
        stacks.push(stack);
    }
    let scenario = LinkScenario {
        origin: vec![
            format!(
                "Imported from {name}: {} TCP connections, {:.1} s.",
                connections.len(),
                explanation.duration_s
            ),
            "Each direction of a connection with data is a flow: the messages that its application"
                .into(),
            "had, reconstructed from its pauses.".into(),
        ],
        title: format!("Link of {name}"),
        // Time for the last message.
        duration: Duration::from_secs((explanation.duration_s * 1.1).ceil() as u64 + 1),
        forward,
        reverse,
        stacks,
        flows,
        capture_point: options.capture_point,
    };
    Ok(Imported { scenario: scenario.to_toml(), traces, flows: imported_flows })
}

/// A direction of the link, from the connections that send in it; without any, from the others.
fn direction(
    file: File<'_>,
    connections: &[&ConnectionExplanation],
    is_upload: bool,
    options: &Options,
) -> Result<Direction, ImportError> {
    let sending: Vec<_> = connections
        .iter()
        .copied()
        .filter(|connection| connection.is_upload == is_upload)
        .collect();
    let is_measured = !sending.is_empty();
    let basis = if is_measured { &sending[..] } else { connections };
    let note = if is_measured { "" } else { "; of the other direction, assumed to be equal" };
    let most = |value: fn(&ConnectionExplanation) -> Option<Estimate>| {
        let known = basis
            .iter()
            .filter_map(|connection| value(connection).map(|estimate| (*connection, estimate)));
        known.max_by_key(|(connection, _)| connection.counters.payload_byte)
    };
    let measured =
        most(|connection| connection.link.rate_bit_per_s).map(|(connection, estimate)| {
            let Estimate { value, interval } = estimate;
            let source = format!(
                "median of the busy periods of connection {}: {:.0} % interval {:.0} to {:.0} \
                 bit/s (order statistics){note}",
                connection.number,
                100.0 * interval.level,
                interval.low,
                interval.high
            );
            Sourced { value: rate(value), source }
        });
    let given =
        options.rate.map(|rate| Sourced { value: rate, source: "the option --rate".to_owned() });
    let rate = given.or(measured).ok_or_else(|| {
        let message = "no connection has filled the link, so that its rate is unknown";
        file.error("the rate", message, "give it with --rate, such as --rate '10 Mbit/s'")
    })?;
    let (fastest, trip) = basis
        .iter()
        .filter_map(|connection| {
            connection.link.round_trip_s.map(|estimate| (*connection, estimate))
        })
        .min_by(|a, b| a.1.value.total_cmp(&b.1.value))
        .ok_or_else(|| {
            let help = "capture the handshake of a connection, or acknowledgements of its data";
            file.error("the delay", "the capture has no round trip", help)
        })?;
    let delay = Sourced {
        value: delay(trip.value / 2.0),
        source: format!(
            "half of the round trip of connection {} without transmission times: {:.0} % \
             interval {:.3} to {:.3} ms in both directions (end point of a distribution)",
            fastest.number,
            100.0 * trip.interval.level,
            trip.interval.low * 1e3,
            trip.interval.high * 1e3
        ),
    };
    let queue = most(|connection| connection.link.buffer_byte).map(|(connection, estimate)| {
        let packets = (estimate.value / 1_500.0).ceil().max(1.0);
        let source = format!(
            "queueing delay before the losses of connection {}: {:.0} to {:.0} B, in packets of \
             1,500 B{note}",
            connection.number, estimate.interval.low, estimate.interval.high
        );
        Sourced { value: format!("\"{packets:.0} packets\""), source }
    });
    let loss = if is_measured { loss(&sending) } else { None };
    Ok(Direction { rate, delay, loss, jitter: None, queue })
}

/// Losses of the connection with most packets: independent, or in bursts if their length differs
/// significantly from that of independent losses.
fn loss(sending: &[&ConnectionExplanation]) -> Option<Sourced<String>> {
    let most = sending.iter().max_by_key(|connection| connection.counters.packets)?;
    let Estimate { value, interval } = most.link.loss.filter(|loss| loss.value > 0.0)?;
    let mut source = format!(
        "connection {}: {:.0} % interval {:.4} to {:.4} % of its packets, without losses of a full \
         queue (Wilson)",
        most.number,
        100.0 * interval.level,
        100.0 * interval.low,
        100.0 * interval.high
    );
    let burst = most.link.burst_packets;
    // Independent losses have runs of 1 / (1 - p) packets.
    let is_bursty = burst.is_some_and(|burst| burst.interval.low > 1.0 / (1.0 - interval.high));
    let value = match burst.filter(|_| is_bursty) {
        Some(burst) => {
            let _ = write!(
                source,
                "; bursts of {:.2} packets ({:.2} to {:.2})",
                burst.value, burst.interval.low, burst.interval.high
            );
            // Of a two-state chain that loses all packets of its bad state.
            let leave = 1.0 / burst.value;
            let enter = leave * value / (1.0 - value).max(1e-9);
            format!(
                "{{ gilbert_elliott = {{ good_to_bad = \"{} %\", bad_to_good = \"{} %\" }} }}",
                percent(enter.min(1.0)),
                percent(leave.min(1.0))
            )
        }
        None => bernoulli(value),
    };
    Some(Sourced { value, source })
}

fn stack(connection: &ConnectionExplanation) -> Stack {
    let counters = &connection.counters;
    let mut keys = Vec::new();
    if let Some(window) = counters.window_max_byte.filter(|window| *window > 0) {
        keys.push(Sourced {
            value: format!("receive_window = \"{window} B\""),
            source: "largest receive window of the capture".to_owned(),
        });
    }
    if connection.counters.segment_byte > 0 {
        keys.push(Sourced {
            value: format!("mss = \"{} B\"", counters.segment_byte),
            source: "payload of a full segment of the capture".to_owned(),
        });
    }
    Stack { name: format!("connection-{}", connection.number), keys }
}

/// The flow of a direction with data.
fn flow(
    connection: &ConnectionExplanation,
    is_upload: bool,
    messages: &[Message],
    stack: &Stack,
    explanation: &Explanation,
    traces: &mut Vec<(String, String)>,
) -> Option<Flow> {
    let first = messages.first()?;
    let kind = if is_upload { "up" } else { "down" };
    let name = format!("connection-{}-{kind}", connection.number);
    let ends = connection.ends;
    let [from, to] =
        if is_upload { [ends.client, ends.server] } else { [ends.server, ends.client] };
    let since = |message: &Message| {
        let start = connection.start_s + message.at.since(connection.first_at).as_secs_f64();
        start.min(explanation.duration_s)
    };
    let bytes: u64 = messages.iter().map(|message| message.bytes).sum();
    let source = format!("{from} to {to}: {bytes} B in {} messages", messages.len());
    let load = if messages.len() == 1 {
        let start = Duration::from_secs_f64(since(first));
        format!("{{ transfer = {{ size = \"{bytes} B\" }} }}\nstart = \"{start}\"")
    } else {
        let file = format!("{name}.csv");
        let mut rows = "time_s,bytes\n".to_owned();
        for message in messages {
            let _ = writeln!(rows, "{:.9},{}", since(message), message.bytes);
        }
        traces.push((file.clone(), rows));
        format!("{{ trace = {{ file = \"{file}\" }} }}")
    };
    Some(Flow { name, source, is_upload, stack: Some(stack.name.clone()), load })
}
