//! One run of a measurement at a constant rate.

mod agent;
mod error;
mod idle_states;
mod local;
mod observer;
mod outage;
mod request;
mod result;

use std::path::Path;

use gridhaul_scenario::units::Instant;

use crate::measurement::{Disturbance, Measurement, Place};

pub(crate) use agent::AgentConnection;
pub use error::{Error, message};
pub use idle_states::IdleStates;
pub(crate) use local::{at_sites, carrier};
pub use observer::Observer;
pub(crate) use outage::{OBSERVED_INTERVALS, OBSERVED_MIN, Recovery, observed};
pub(crate) use request::RunRequest;
pub use result::{Remote, Run};

/// Runs a measurement once, on this machine or with an agent.
///
/// # Errors
/// The experiment is a search of a rate, a feature of the machine is missing, or the protocol
/// cannot connect.
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
