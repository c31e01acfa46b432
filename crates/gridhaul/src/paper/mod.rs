//! Papers: published experiments, reproduced and checked figure by figure.
//!
//! A paper is a folder `papers/<name>/`: `paper.toml` lists the scenarios and figures,
//! `expected.csv` the published values, those of ns-2 and their tolerances, and `claims.toml` the
//! statements of the text. A new paper needs a new folder and no code.

mod answers;
mod backend_agreement;
mod check;
mod claim;
#[cfg(test)]
mod claim_table_tests;
mod column_select;
mod comparisons;
mod expected;
mod figure;
mod findings;
mod page;
mod reproduction;
mod select;
#[cfg(test)]
mod tests;
mod tolerance_width;

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use gridhaul_scenario::scenario::Scenario;
use indexmap::IndexMap;
use serde::Deserialize;

use crate::error::Error;
use crate::request;
use backend_agreement::KnownDifference;
use claim::{Claim, CurveName};
use figure::Figure;

use answers::{Answers, SkippedScenario};
use backend_agreement::{Agreement, agreements, tables as agreement_tables};
use check::{CheckedCell, Place, check_cell, points_of, reference_value, tables};
use claim::{ClaimResult, claim_results, table as claim_table};
use comparisons::comparisons;
use expected::Expected;
use figure::Curve;
use findings::Findings;
pub use reproduction::{Reproduction, paper};

/// A paper of the repository.
#[derive(Debug, Clone, PartialEq)]
pub struct Paper {
    /// Name of the folder.
    pub name: &'static str,
    /// Title, scenarios and figures.
    pub(crate) definition: PaperDefinition,
    /// The published numbers.
    pub(crate) cells: Vec<Expected>,
    /// Statements of the text about the figures.
    pub(crate) claims: Vec<Claim>,
    /// Known differences between backends.
    pub(crate) differs: Vec<KnownDifference>,
    files: &'static [(&'static str, &'static str)],
}

/// The file `paper.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaperDefinition {
    /// Title of the paper.
    pub(crate) title: String,
    /// Authors and publication.
    pub(crate) source: String,
    /// Introduction of the report.
    pub(crate) note: String,
    /// Headings of its tables and figures, by the name in `expected.csv` and in `[[figure]]`.
    pub(crate) table: IndexMap<String, String>,
    /// Captions, by the same name.
    #[serde(default)]
    pub(crate) caption: IndexMap<String, String>,
    /// Scenarios to run.
    pub(crate) scenario: Vec<Experiment>,
    /// Figures to draw.
    #[serde(default)]
    pub(crate) figure: Vec<Figure>,
    /// Charts over time.
    #[serde(default)]
    pub(crate) timeline: Vec<Timeline>,
}

/// A recorded quantity over time, with a line for each point of a scenario's sweep.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timeline {
    /// Name, unique in the paper.
    pub(crate) name: String,
    /// Section of the report: a name in `[table]`.
    pub(crate) table: String,
    /// Title of the chart.
    pub(crate) title: String,
    /// Name of the scenario; it must set `record.interval`.
    pub(crate) scenario: String,
    /// The quantity: a column of a recorded time series.
    pub(crate) column: String,
    /// The flow or link direction.
    pub(crate) of: String,
}

/// A scenario of a paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Experiment {
    /// File in the folder of the paper.
    pub(crate) file: String,
    /// Name of this use of the file. Absent: the file name without ending.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Backends that run the scenario, such as `["model", "sim"]`. Absent: those of the command
    /// line.
    #[serde(default)]
    pub(crate) on: Vec<String>,
    /// Backends of a quick run, if they differ.
    #[serde(default)]
    pub(crate) quick_on: Option<Vec<String>>,
    /// Concurrent runs of backend `emu`; more than one only if a run needs little CPU time.
    #[serde(default)]
    pub(crate) concurrent_runs: usize,
    /// Changes to the file: `key=value` sets a key, `key=a,b` sweeps it.
    #[serde(default)]
    pub(crate) set: Vec<String>,
    /// Further changes for a quick run, such as `replications=3`.
    #[serde(default)]
    pub(crate) quick: Vec<String>,
    /// By backend: changes for additional points of a smooth curve.
    #[serde(default)]
    pub(crate) further: BTreeMap<String, Vec<String>>,
    /// Names of its sweep points in charts over time.
    #[serde(default)]
    pub(crate) points: Vec<String>,
}

/// The files of a paper, embedded by the build script.
struct Embedded {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

static EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

impl Paper {
    /// All papers.
    ///
    /// # Errors
    /// A folder with errors, which is a defect of gridhaul.
    pub fn all() -> Result<Vec<Self>, Error> {
        EMBEDDED.iter().map(Self::read).collect::<anyhow::Result<_>>().map_err(Error::Internal)
    }

    /// Title of the paper.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.definition.title
    }

