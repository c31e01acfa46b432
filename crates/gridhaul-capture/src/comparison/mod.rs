//! A capture compared with a simulation of its load over the estimated link: goodput, the time at
//! which both part, and the likely reason.

mod curve;
mod parting;
mod reason;
mod side;
mod text;
mod track;

use gridhaul_scenario::units::Instant;
use serde::Serialize;

use crate::{ConnectionExplanation, Ends, Explanation, Limit};
use track::Track;

pub use curve::Curve;
pub use parting::Parting;
pub use side::Side;

/// A capture and a simulation of its load.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Share of the data of a connection by which the acknowledged bytes may differ.
    pub tolerance: f64,
    /// The connections that were simulated, by their numbers.
    pub connections: Vec<ConnectionComparison>,
}

/// A connection and its simulation: the direction with more data.
#[derive(Debug, Clone, Serialize)]
pub struct ConnectionComparison {
    /// Number of the connection.
    pub number: usize,
    /// Both ends.
    #[serde(flatten)]
    pub ends: Ends,
    /// Whether the client sends the data.
    pub is_upload: bool,
    /// Bytes of data.
    pub payload_byte: u64,
    /// Mean goodput of the capture.
    pub measured_bit_per_s: Option<f64>,
    /// Mean goodput of the simulation.
    pub simulated_bit_per_s: Option<f64>,
    /// Goodput of the simulation relative to that of the capture, less one.
    pub difference: Option<f64>,
    /// The limit in the capture.
    pub measured_limit: Option<Limit>,
    /// The limit in the simulation.
    pub simulated_limit: Option<Limit>,
    /// Acknowledged bytes may differ by this number.
    pub tolerance_byte: f64,
    /// And may be late by this time: two round trips.
    pub tolerance_s: f64,
    /// Where both part; absent if they do not.
    pub parting: Option<Parting>,
    /// Index of the simulated connection in its explanation.
    #[serde(skip)]
    pub simulated: Option<usize>,
}

/// Bytes of a segment of Ethernet: on a loopback device, one segment may be all data.
const SEGMENT_MAX: f64 = 1_460.0;

/// A connection of a capture in a simulation, which begins at the first segment of the capture.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedFlow {
    /// Number of the connection.
    pub number: usize,
    /// Whether the client sends the data.
    pub is_upload: bool,
    /// Port of the sender in the simulation, which opens its connection.
    pub port: u16,
}

/// Compares a capture with a simulation; both were explained with their history.
#[must_use]
pub fn compare(
    measured: &Explanation,
    simulated: &Explanation,
    flows: &[SimulatedFlow],
    tolerance: f64,
) -> Comparison {
    let of_flow = |flow: &SimulatedFlow| {
        let is_own = |connection: &&ConnectionExplanation| connection.number == flow.number;
        let connection = measured.connections.iter().find(is_own)?;
        // The other direction of a connection is a flow of its own.
        if connection.is_upload != flow.is_upload {
            return None;
        }
        let opened = |simulated: &ConnectionExplanation| {
            [simulated.ends.client, simulated.ends.server].iter().any(|end| end.port() == flow.port)
        };
        let index = simulated.connections.iter().position(opened);
        let own = index.map(|index| &simulated.connections[index]);
        Some(ConnectionComparison {
            simulated: index,
            ..ConnectionComparison::new(connection, own, tolerance)
        })
    };
    let mut connections: Vec<_> = flows.iter().filter_map(of_flow).collect();
    connections.sort_by_key(|connection| connection.number);
    Comparison { tolerance, connections }
}

impl ConnectionComparison {
    fn new(
        measured: &ConnectionExplanation,
        simulated: Option<&ConnectionExplanation>,
        tolerance: f64,
    ) -> Self {
        let payload_byte = measured.counters.payload_byte;
        let simulated_goodput = simulated.and_then(|own| own.goodput_bit_per_s);
        let ratio = measured.goodput_bit_per_s.zip(simulated_goodput);
        let segments = 2.0 * (measured.counters.segment_byte as f64).min(SEGMENT_MAX);
        let trip = measured.round_trip_s.or(simulated.and_then(|own| own.round_trip_s));
        let mut comparison = Self {
            number: measured.number,
            ends: measured.ends,
            is_upload: measured.is_upload,
            payload_byte,
            measured_bit_per_s: measured.goodput_bit_per_s,
            simulated_bit_per_s: simulated_goodput,
            difference: ratio.map(|(measured, simulated)| simulated / measured - 1.0),
            measured_limit: measured.verdict.limit,
            simulated_limit: simulated.and_then(|own| own.verdict.limit),
            // The transmission of a segment and its acknowledgement take time in both.
            tolerance_byte: (tolerance * payload_byte as f64).max(segments),
            tolerance_s: 2.0 * trip.unwrap_or(0.0),
            parting: None,
            simulated: None,
        };
        let track = measured.track(measured.is_upload, measured.capture_start_at);
        // The sender of a flow opens its connection in the simulation.
        let own = simulated.and_then(|own| own.track(true, Instant::ZERO));
        comparison.parting = track.zip(own).and_then(|(measured, simulated)| {
            let (bytes, time_s) = (comparison.tolerance_byte, comparison.tolerance_s);
            parting::find(&measured, &simulated, &parting::Tolerance { bytes, time_s })
        });
        comparison
    }
}

impl ConnectionExplanation {
    /// The progress of a direction; times are those since `origin`.
    fn track(&self, is_upload: bool, origin: Instant) -> Option<Track> {
        let history = self.histories[usize::from(!is_upload)].as_ref()?;
        Track::new(history, origin)
    }
}
