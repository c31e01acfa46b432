//! Scenarios.

use std::path::{Path, PathBuf};

use gridhaul::{Changes, Origin};
use gridhaul_data::trace;
use gridhaul_scenario::answer::Warning;
use gridhaul_scenario::scenario::Scenario as Content;
use pyo3::prelude::*;

use crate::error;

/// A scenario and the name of its file in messages. Immutable.
#[pyclass(frozen, skip_from_py_object, module = "gridhaul._native")]
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) content: Content,
    pub(crate) file: String,
}

#[pymethods]
impl Scenario {
    /// Reads a scenario file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let content = trace::load_scenario(&path);
        let content = content.map_err(|error| error::input(py, &error.into()))?;
        Ok(Self { content, file: path.display().to_string() })
    }

    /// Reads a scenario from text; paths of traces are relative to `folder`.
    #[staticmethod]
    #[pyo3(signature = (text, file, folder=None))]
    fn from_toml(
        py: Python<'_>,
        text: &str,
        file: String,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        let content = Content::from_toml(text, &file);
        let mut content = content.map_err(|error| error::input(py, &error.into()))?;
        if let Some(folder) = folder {
            content.set_folder(&folder);
        }
        trace::check(&content).map_err(|error| error::input(py, &error.into()))?;
        Ok(Self { content, file })
    }

    /// The scenario with changes: `KEY=VALUE` each, as with `--set`.
    #[pyo3(signature = (settings, seed=None, replications=None))]
    fn with_changes(
        &self,
        py: Python<'_>,
        settings: Vec<String>,
        seed: Option<u64>,
        replications: Option<u32>,
    ) -> PyResult<Self> {
        let settings: Result<Vec<_>, String> = settings.iter().map(|text| text.parse()).collect();
        let set = settings.map_err(|message| error::new(py, "InputError", &message))?;
        let changes =
            Changes { origin: Origin::Program, seed, replications, set, ..Changes::default() };
        let changed = gridhaul::change(self.content.clone(), &self.file, &changes, &[]);
        let (content, _) = changed.map_err(|error| error::exception(py, &error))?;
        trace::check(&content).map_err(|error| error::input(py, &error.into()))?;
        Ok(Self { content, file: self.file.clone() })
    }

    /// Checks the scenario completely, its sweep points included. Returns its warnings, each with
    /// its subject, and the number of points.
    fn check(&self, py: Python<'_>) -> PyResult<(Vec<(String, String)>, usize)> {
        let points = self.content.point_count().map_err(|error| error::input(py, &error.into()))?;
        let warnings = self.content.warnings().into_iter();
        Ok((warnings.map(|Warning { about, message }| (about, message)).collect(), points))
    }

    /// The merged scenario as TOML.
    fn to_toml(&self) -> String {
        self.content.to_toml()
    }

    #[getter]
    fn title(&self) -> &str {
        &self.content.title
    }

    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    #[getter]
    const fn seed(&self) -> u64 {
        self.content.seed
    }

    /// The largest number of replications of a point.
    #[getter]
    const fn replications(&self) -> u32 {
        self.content.replications.max()
    }

    /// SHA-256 of the merged scenario, in hexadecimal.
    #[getter]
    fn sha256(&self) -> String {
        self.content.sha256()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl Scenario {
    /// The name of the scenario in progress and messages: its file without folder and ending.
    pub(crate) fn label(&self) -> String {
        let stem = Path::new(&self.file).file_stem();
        stem.map_or_else(|| self.file.clone(), |stem| stem.to_string_lossy().into_owned())
    }
}
