//! The connections as a table in CSV (RFC 4180).

use std::fmt::Write;

use super::{Confidence, ConnectionExplanation, Explanation};
use crate::csv::csv_cell;
use crate::{Estimate, Limit};

/// The connections of a capture as CSV, with a line of names.
#[must_use]
pub fn connections_csv(explanation: &Explanation) -> String {
    let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let shares = Limit::ALL.map(|limit| format!("share_{}", limit.name()));
    let mut text = format!("{},{}\r\n", names.join(","), shares.join(","));
    for connection in &explanation.connections {
        let cells = COLUMNS.iter().map(|(_, cell)| cell(connection));
        let shares = Limit::ALL.map(|limit| format!("{:.4}", connection.shares.of(limit)));
        let cells: Vec<_> = cells.chain(shares).map(|cell| csv_cell(&cell).into_owned()).collect();
        let _ = write!(text, "{}\r\n", cells.join(","));
    }
    text
}

type Cell = fn(&ConnectionExplanation) -> String;

const COLUMNS: &[(&str, Cell)] = &[
    ("connection", |connection| connection.number.to_string()),
    ("client", |connection| connection.ends.client.to_string()),
    ("server", |connection| connection.ends.server.to_string()),
    ("point", |connection| connection.point.clone()),
    ("sender", |connection| if connection.is_upload { "client".into() } else { "server".into() }),
    ("start_s", |connection| format!("{:.6}", connection.start_s)),
    ("duration_s", |connection| format!("{:.6}", connection.duration_s)),
    ("payload_byte", |connection| connection.counters.payload_byte.to_string()),
    ("goodput_bit_per_s", |connection| number(connection.goodput_bit_per_s)),
    ("captured_at", |connection| connection.position.name().to_owned()),
    ("limit", |connection| {
        connection.verdict.limit.map_or(String::new(), |limit| limit.name().to_owned())
    }),
    ("confidence", |connection| connection.verdict.confidence.name().to_owned()),
    ("evidence", |connection| connection.verdict.evidence.clone()),
    ("packets", |connection| connection.counters.packets.to_string()),
    ("lost_packets", |connection| connection.counters.lost_packets.to_string()),
    ("timeouts", |connection| connection.counters.timeouts.to_string()),
    ("round_trip_s", |connection| number(connection.round_trip_s)),
    ("queueing_mean_s", |connection| number(Some(connection.queueing_mean_s))),
    ("rate_bit_per_s", |connection| value(connection.link.rate_bit_per_s)),
    ("rate_low_bit_per_s", |connection| low(connection.link.rate_bit_per_s)),
    ("rate_high_bit_per_s", |connection| high(connection.link.rate_bit_per_s)),
    ("propagation_s", |connection| value(connection.link.round_trip_s)),
    ("propagation_low_s", |connection| low(connection.link.round_trip_s)),
    ("propagation_high_s", |connection| high(connection.link.round_trip_s)),
    ("loss", |connection| value(connection.link.loss)),
    ("loss_low", |connection| low(connection.link.loss)),
    ("loss_high", |connection| high(connection.link.loss)),
    ("burst_packets", |connection| value(connection.link.burst_packets)),
    ("buffer_byte", |connection| value(connection.link.buffer_byte)),
];

impl Confidence {
    /// The name, as in JSON and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Moderate => "moderate",
            Self::High => "high",
        }
    }
}

/// A number; an unknown one is an empty cell.
fn number(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| format!("{number}"))
}
fn value(estimate: Option<Estimate>) -> String {
    number(estimate.map(|estimate| estimate.value))
}
fn low(estimate: Option<Estimate>) -> String {
    number(estimate.map(|estimate| estimate.interval.low))
}
fn high(estimate: Option<Estimate>) -> String {
    number(estimate.map(|estimate| estimate.interval.high))
}
