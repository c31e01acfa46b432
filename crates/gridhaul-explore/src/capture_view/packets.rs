//! The packets of a connection of a capture, and those of its simulation over them.

use gridhaul_capture::{
    CaptureFile, ConnectionComparison, ConnectionExplanation, Curve, Parting, Sequence,
    read_sequence,
};
use gridhaul_scenario::units::Instant;
use serde::{Deserialize, Serialize};

use super::simulation::{KeptSimulation, SimulationRequest, simulation};
use crate::cancellation::Cancellation;
use crate::command;
use crate::http::Response;
use crate::runner::{RunFailure, Runner, SimulatedCapture};
use crate::sequence_data::{self, ArrayInfo, Event};
use crate::subject::Capture;

/// A request for the packets of a connection.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PacketsRequest {
    /// The place of the page in which the packets are drawn: a later run in this place cancels it.
    pub(crate) place: String,
    connection: usize,
    /// The simulation whose packets are drawn over those of the capture.
    simulation: Option<SimulationRequest>,
}

/// The first part of the answer; the packets follow as numbers.
#[derive(Debug, Serialize)]
struct Head {
    /// The command that prints the packets.
    command: String,
    sender: String,
    receiver: String,
    duration_s: f64,
    events: Vec<Event>,
    has_window: bool,
    measured_goodput: Option<Curve>,
    simulated_goodput: Option<Curve>,
    parting: Option<Parting>,
    /// Where both part, as a sentence.
    comparison: Option<String>,
    arrays: Vec<ArrayInfo>,
}

/// The packets of a connection, of the end with more data, and those of its simulation if the
/// request has one.
pub(crate) fn packets(
    capture: &Capture,
    request: &PacketsRequest,
    kept: &KeptSimulation,
    runner: &dyn Runner,
    cancellation: &Cancellation,
) -> Result<Response, RunFailure> {
    let number = request.connection;
    let explained = super::connection(capture, number).map_err(RunFailure::Refused)?;
    let simulated = match &request.simulation {
        Some(wanted) => Some(simulation(capture, wanted, kept, runner, cancellation)?),
        None => None,
    };
    let row = simulated.as_ref().and_then(|simulated| {
        simulated.comparison.connections.iter().find(|row| row.number == number)
    });
    let overlay = simulated.as_ref().zip(row).and_then(|(own, row)| Overlay::of(own, row));
    let simulated_sequence = overlay.as_ref().map(Overlay::sequence).transpose()?;
    let files = runner.open_captures(&capture.files).map_err(RunFailure::Refused)?;
    let origin = explained.capture_start();
    let sequence =
        read_sequence(files, explained, explained.is_upload, origin).map_err(RunFailure::from)?;
    let mut named = sequence_data::arrays("", &sequence);
    if let Some(simulated) = &simulated_sequence {
        named.extend(sequence_data::arrays("simulated_", simulated));
    }
    let end_s = simulated_sequence.iter().flat_map(|own| &own.acknowledgements.time_s);
    let duration_s = end_s.fold(capture.explanation.duration_s, |end, &time_s| end.max(time_s));
    let options = [format!("--connection {number}"), "--format packets".to_owned()];
    let (client, server) = (explained.ends.client.to_string(), explained.ends.server.to_string());
    let (sender, receiver) = if explained.is_upload { (client, server) } else { (server, client) };
    let head = Head {
        command: command::explain(&capture.files, &options),
        sender,
        receiver,
        duration_s,
        events: Event::of_marks(&sequence.marks),
        has_window: sequence.has_window_scale,
        measured_goodput: explained.goodput_curve(explained.is_upload, origin, duration_s),
        simulated_goodput: overlay.as_ref().and_then(|own| own.goodput(duration_s)),
        parting: row.and_then(|row| row.parting.clone()),
        comparison: row.map(ConnectionComparison::sentence),
        arrays: sequence_data::infos(&named),
    };
    Ok(Response::bytes(sequence_data::encode(&head, &named)))
}

/// A connection of a simulation, whose sender has opened it. The simulation begins at the first
/// segment of the capture.
struct Overlay<'a> {
    simulated: &'a SimulatedCapture,
    explained: &'a ConnectionExplanation,
}

impl<'a> Overlay<'a> {
    fn of(simulated: &'a SimulatedCapture, row: &ConnectionComparison) -> Option<Self> {
        let explained = &simulated.explanation.connections[row.simulated?];
        Some(Self { simulated, explained })
    }

    fn sequence(&self) -> Result<Sequence, RunFailure> {
        let files = self.simulated.captures.iter().map(CaptureFile::recorded);
        let files = files.collect::<Result<_, _>>();
        let files = files.map_err(RunFailure::from)?;
        read_sequence(files, self.explained, true, Instant::ZERO).map_err(RunFailure::from)
    }

    fn goodput(&self, end_s: f64) -> Option<Curve> {
        self.explained.goodput_curve(true, Instant::ZERO, end_s)
    }
}
