//! Several runs that do not share connections, broker and network.

mod report;

use std::path::Path;
use std::sync::atomic::Ordering;

use gridhaul_report::format::UNKNOWN;
use serde_json::Value;

use crate::measurement::Measurement;
use crate::method::findings;
use crate::report::{Report, Verdicts, title};
use crate::results_folder::create;
use crate::run::{Observer, Run, run_once};

pub(super) use report::report;

/// Runs a measurement as often as it requests. An interruption or a fault ends the repetitions.
///
/// # Errors
/// A run is not possible, or its files cannot be written.
pub(crate) fn measure(
    measurement: &Measurement,
    folder: Option<&Path>,
    observer: &dyn Observer,
) -> anyhow::Result<Vec<Repetition>> {
    let mut done = Vec::new();
    let repetitions = measurement.experiment.repetitions();
    for number in 1..=repetitions {
        let own = folder.map(|folder| folder.join(format!("run-{number}")));
        let repetition = Repetition::measure(measurement, own.as_deref(), observer)?;
        let is_complete = repetition.fault.is_none() && !observer.stop().load(Ordering::Relaxed);
        let median = Quantity::MEDIAN.text(&repetition);
        observer.on_note(&format!("run {number} of {repetitions}: median {median} ms"));
        done.push(repetition);
        // A fault would probably recur, and the spread would be that of incomplete runs.
        if !is_complete {
            break;
        }
    }
    Ok(done)
}

impl Repetition {
    /// Whether the chosen application class is not met, or not decidable.
    #[must_use]
    pub fn is_class_not_met(&self) -> bool {
        self.verdicts.is_chosen_class_not_met()
    }
}

/// One of several runs.
#[derive(Debug)]
pub struct Repetition {
    pub(crate) title: String,
    /// Its JSON document.
    pub(crate) summary: Value,
    pub(crate) verdicts: Verdicts,
    /// Values in the order of [`Quantity::ALL`].
    pub(crate) values: [Option<f64>; Quantity::ALL.len()],
    pub(crate) messages: u64,
    pub(crate) missing: u64,
    /// Whether the generator was late.
    pub(crate) is_invalid: bool,
    /// Error that ended the run early, or an interruption.
    pub fault: Option<String>,
}

/// A quantity that is compared between runs, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    pub(crate) heading: &'static str,
    pub(crate) key: &'static str,
    value: fn(&Run) -> Option<f64>,
}

impl Quantity {
    /// Median latency.
    pub(crate) const MEDIAN: Self =
        Self { heading: "p50 (ms)", key: "p50_s", value: |run| latency(run, 0.5) };

    /// All quantities in the order of the table.
    pub(crate) const ALL: [Self; 6] = [
        Self::MEDIAN,
        Self { heading: "p98", key: "p98_s", value: |run| latency(run, 0.98) },
        Self { heading: "p99.9", key: "p999_s", value: |run| latency(run, 0.999) },
        Self {
            heading: "max",
            key: "max_s",
            value: |run| Some(run.outcome.summary.from_send.max()?.as_secs_f64()),
        },
        Self {
            heading: "mean",
            key: "mean_s",
            value: |run| Some(run.outcome.summary.from_send.mean()?.as_secs_f64()),
        },
        Self {
            heading: "lateness p98",
            key: "lateness_p98_s",
            value: |run| Some(run.outcome.summary.lateness.quantile(0.98)?.value.as_secs_f64()),
        },
    ];

    /// The value of a run in milliseconds. `self` is one of [`ALL`](Self::ALL).
    fn text(&self, run: &Repetition) -> String {
        let value = Self::ALL.iter().zip(run.values).find(|(quantity, _)| quantity.key == self.key);
        milliseconds(value.and_then(|(_, value)| value))
    }
}

fn latency(run: &Run, share: f64) -> Option<f64> {
    Some(run.outcome.summary.from_send.quantile(share)?.value.as_secs_f64())
}

/// Milliseconds in a table.
pub(crate) fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| UNKNOWN.into(), |value| format!("{:.3}", value * 1e3))
}

impl Repetition {
    /// One run, whose files are written into a folder.
    fn measure(
        measurement: &Measurement,
        folder: Option<&Path>,
        observer: &dyn Observer,
    ) -> anyhow::Result<Self> {
        folder.map_or(Ok(()), create)?;
        let run = run_once(measurement, folder, observer)?;
        let experiment = &measurement.experiment;
        let verdicts = Verdicts::new(&run, experiment.class())?;
        let report = Report::of_repetition(experiment, &run, &verdicts);
        if let Some(folder) = folder {
            report.write(experiment, &run, folder)?;
        }
        let found = &run.outcome.summary;
        Ok(Self {
            title: title(&run),
            summary: report.document,
            verdicts,
            values: Quantity::ALL.map(|quantity| (quantity.value)(&run)),
            messages: found.counts.messages,
            missing: found.missing(),
            is_invalid: !findings(found).is_empty(),
            fault: run.outcome.fault,
        })
    }
}
