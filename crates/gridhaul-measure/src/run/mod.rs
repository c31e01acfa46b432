//! Runs of a measurement.

mod agent;
mod error;
mod idle_states;
mod local;
mod observer;
mod outage;
mod request;
mod result;
pub mod transfer;

use std::path::Path;

use gridhaul_scenario::units::Instant;

use crate::experiment::rate::{self, Search};
use crate::experiment::repetitions::{self, Repetition};
use crate::measurement::{Disturbance, Experiment, Measurement, Place};

pub(crate) use agent::AgentConnection;
pub use error::{Error, message};
pub use idle_states::IdleStates;
pub(crate) use local::{at_sites, carrier};
pub use observer::{Observer, Silent};
pub(crate) use outage::{OBSERVED_INTERVALS, OBSERVED_MIN, Recovery, observed};
pub(crate) use request::RunRequest;
pub use result::{Remote, Run};

/// Result of a measurement.
#[derive(Debug)]
pub enum MeasurementResult {
    /// One run at a constant rate, with or without an outage.
    Run(Box<Run>),
    /// Several runs.
    Repetitions(Vec<Repetition>),
    /// A search of the highest rate.
    Rate(Box<Search>),
}

/// Runs a measurement. The messages, and the results of each of several runs, are written into a
/// folder, if there is one; it must exist. The observer follows the progress, and may end the
/// measurement early: the messages until then are counted.
///
/// # Errors
/// Invalid values, a missing feature of the machine, or a protocol that cannot connect. Later
/// faults of a run are in its result.
pub fn run(
    measurement: &Measurement,
    folder: Option<&Path>,
    observer: &dyn Observer,
) -> Result<MeasurementResult, Error> {
    measurement.validate()?;
    let measured = match &measurement.experiment {
        Experiment::Latency(runs) | Experiment::Reliability(runs) if runs.repetitions > 1 => {
            repetitions::measure(measurement, folder, observer).map(MeasurementResult::Repetitions)
        }
        Experiment::Rate(search) => rate::measure(measurement, search, observer)
            .map(|search| MeasurementResult::Rate(Box::new(search))),
        _ => {
            run_once(measurement, folder, observer).map(|run| MeasurementResult::Run(Box::new(run)))
        }
    };
    Ok(measured?)
}

/// One run at a constant rate.
pub(crate) fn run_once(
    measurement: &Measurement,
    folder: Option<&Path>,
    observer: &dyn Observer,
) -> anyhow::Result<Run> {
    let request = RunRequest::new(measurement, folder)?;
    let mut run = match &measurement.place {
        Place::Agent(place) => agent::execute(&request, place, observer)?,
        Place::ThisMachine | Place::Emulated(_) => local::execute(&request, observer)?,
    };
    if request.disturbance.is_some_and(Disturbance::is_observed) {
        let found = observed(&run).map(|found| [found.start, found.end].map(Instant::as_secs_f64));
        run.outages.extend(found);
    }
    Ok(run)
}
