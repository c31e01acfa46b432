//! The packets view: the segments, acknowledgements and events of one connection.

use gridhaul_capture::{CaptureFile, SegmentReader, Sequence, SequenceBuilder};
use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Answer, Capture};
use gridhaul_scenario::scenario::{Hop, Transport};
use gridhaul_scenario::units::Instant;
use serde::{Deserialize, Serialize};

use crate::cancellation::Cancellation;
use crate::command;
use crate::http::Response;
use crate::runner::{Changes, RunBackend, RunFailure, Runner};
use crate::sequence_data::{self, ArrayInfo, Event};
use crate::subject::Subject;

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
    arrays: Vec<ArrayInfo>,
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
    let sequence = sequence_of(&scenario, flow, &links, &answer)?;
    let log = answer.event_logs.iter().find(|log| log.name == *flow);
    let events = log.map(|log| Event::of_log(&log.jsonl)).transpose().map_err(RunFailure::from)?;
    let named = sequence_data::arrays("", &sequence);
    let head = Head {
        command: command::of(subject, &changes, &["sim"]),
        forward: links.forward.0,
        reverse: links.reverse.0,
        duration_s: scenario.duration.as_secs_f64(),
        events: events.unwrap_or_default(),
        arrays: sequence_data::infos(&named),
    };
    Ok(Response::bytes(sequence_data::encode(&head, &named)))
}

/// The packets of a flow in the captures of a run.
fn sequence_of(
    scenario: &Scenario,
    flow: &str,
    links: &SenderLinks,
    answer: &Answer,
) -> Result<Sequence, RunFailure> {
    let directions = [&links.forward.0, &links.reverse.0];
    let is_own = |capture: &&Capture| directions.contains(&&capture.name);
    let files = answer.captures.iter().filter(is_own).map(CaptureFile::recorded);
    let files = files.collect::<Result<_, std::io::Error>>()?;
    let mut reader = SegmentReader::open(files)?;
    let port = port_of(scenario, flow);
    let mut builder = SequenceBuilder::new(Instant::ZERO);
    while let Some(segment) = reader.next_segment()? {
        let is_of_sender = segment.source.port() == port;
        if is_of_sender || segment.destination.port() == port {
            builder.handle_segment(&segment, is_of_sender);
        }
    }
    Ok(builder.finish())
}

/// The port of the `from` end of a flow: captures number the connections of a scenario.
fn port_of(scenario: &Scenario, flow: &str) -> u16 {
    let earlier = scenario.flow.iter().take_while(|(name, _)| *name != flow);
    let number: u64 = earlier.map(|(_, flow)| scenario.connections(flow)).sum();
    Scenario::captured_port(number)
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
