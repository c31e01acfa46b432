//! The report of a run: tables, JSON, charts and HTML.

mod agent;
mod charts;
mod distribution;
mod latency;
mod outage;
mod page;
mod path;
mod prediction;
mod reliability;
mod run;
mod verdicts;

use std::path::Path;

use gridhaul_report::TextTable;
use serde_json::Value;

use crate::measurement::Experiment;
use crate::results_folder::write;
use crate::run::Run;

pub(crate) use distribution::{box_plot, statistics};
pub(crate) use page::{Section, page};
pub(crate) use run::title;
pub(crate) use verdicts::{Verdicts, tally, tally_json};

/// A result for readers and programs.
#[derive(Debug)]
pub struct Report {
    /// Tables, the first of which has the notes about the result.
    pub tables: Vec<TextTable>,
    /// The JSON document.
    pub document: Value,
    /// Whether the chosen application class is not met, or not decidable.
    pub is_class_not_met: bool,
}

impl Report {
    /// The report of one run.
    ///
    /// # Errors
    /// There is no application class of the chosen name.
    pub(crate) fn of_run(experiment: &Experiment, run: &Run) -> anyhow::Result<Self> {
        if let Experiment::Outage(outage) = experiment {
            let recovery = outage::recovery(run, &outage.disturbance);
            let document = outage::document(run, &outage.disturbance, recovery.as_ref());
            let mut tables = vec![outage::table(run, &outage.disturbance, recovery.as_ref())];
            tables.extend(additional(run));
            return Ok(Self::with_notes(experiment, run, tables, "outage", document));
        }
        let verdicts = Verdicts::new(run, experiment.class())?;
        let mut tables = vec![table(experiment, run)];
        tables.extend(additional(run));
        tables.push(verdicts.table());
        let mut report = Self::with_notes(experiment, run, tables, "classes", verdicts.json());
        let is_complete = run.outcome.fault.is_none() && !run.interrupted;
        report.is_class_not_met = is_complete && verdicts.is_chosen_class_not_met();
        Ok(report)
    }

    /// The report of one of several runs.
    pub(crate) fn of_repetition(experiment: &Experiment, run: &Run, verdicts: &Verdicts) -> Self {
        let mut tables = vec![table(experiment, run)];
        tables.extend(additional(run));
        tables.push(verdicts.table());
        Self::with_notes(experiment, run, tables, "classes", verdicts.json())
    }

    /// Adds the limits of a result to the first table, and a key of the experiment to the document.
    fn with_notes(
        experiment: &Experiment,
        run: &Run,
        mut tables: Vec<TextTable>,
        key: &str,
        value: Value,
    ) -> Self {
        let mut document = run::json(experiment.name(), run);
        document[key] = value;
        if let Some(table) = tables.first_mut() {
            run::notes(run).iter().for_each(|note| table.add_note(note));
        }
        Self { tables, document, is_class_not_met: false }
    }

    /// The JSON document as text.
    ///
    /// # Errors
    /// A number is not finite.
    pub fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(&self.document)? + "\n")
    }

    /// Writes the files of a run into a folder: summary, charts and page.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(
        &self,
        experiment: &Experiment,
        run: &Run,
        folder: &Path,
    ) -> anyhow::Result<()> {
        write(&folder.join("summary.json"), &self.json()?)?;
        let charts = charts::charts(run);
        for (name, chart) in &charts {
            write(&folder.join(format!("{name}.svg")), &chart.to_svg())?;
        }
        let charts = charts.into_iter().map(|(_, chart)| chart).collect();
        let mut sections: Vec<_> = self.tables.iter().map(Section::Table).collect();
        sections.insert(1.min(sections.len()), Section::Charts("Charts", charts));
        let meta = format!("gridhaul {}, measure {}", env!("CARGO_PKG_VERSION"), experiment.name());
        write(&folder.join("report.html"), &page(&title(run), &meta, &sections))
    }
}

/// The tables of additional quantities: prediction, and path of the messages.
fn additional(run: &Run) -> impl Iterator<Item = TextTable> {
    run.prediction.as_ref().map(prediction::table).into_iter().chain(path::table(run))
}

/// The table of one run.
fn table(experiment: &Experiment, run: &Run) -> TextTable {
    match experiment {
        Experiment::Reliability(_) => reliability::table(run),
        _ => latency::table(run),
    }
}
