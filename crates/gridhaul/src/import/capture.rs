//! Import of a capture: the estimated link, and the messages of each connection as load traces.

use std::fmt::Write;

use gridhaul_capture::{ConnectionExplanation, Explanation, Message};
use gridhaul_scenario::units::{BitRate, Duration};

use super::link_scenario::{Flow, LinkScenario, Sourced, Stack};
use super::{File, ImportError, measured_direction};

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
    let forward = measured_direction::of(file, &connections, true, options.rate)?;
    let reverse = measured_direction::of(file, &connections, false, options.rate)?;
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
