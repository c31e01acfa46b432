//! The load of a capture over its estimated link, simulated and compared with the capture.

use std::fs;
use std::path::Path;

use anyhow::Context;
use gridhaul_capture::{
    CaptureFile, Comparison, ConnectionExplanation, Explanation, Position, SimulatedFlow, compare,
    explain_with_history,
};
use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::Capture;
use gridhaul_scenario::units::{BitRate, Probability};

use crate::engine::Engine;
use crate::error::Error;
use crate::import::TAP;
use crate::import::capture::{self, CapturePoint};
use crate::observer::Observer;
use crate::request::{self, Changes};
use crate::run;

/// Options of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Random seed.
    pub seed: u64,
    /// Rate of the link, if no connection shows it.
    pub rate: Option<BitRate>,
    /// Share of the data of a connection by which the acknowledged bytes may differ.
    pub tolerance: Probability,
}

/// A simulation of the load of a capture.
#[derive(Debug, Clone)]
pub struct CaptureSimulation {
    /// The connections of the capture, compared with the simulated ones.
    pub comparison: Comparison,
    /// The simulation, explained as the capture is.
    pub explanation: Explanation,
    /// The packets of the simulation, at the end at which the capture was taken.
    pub captures: Vec<Capture>,
    /// The scenario, as TOML.
    pub scenario: String,
}

/// Simulates the load of a capture over its estimated link, and compares both. The capture was
/// explained with its history; the load traces are written to `folder`.
///
/// # Errors
/// A capture without data, a link whose rate is unknown, a folder that cannot be written, and the
/// errors of [`run`](crate::run()).
pub fn simulate(
    name: &str,
    measured: &Explanation,
    options: &Options,
    folder: &Path,
    observer: &dyn Observer,
) -> Result<CaptureSimulation, Error> {
    let import = capture::Options {
        rate: options.rate,
        capture_point: Some(capture_point(&measured.connections)),
    };
    let imported = capture::import(name, measured, &import).map_err(anyhow::Error::new)?;
    for (file, rows) in &imported.traces {
        let path = folder.join(file);
        fs::write(&path, rows).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut scenario = Scenario::from_toml(&imported.scenario, "imported scenario")?;
    scenario.set_folder(folder);
    let changes = Changes {
        seed: Some(options.seed),
        replications: Some(1),
        pcap: vec![TAP.to_owned()],
        ..Changes::default()
    };
    let (scenario, _) = request::change(scenario, "imported scenario", &changes, &[])?;
    let answer = run::answer(&scenario, &Engine::default(), "simulate", observer)?;
    let files = answer.captures.iter().map(CaptureFile::recorded).collect::<Result<_, _>>();
    let files = files.context("cannot read the packets of the simulation")?;
    let progress = observer.begin("compare");
    let explanation =
        explain_with_history(files, &mut |_| !progress.is_interrupted()).map_err(internal)?;
    if progress.is_interrupted() || answer.incomplete {
        return Err(Error::Interrupted("interrupted: the simulation is not complete".to_owned()));
    }
    let flows = imported.flows.iter().enumerate().map(|(index, flow)| SimulatedFlow {
        number: flow.connection,
        is_upload: flow.is_upload,
        port: port(index),
    });
    let flows: Vec<_> = flows.collect();
    let comparison = compare(measured, &explanation, &flows, options.tolerance.ratio());
    Ok(CaptureSimulation {
        comparison,
        explanation,
        captures: answer.captures,
        scenario: imported.scenario,
    })
}

/// The port of the sender of a flow: captures number the connections of a scenario from 1024 on.
const fn port(index: usize) -> u16 {
    1024 + (index % 60_000) as u16
}

/// The end that is nearer to the place of the capture, by the connections with most data. An
/// unknown place is assumed to be the sender's, as in explanations.
fn capture_point(connections: &[ConnectionExplanation]) -> CapturePoint {
    let at_client = |connection: &&ConnectionExplanation| {
        let at_sender = match connection.position {
            Position::Sender | Position::Unknown => true,
            Position::Receiver => false,
            Position::Between { sender_s, receiver_s } => sender_s <= receiver_s,
        };
        at_sender == connection.is_upload
    };
    let bytes = |connection: &ConnectionExplanation| connection.counters.payload_byte;
    let total: u64 = connections.iter().map(bytes).sum();
    let client: u64 = connections.iter().filter(at_client).map(bytes).sum();
    if client * 2 >= total { CapturePoint::Client } else { CapturePoint::Server }
}

/// An error in the capture of a simulation, which gridhaul has written itself.
fn internal(error: gridhaul_capture::CaptureError) -> Error {
    Error::Internal(error.into())
}
