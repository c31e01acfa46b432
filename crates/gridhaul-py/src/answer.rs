//! Runs, sweeps, and the answers of all backends.

use std::path::PathBuf;
use std::sync::Arc;

use gridhaul::{
    BackendName, Changes, Engine, Error, Observer, Origin, Vary, compare as comparison,
};
use gridhaul_report::{NamedChart, Report};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::{Record, Scenario as Content};
use pyo3::prelude::*;

use crate::error;
use crate::scenario::Scenario;
use crate::table::{Table, TableSource};
use crate::task::{self, Outcome};
use crate::units::{parsed, run_units};

/// The answers of one or more backends to one scenario.
#[pyclass(frozen, skip_from_py_object, module = "gridhaul._native")]
#[derive(Debug, Clone)]
pub(crate) struct Answers {
    /// With the values of each replication, which tables show.
    pub(crate) answers: Arc<Vec<Answer>>,
    /// The keys of the scenario that select the contents of `answer.json`; `None` for stored
    /// answers.
    record: Option<Record>,
    /// The merged scenario as TOML; empty for stored answers.
    scenario_toml: String,
    description: String,
}

/// The options of a run that select backends and resources.
pub(crate) struct EngineOptions {
    pub(crate) on: Vec<String>,
    pub(crate) threads: usize,
    pub(crate) ignore_estimate: bool,
}

