//! Papers: experiments that others published, repeated and checked figure by figure.
//!
//! A paper is a folder `papers/<name>/`: `paper.toml` lists the scenarios, `expected.csv` the
//! published figures, what ns-2 gives for them, and how near gridhaul must come. A new paper needs
//! a new folder and no code.

mod expected;
mod judge;
mod page;

use anyhow::{Context, anyhow};
use gridhaul_scenario::scenario::Scenario;
use indexmap::IndexMap;
use serde::Deserialize;

use crate::ask::{self, Setting};

pub(crate) use expected::Expected;
pub(crate) use judge::{Judged, judge, points_of, tables};
pub(crate) use page::{page, pictures};

/// A paper as it stands in the repository.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Paper {
    /// Name of the folder.
    pub(crate) name: &'static str,
    /// What it is and what it asks.
    pub(crate) about: About,
    /// The published figures.
    pub(crate) cells: Vec<Expected>,
    files: &'static [(&'static str, &'static str)],
}

/// The file `paper.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    /// Title of the paper.
    pub(crate) title: String,
    /// Who wrote it, and where it appeared.
    pub(crate) source: String,
    /// What its readers must know: shown above the results.
    pub(crate) note: String,
    /// Headings of its tables, by the name in `expected.csv`.
    pub(crate) table: IndexMap<String, String>,
    /// Scenarios to run.
    pub(crate) scenario: Vec<Experiment>,
}

/// A scenario of a paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Experiment {
    /// File in the folder of the paper.
    pub(crate) file: String,
    /// Settings for a quick run, such as `repeat=3`.
    #[serde(default)]
    pub(crate) quick: Vec<String>,
    /// Names of the points of its sweep, for charts over time.
    #[serde(default)]
    pub(crate) points: Vec<String>,
}

/// The files of a paper, as the build put them into the program.
struct Embedded {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

static EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

impl Paper {
    /// All papers.
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        EMBEDDED.iter().map(Self::read).collect()
    }

    fn read(embedded: &Embedded) -> anyhow::Result<Self> {
        let Embedded { name, files } = embedded;
        let broken = |file: &str| format!("papers/{name}/{file}");
        let about = text(files, "paper.toml").and_then(|text| Ok(toml::from_str(text)?));
        let cells = text(files, "expected.csv").and_then(expected::read);
        Ok(Self {
            name,
            about: about.with_context(|| broken("paper.toml"))?,
            cells: cells.with_context(|| broken("expected.csv"))?,
            files,
        })
    }

    /// The scenarios with their names, the file names without ending.
    pub(crate) fn scenarios(&self, quick: bool) -> anyhow::Result<Vec<(String, Scenario)>> {
        let experiments = self.about.scenario.iter();
        experiments.map(|experiment| self.scenario(experiment, quick)).collect()
    }

    fn scenario(&self, experiment: &Experiment, quick: bool) -> anyhow::Result<(String, Scenario)> {
        let shown = format!("papers/{}/{}", self.name, experiment.file);
        let text = text(self.files, &experiment.file).context(shown.clone())?;
        let mut scenario = Scenario::from_toml(text, &shown)?;
        if quick {
            let settings = experiment.quick.iter().map(|text| text.parse());
            let settings: Vec<Setting> =
                settings.collect::<Result<_, String>>().map_err(|error| anyhow!(error))?;
            scenario = ask::set(scenario, &shown, &settings)?;
        }
        Ok((experiment.file.trim_end_matches(".toml").to_owned(), scenario))
    }
}

fn text(
    files: &'static [(&'static str, &'static str)],
    name: &str,
) -> anyhow::Result<&'static str> {
    let found = files.iter().find(|(file, _)| *file == name);
    found.map(|(_, text)| *text).with_context(|| format!("there is no file {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_asks_for_something_that_its_scenario_has() {
        let papers = Paper::all().unwrap();
        assert!(papers.iter().any(|paper| paper.name == "hybrid"));
        for paper in &papers {
            for quick in [false, true] {
                let scenarios: IndexMap<_, _> =
                    paper.scenarios(quick).unwrap().into_iter().collect();
                for cell in &paper.cells {
                    let place = format!("papers/{}/expected.csv: {}", paper.name, cell.cell);
                    let scenario = scenarios.get(&cell.scenario).expect(&place);
                    let points = scenario.points().unwrap();
                    let parameters = points.iter().map(|point| &point.parameters);
                    assert_eq!(points_of(cell, parameters).len(), 1, "{place}: parameters");
                    assert!(cell.select.exists_in(scenario), "{place}: select");
                    assert!(paper.about.table.contains_key(&cell.table), "{place}: table");
                }
            }
        }
    }

    #[test]
    fn no_two_cells_have_one_name() {
        for paper in Paper::all().unwrap() {
            let mut names: Vec<_> = paper.cells.iter().map(|cell| &cell.cell).collect();
            names.sort();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all, "{}", paper.name);
        }
    }
}
