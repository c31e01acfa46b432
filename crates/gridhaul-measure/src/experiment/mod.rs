//! Experiments: functions from measurements to results. [`run()`] runs a measurement, in one run or
//! several; [`matrix`] and [`reserve`] run many of them.

pub(crate) mod cells;
pub mod matrix;
mod rate;
mod repetitions;
pub mod reserve;

use std::path::Path;

use crate::measurement::{Experiment, Measurement};
use crate::report::Report;
use crate::results_folder::write;
use crate::run::{Error, Observer, Run, run_once};

pub use rate::Search;
pub use repetitions::Repetition;

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

impl MeasurementResult {
    /// The report of the result of a measurement.
    ///
    /// # Errors
    /// There is no application class of the chosen name.
    pub fn report(&self, measurement: &Measurement) -> anyhow::Result<Report> {
        match (self, &measurement.experiment) {
            (Self::Run(run), experiment) => Report::of_run(experiment, run),
            (Self::Repetitions(runs), experiment) => {
                Ok(repetitions::report(experiment.name(), runs))
            }
            (Self::Rate(search), Experiment::Rate(settings)) => {
                Ok(rate::report(measurement, settings, search))
            }
            (Self::Rate(_), _) => anyhow::bail!("the experiment is no search of a rate"),
        }
    }

    /// Writes the files of a result into a folder: of one run its summary, charts and page, of
    /// several the document of all. A search of a rate has no files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(
        &self,
        report: &Report,
        measurement: &Measurement,
        folder: &Path,
    ) -> anyhow::Result<()> {
        match self {
            Self::Run(run) => report.write(&measurement.experiment, run, folder),
            Self::Repetitions(_) => write(&folder.join("repetitions.json"), &report.json()?),
            Self::Rate(_) => Ok(()),
        }
    }

    /// Why the result is incomplete; `None` if it is complete.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Run(run) => Some(format!("the run ended early: {}", run.outcome.fault.as_ref()?)),
            Self::Repetitions(runs) => {
                let fault = runs.iter().find_map(|run| run.fault.as_ref())?;
                Some(format!("run {} ended early: {fault}", runs.len()))
            }
            Self::Rate(search) => {
                Some(format!("the search ended early: {}", search.fault.as_ref()?))
            }
        }
    }
}