/// Runs a scenario for several values of keys: `KEY=VALUES` each, as with `--vary`. With a folder
/// for `units`, stores the results there.
#[pyfunction]
#[pyo3(signature = (scenario, vary, units, on, threads, ignore_estimate, progress=None))]
#[expect(clippy::too_many_arguments, reason = "the function of the package has named ones")]
pub(crate) fn sweep(
    py: Python<'_>,
    scenario: &Scenario,
    vary: Vec<String>,
    units: Option<PathBuf>,
    on: Vec<String>,
    threads: usize,
    ignore_estimate: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome<Answers>> {
    let engine = EngineOptions { on, threads, ignore_estimate }.engine(py)?;
    let vary = parsed(py, &vary)?;
    compute(py, scenario.clone(), vary, progress, move |content, label, observer| match units {
        None => gridhaul::run(content, &engine, label, observer),
        Some(folder) => run_units(content, label, folder, &engine, observer),
    })
}

/// Reads stored answers: results folders or files `answer.json`.
#[pyfunction]
#[pyo3(name = "read_answers")]
pub(crate) fn read(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Answers> {
    let read = paths.iter().map(|path| {
        let file = if path.is_dir() { path.join("answer.json") } else { path.clone() };
        gridhaul::read_answers(&file).map_err(|error| error::exception(py, &error))
    });
    let answers = read.collect::<PyResult<Vec<_>>>()?;
    Ok(Answers::of(answers.concat(), String::new()))
}

/// Computes the answers to a scenario, with a sweep over these values of keys, in another thread.
pub(crate) fn compute(
    py: Python<'_>,
    scenario: Scenario,
    vary: Vec<Vary>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Content, &str, &dyn Observer) -> Result<Vec<Answer>, Error> + Send + 'static,
) -> PyResult<Outcome<Answers>> {
    let ended = task::run(py, progress, move |observer| {
        let changes = Changes { origin: Origin::Program, ..Changes::default() };
        let label = scenario.label();
        let (content, _) = gridhaul::change(scenario.content, &label, &changes, &vary)?;
        let answers = work(&content, &label, observer)?;
        let answers = Answers {
            description: content.description.clone(),
            record: Some(content.record.clone()),
            ..Answers::of(answers, content.to_toml())
        };
        Ok(answers)
    })?;
    Ok(ended.into_python(py))
}

impl EngineOptions {
    pub(crate) fn engine(&self, py: Python<'_>) -> PyResult<Engine> {
        let names: Result<Vec<BackendName>, String> =
            self.on.iter().map(|name| name.parse()).collect();
        let backends = names.map_err(|message| error::new(py, "InputError", &message))?;
        Ok(Engine {
            backends,
            threads: self.threads,
            ignore_estimate: self.ignore_estimate,
            ..Engine::default()
        })
    }
}

#[pymethods]
impl Answers {
    /// The backends, in order.
    #[getter]
    fn backends(&self) -> Vec<String> {
        self.answers.iter().map(|answer| answer.backend.clone()).collect()
    }

    #[getter]
    fn title(&self) -> String {
        self.answers.first().map(|answer| answer.title.clone()).unwrap_or_default()
    }

    #[getter]
    fn seed(&self) -> Option<u64> {
        self.answers.first().map(|answer| answer.seed)
    }

    #[getter]
    fn scenario_sha256(&self) -> String {
        self.answers.first().map(|answer| answer.scenario_sha256.clone()).unwrap_or_default()
    }

    #[getter]
    fn scenario_toml(&self) -> &str {
        &self.scenario_toml
    }

    /// Whether the run was interrupted before all points were finished.
    #[getter]
    fn incomplete(&self) -> bool {
        self.answers.iter().any(|answer| answer.incomplete)
    }

    /// Warnings: backend, subject and text of each.
    #[getter]
    fn warnings(&self) -> Vec<(String, String, String)> {
        let of_answer = |answer: &Answer| {
            let backend = answer.backend.clone();
            let warnings = answer.warnings.clone().into_iter();
            warnings.map(move |warning| (backend.clone(), warning.about, warning.message))
        };
        self.answers.iter().flat_map(of_answer).collect()
    }

    /// Numbers of points and of replications of the first answer.
    #[getter]
    fn size(&self) -> (usize, u32) {
        self.answers.first().map_or((0, 0), |answer| (answer.points.len(), answer.replications))
    }

    /// The answer of one backend.
    fn of_backend(&self, name: &str) -> Option<Self> {
        let found = self.answers.iter().find(|answer| answer.backend == name)?;
        Some(Self { answers: Arc::new(vec![found.clone()]), ..self.clone() })
    }

    /// A table by its name, as of `gridhaul export`.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let source = TableSource::named(name, &self.labelled());
        let source = source.map_err(|message| error::new(py, "InputError", &message))?;
        Ok(Table::new(source))
    }

    /// Names of the recorded series.
    fn series_names(&self) -> Vec<String> {
        let several = self.answers.len() > 1;
        let name = |answer: &Answer, series: &str| match several {
            true => format!("{series}-{}", answer.backend),
            false => series.to_owned(),
        };
        let of_answer = |answer: &Answer| {
            answer.series.iter().map(|series| name(answer, &series.name)).collect::<Vec<_>>()
        };
        self.answers.iter().flat_map(of_answer).collect()
    }

    /// The recorded series at an index of `series_names`.
    fn series(&self, index: usize) -> Option<Table> {
        let mut series = self
            .answers
            .iter()
            .flat_map(|answer| answer.series.iter().map(move |series| (answer, series)));
        let (answer, series) = series.nth(index)?;
        Some(Table::new(TableSource::of_series(answer, series)))
    }

    /// The answer as in `answer.json`; a list for several backends.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let mut answers = Vec::clone(&self.answers);
        if let Some(record) = &self.record {
            answers.iter_mut().for_each(|answer| answer.remove_unrecorded(record));
        }
        let text = match &answers[..] {
            [answer] => serde_json::to_string_pretty(answer),
            answers => serde_json::to_string_pretty(answers),
        };
        text.map_err(|error| error::new(py, "InternalError", &error.to_string()))
    }

    /// The state of a pickle: the answers with the values of each replication, without recordings.
    fn to_state(&self, py: Python<'_>) -> PyResult<String> {
        let state = (&*self.answers, &self.record, &self.scenario_toml, &self.description);
        serde_json::to_string(&state)
            .map_err(|error| error::new(py, "InternalError", &error.to_string()))
    }

    /// The answers of `to_state`.
    #[staticmethod]
    fn from_state(py: Python<'_>, state: &str) -> PyResult<Self> {
        let (answers, record, scenario_toml, description) = serde_json::from_str(state)
            .map_err(|error| error::new(py, "InputError", &format!("not an answer: {error}")))?;
        Ok(Self { answers: Arc::new(answers), record, scenario_toml, description })
    }

    /// Charts: name, title and SVG of each.
    fn charts(&self) -> Vec<(String, String, String)> {
        svg(&gridhaul_report::charts(&self.labelled()))
    }

    /// The report as one HTML file.
    fn report(&self) -> String {
        gridhaul_report::html(&Report {
            title: &self.title(),
            description: &self.description,
            answers: &self.labelled(),
            scenario_toml: &self.scenario_toml,
            ..Report::default()
        })
    }

    /// The result in sentences.
    fn summary(&self) -> String {
        gridhaul_report::result(&self.labelled()).join(" ")
    }

    /// The answers of the backends compared with the first, as JSON.
    fn comparison(&self, py: Python<'_>) -> PyResult<String> {
        let compared = comparison(&self.labelled(), &[]);
        let compared = compared.map_err(|error| error::exception(py, &error))?;
        serde_json::to_string(&compared)
            .map_err(|error| error::new(py, "InternalError", &error.to_string()))
    }
}

impl Answers {
    pub(crate) fn of(answers: Vec<Answer>, scenario_toml: String) -> Self {
        let (answers, description) = (Arc::new(answers), String::new());
        Self { answers, record: None, scenario_toml, description }
    }

    /// The answers with the names of their backends.
    pub(crate) fn labelled(&self) -> Vec<(String, &Answer)> {
        self.answers.iter().map(|answer| (answer.backend.clone(), answer)).collect()
    }
}

/// Name, title and SVG of charts.
pub(crate) fn svg(charts: &[NamedChart]) -> Vec<(String, String, String)> {
    let drawn = |named: &NamedChart| {
        (named.name.clone(), named.chart.title().to_owned(), named.chart.to_svg())
    };
    charts.iter().map(drawn).collect()
}
