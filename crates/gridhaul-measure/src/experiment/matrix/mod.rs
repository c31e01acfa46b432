//! Latencies of all combinations of protocols, networks and settings.

mod report;

use std::path::Path;
use std::sync::atomic::Ordering;

use gridhaul_report::TextTable;
use gridhaul_scenario::units::Duration;
use serde_json::{Value, json};

use super::cells::{Cell, CellResult, measure_each};
use crate::measurement::{Experiment, Measurement};
use crate::results_folder::write;
use crate::run::{Observer, message};

/// Name of the axis of protocols.
pub const PROTOCOL: &str = "protocol";

/// Time that connections, broker and network need at the start and at the end of a measurement, for
/// the estimate.
const OVERHEAD_S: f64 = 1.5;

/// A setting that is varied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Name of the setting.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// A measurement of a matrix before its start.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The value of each axis; `None` if the protocol does not have the setting.
    pub values: Vec<Option<String>>,
    /// The command of this measurement alone.
    pub command: String,
    /// The measurement.
    pub measurement: Measurement,
}

/// A measurement that was made.
#[derive(Debug)]
pub struct Done {
    values: Vec<Option<String>>,
    command: String,
    /// `None` if no message arrived, or if the measurement failed.
    result: Option<CellResult>,
    /// Why it failed.
    error: Option<String>,
}

/// The measurements of a matrix.
#[derive(Debug)]
pub struct Matrix {
    axes: Vec<Axis>,
    done: Vec<Done>,
    /// Whether all were made.
    is_complete: bool,
    has_folders: bool,
}

/// Shortest time of all measurements.
#[must_use]
pub fn estimate(planned: &[Planned]) -> Duration {
    let seconds = planned.iter().map(|planned| match &planned.measurement.experiment {
        Experiment::Latency(run) | Experiment::Reliability(run) => {
            // As `ScheduleSettings::warm_up` by default: one second, or 100 messages.
            let warm_up = (100.0 / run.schedule.rate).max(1.0);
            warm_up + run.schedule.messages as f64 / run.schedule.rate + OVERHEAD_S
        }
        Experiment::Outage(_) | Experiment::Rate(_) => OVERHEAD_S,
    });
    Duration::from_secs_f64(seconds.sum())
}

/// Makes all measurements. The messages of each are written into a folder of their own, if there is
/// one for the results.
pub fn measure(
    axes: Vec<Axis>,
    planned: &[Planned],
    folder: Option<&Path>,
    observer: &dyn Observer,
) -> Matrix {
    let cells: Vec<_> = planned
        .iter()
        .enumerate()
        .map(|(number, planned)| Cell {
            measurement: &planned.measurement,
            folder: folder.map(|folder| folder.join(name_of_folder(number))),
        })
        .collect();
    let mut done = Vec::new();
    measure_each(&cells, observer, &mut |number, outcome| {
        let Planned { values, command, .. } = planned[number].clone();
        let (result, error) = match outcome {
            Ok(result) => (result, None),
            Err(error) => (None, Some(message(&error))),
        };
        observer.on_note(&format!("{} of {}: {command}", number + 1, planned.len()));
        error.iter().for_each(|error| observer.on_note(&format!("  {error}")));
        done.push(Done { values, command, result, error });
    });
    let is_complete = !observer.stop().load(Ordering::Relaxed);
    Matrix { axes, done, is_complete, has_folders: folder.is_some() }
}

impl Matrix {
    /// Whether a measurement has failed.
    #[must_use]
    pub fn has_failure(&self) -> bool {
        self.done.iter().any(|done| done.error.is_some())
    }

    /// A row for each measurement.
    #[must_use]
    pub fn table(&self) -> TextTable {
        report::table(&self.axes, &self.done)
    }

    /// The JSON document as text.
    ///
    /// # Errors
    /// A number is not finite.
    pub fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(&self.document())? + "\n")
    }

    /// Writes the document and the report into a folder.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        write(&folder.join("matrix.json"), &self.json()?)?;
        write(&folder.join("report.html"), &report::html(&self.axes, &self.done, &self.table()))
    }

    fn document(&self) -> Value {
        let measurements = self.done.iter().enumerate().map(|(number, done)| {
            let names = self.axes.iter().map(|axis| axis.name.clone());
            let parameters: serde_json::Map<_, _> =
                names.zip(done.values.iter().map(|value| json!(value))).collect();
            json!({
                "parameters": parameters,
                "command": done.command,
                "folder": self.has_folders.then(|| name_of_folder(number)),
                "result": done.result,
                "error": done.error,
            })
        });
        json!({
            "gridhaul": env!("CARGO_PKG_VERSION"),
            "command": "matrix",
            "complete": self.is_complete,
            "measurements": measurements.collect::<Vec<_>>(),
        })
    }
}

/// The folder of a measurement.
fn name_of_folder(number: usize) -> String {
    format!("measurement-{:03}", number + 1)
}
