//! The capture view: the connections of a capture with their limits, the packets of each one, and
//! the simulation of the same load over the estimated link.

mod packets;
mod simulation;

use gridhaul_capture::{Confidence, ConnectionExplanation, Detail, Limit, connections_csv};
use serde::Serialize;

use crate::command;
use crate::http::Response;
use crate::subject::Capture;

pub(crate) use packets::{PacketsRequest, packets};
pub(crate) use simulation::{KeptSimulation, SimulationRequest, summary};

/// The capture as a page needs it.
#[derive(Serialize)]
pub(crate) struct Description<'a> {
    files: &'a [String],
    /// The command that prints the sentences.
    command: String,
    csv_command: String,
    duration_s: f64,
    segments: u64,
    /// Number of connections; the page lists those with most data if they are too many.
    count: usize,
    connections: Vec<Connection<'a>>,
    /// Notes on the whole capture.
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Connection<'a> {
    number: usize,
    client: String,
    server: String,
    is_upload: bool,
    point: &'a str,
    start_s: f64,
    payload_byte: u64,
    goodput_bit_per_s: Option<f64>,
    limit: Option<Limit>,
    limit_noun: &'static str,
    confidence: Confidence,
    /// The sentence that `gridhaul explain` prints.
    sentence: String,
    notes: &'a [String],
}

/// All facts about one connection.
#[derive(Serialize)]
struct Facts {
    /// The command that prints them.
    command: String,
    details: Vec<Detail>,
}

/// Largest number of connections in the list of a page.
const CONNECTIONS_MAX: usize = 2_000;

impl<'a> Description<'a> {
    pub(crate) fn of(capture: &'a Capture) -> Self {
        let explanation = &capture.explanation;
        let mut largest: Vec<_> = explanation.connections.iter().collect();
        largest.sort_by_key(|connection| std::cmp::Reverse(connection.counters.payload_byte));
        largest.truncate(CONNECTIONS_MAX);
        largest.sort_by_key(|connection| connection.number);
        Self {
            files: &capture.files,
            command: command::explain(&capture.files, &[]),
            csv_command: command::explain(&capture.files, &["--format csv".to_owned()]),
            duration_s: explanation.duration_s,
            segments: explanation.segments,
            count: explanation.connections.len(),
            connections: largest.into_iter().map(Connection::of).collect(),
            notes: explanation.notes(),
        }
    }
}

impl<'a> Connection<'a> {
    fn of(explained: &'a ConnectionExplanation) -> Self {
        let verdict = &explained.verdict;
        Self {
            number: explained.number,
            client: explained.ends.client.to_string(),
            server: explained.ends.server.to_string(),
            is_upload: explained.is_upload,
            point: &explained.point,
            start_s: explained.start_s,
            payload_byte: explained.counters.payload_byte,
            goodput_bit_per_s: explained.goodput_bit_per_s,
            limit: verdict.limit,
            limit_noun: verdict.limit.map_or("undecided", Limit::noun),
            confidence: verdict.confidence,
            sentence: explained.sentence(),
            notes: &explained.notes,
        }
    }
}

/// The connection with a number.
fn connection(capture: &Capture, number: usize) -> Result<&ConnectionExplanation, String> {
    let connections = &capture.explanation.connections;
    let found = connections.iter().find(|connection| connection.number == number);
    found.ok_or_else(|| format!("connection {number}: the capture has {}", connections.len()))
}

/// All facts about the connection with a number.
pub(crate) fn facts(capture: &Capture, number: &str) -> Result<Response, String> {
    let number = number.parse().map_err(|_| format!("{number:?} is no number of a connection"))?;
    let facts = Facts {
        command: command::explain(&capture.files, &[format!("--connection {number}")]),
        details: connection(capture, number)?.detail_rows(),
    };
    Ok(Response::json("200 OK", &facts))
}

/// The table that `gridhaul explain --format csv` prints.
pub(crate) fn csv(capture: &Capture) -> Response {
    Response::text("200 OK", connections_csv(&capture.explanation).trim_end_matches('\n'))
}
