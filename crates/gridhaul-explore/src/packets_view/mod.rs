//! The packets view: the segments, acknowledgements and events of one connection.

mod arrays;
mod capture;
mod events;
mod trace;

use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Answer, Capture};
use gridhaul_scenario::scenario::{Hop, Transport};
use serde::{Deserialize, Serialize};

use crate::cancellation::Cancellation;
use crate::command;
use crate::http::Response;
use crate::runner::{Changes, RunBackend, RunFailure, Runner};
use crate::subject::Subject;
use events::Event;
use trace::Trace;

/// A request for the packets of a flow.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PacketsRequest {
    /// The place of the page in which the packets are drawn: a later run in this place cancels it.
    pub(crate) place: String,
    settings: Vec<String>,
    seed: Option<u64>,
    flow: String,
}

/// The first part of the answer; the packets follow as numbers.
#[derive(Debug, Serialize)]
struct Head {
    /// The command that records the same packets and events.
    command: String,
    /// Directions at which the segments and the acknowledgements were captured.
    forward: String,
    reverse: String,
    duration_s: f64,
    events: Vec<Event>,
    arrays: Vec<arrays::ArrayInfo>,
}

/// The links at the sender of a flow.
struct SenderLinks {
    /// Direction in which segments leave the sender, and its link.
    forward: (String, String),
    /// Direction in which acknowledgements reach it, and its link.
    reverse: (String, String),
}

/// Whether a flow is one TCP connection, whose events can be recorded.
pub(crate) fn is_drawable(scenario: &Scenario, flow: &str) -> bool {
    let found = scenario.flow.get(flow);
    found.is_some_and(|flow| flow.transport == Transport::Tcp && scenario.connections(flow) == 1)
}

/// Runs the simulator and returns the packets of the flow.
pub(crate) fn packets(
    subject: &Subject,
    request: &PacketsRequest,
    runner: &dyn Runner,
    cancellation: &Cancellation,
) -> Result<Response, RunFailure> {
    let flow = &request.flow;
    if !is_drawable(&subject.scenario, flow) {
        let message = format!("flow {flow:?} is not a flow over TCP with one connection");
        return Err(RunFailure::Refused(message));
    }
    let links = SenderLinks::of(&subject.scenario, flow).map_err(RunFailure::Refused)?;
    let mut pcap = vec![links.forward.1.clone()];
    if links.reverse.1 != links.forward.1 {
        pcap.push(links.reverse.1.clone());
    }
    let changes = Changes {
        settings: request.settings.clone(),
        seed: request.seed,
        replications: Some(1),
        pcap,
        events: vec![flow.clone()],
        ..Changes::default()
    };
    let scenario = runner.change(&subject.scenario, &changes).map_err(RunFailure::Refused)?;
    let answer = runner.run(&scenario, RunBackend::Sim, cancellation)?;
    let unreadable = |error: std::io::Error| RunFailure::Refused(error.to_string());
    let trace = trace_of(&scenario, flow, &links, &answer).map_err(unreadable)?;
    let log = answer.event_logs.iter().find(|log| log.name == *flow);
    let events = log.map(|log| events::of(&log.jsonl)).transpose().map_err(unreadable)?;
    let named = trace.arrays();
    let head = Head {
        command: command::of(subject, &changes, &["sim"]),
        forward: links.forward.0,
        reverse: links.reverse.0,
        duration_s: scenario.duration.as_secs_f64(),
        events: events.unwrap_or_default(),
        arrays: arrays::infos(&named),
    };
    Ok(Response::bytes(arrays::encode(&head, &named)))
}

fn trace_of(
    scenario: &Scenario,
    flow: &str,
    links: &SenderLinks,
    answer: &Answer,
) -> std::io::Result<Trace> {
    let port = capture::port_of(scenario, flow);
    let read = |direction: &str| {
        let is_own = |capture: &&Capture| capture.name == direction;
        let found = answer.captures.iter().find(is_own);
        found.map_or_else(|| Ok(Vec::new()), |capture| capture::segments(&capture.pcapng, port))
    };
    Ok(Trace::of(&read(&links.forward.0)?, &read(&links.reverse.0)?))
}

impl SenderLinks {
    fn of(scenario: &Scenario, flow: &str) -> Result<Self, String> {
        let routes = scenario.routes(flow).map_err(|error| error.message)?;
        let name = |hop: &Hop| {
            let (link, _) = scenario.link.get_index(hop.link)?;
            let direction = if hop.forward { "forward" } else { "reverse" };
            Some((format!("{link}.{direction}"), link.clone()))
        };
        let ends = routes.forward.first().and_then(name).zip(routes.reverse.last().and_then(name));
        let (forward, reverse) = ends.ok_or("the flow has no links")?;
        Ok(Self { forward, reverse })
    }
}