    /// Authors and publication.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.definition.source
    }

    /// Number of published figures that are checked or drawn.
    #[must_use]
    pub fn figures(&self) -> usize {
        self.cells.len() + self.definition.figure.len()
    }

    fn read(embedded: &Embedded) -> anyhow::Result<Self> {
        let Embedded { name, files } = embedded;
        let broken = |file: &str| format!("papers/{name}/{file}");
        let definition = text(files, "paper.toml").and_then(|text| Ok(toml::from_str(text)?));
        let paper = Self {
            name,
            definition: definition.with_context(|| broken("paper.toml"))?,
            cells: optional(files, "expected.csv", expected::read)
                .with_context(|| broken("expected.csv"))?,
            claims: optional(files, "claims.toml", claim::read)
                .with_context(|| broken("claims.toml"))?,
            differs: optional(files, "differs.csv", backend_agreement::read)
                .with_context(|| broken("differs.csv"))?,
            files,
        };
        let figures = &paper.definition.figure;
        expected::check(&paper.cells).with_context(|| broken("expected.csv"))?;
        paper.check_figures().with_context(|| broken("paper.toml"))?;
        claim::check(&paper.claims, figures, |name| paper.backends_of(name))
            .with_context(|| broken("claims.toml"))?;
        backend_agreement::check(&paper.differs, figures).with_context(|| broken("differs.csv"))?;
        Ok(paper)
    }

    /// The backends that answer a curve; empty if a scenario of the curve names none.
    fn backends_of(&self, curve: &CurveName) -> Vec<String> {
        let figure = self.definition.figure.iter().find(|figure| figure.name == curve.figure);
        let line =
            figure.and_then(|figure| figure.line.iter().find(|line| line.name == curve.line));
        let sources = line.into_iter().flat_map(|line| &line.from);
        let named = |source: &figure::Source| {
            let mut scenarios = self.definition.scenario.iter();
            let of_scenario = scenarios.find(|scenario| scenario.name() == source.scenario);
            let on = of_scenario.map_or(&[][..], |scenario| &scenario.on);
            let drawn = on.iter().filter(|backend| source.draws(backend)).cloned();
            drawn.collect::<Vec<_>>()
        };
        let mut all = Vec::new();
        // Without `on`, the command line chooses the backends, which are not known here.
        for on in sources.map(named) {
            if on.is_empty() {
                return Vec::new();
            }
            all.extend(on);
        }
        all
    }

    /// Checks that figures have headings and that their lines refer to existing scenarios.
    fn check_figures(&self) -> anyhow::Result<()> {
        let scenarios: Vec<_> = self.definition.scenario.iter().map(Experiment::name).collect();
        for (index, name) in scenarios.iter().enumerate() {
            ensure!(!scenarios[..index].contains(name), "two scenarios have the name {name}");
        }
        for figure in &self.definition.figure {
            // Claims name a curve as `figure.line`.
            let named = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let place = &figure.name;
            let known = self.definition.table.contains_key(&figure.table);
            ensure!(known, "figure {place}: [table] has no {:?}", figure.table);
            for line in &figure.line {
                ensure!(
                    named(place) && named(&line.name),
                    "figure {place}, line {}: names have letters, digits and _",
                    line.name
                );
                ensure!(
                    !line.from.is_empty(),
                    "figure {place}, line {}: `from` is empty",
                    line.name
                );
                for source in &line.from {
                    let scenario = source.scenario.as_str();
                    ensure!(
                        scenarios.contains(&scenario),
                        "figure {place}, line {}: there is no scenario {scenario:?}\n  help: there \
                         are: {}",
                        line.name,
                        scenarios.join(", ")
                    );
                }
            }
        }
        for timeline in &self.definition.timeline {
            let Timeline { name, table, scenario, .. } = timeline;
            let known = self.definition.table.contains_key(table);
            ensure!(known, "timeline {name}: [table] has no {table:?}");
            let known = scenarios.contains(&scenario.as_str());
            ensure!(known, "timeline {name}: there is no scenario {scenario:?}");
        }
        Ok(())
    }

    /// A scenario of the paper with the changes of the experiment.
    pub(crate) fn scenario(
        &self,
        experiment: &Experiment,
        quick: bool,
    ) -> anyhow::Result<(String, Scenario)> {
        let shown = format!("papers/{}/{}", self.name, experiment.file);
        let text = text(self.files, &experiment.file).context(shown.clone())?;
        let mut scenario = Scenario::from_toml(text, &shown)?;
        let quick = if quick { &experiment.quick[..] } else { &[] };
        for settings in [&experiment.set[..], quick] {
            let settings = answers::settings(settings).with_context(|| shown.clone())?;
            scenario = request::assign(scenario, &shown, &settings)?;
        }
        Ok((experiment.name().to_owned(), scenario))
    }
}

impl Experiment {
    /// Name of its answers.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.file.trim_end_matches(".toml"))
    }
}

/// Contents of an optional file; the default if the paper does not have it.
fn optional<T: Default>(
    files: &'static [(&'static str, &'static str)],
    name: &str,
    read: fn(&str) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    text(files, name).map_or_else(|_| Ok(T::default()), read)
}

fn text(
    files: &'static [(&'static str, &'static str)],
    name: &str,
) -> anyhow::Result<&'static str> {
    let found = files.iter().find(|(file, _)| *file == name);
    found.map(|(_, text)| *text).with_context(|| format!("there is no file {name}"))
}
