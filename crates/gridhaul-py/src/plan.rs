//! Planning: the cheapest configuration that meets limits.

use gridhaul::plan::{PlanRequest, VerificationDepth};
use pyo3::prelude::*;

use crate::answer::{Answers, svg};
use crate::error;
use crate::scenario::Scenario;
use crate::task::{self, Outcome};

/// The outcome of planning.
#[pyclass(frozen, module = "gridhaul._native")]
#[derive(Debug)]
pub(crate) struct PlanOutcome {
    choice: Option<Scenario>,
    answers: Answers,
    summary: String,
    document: String,
    charts: Vec<(String, String, String)>,
}

/// Finds the cheapest candidate of a scenario with a plan.
#[pyfunction]
#[pyo3(signature = (
    scenario, verify, max_candidates, runs, threads, ignore_estimate, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "the function of the package has named ones")]
pub(crate) fn plan(
    py: Python<'_>,
    scenario: &Scenario,
    verify: &str,
    max_candidates: usize,
    runs: usize,
    threads: usize,
    ignore_estimate: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome<PlanOutcome>> {
    let verify = match verify {
        "none" => None,
        "winner" => Some(VerificationDepth::Winner),
        "full" => Some(VerificationDepth::Full),
        other => {
            let text = format!(
                "unknown verification {other:?}\n  help: choose one of: none, winner, full"
            );
            return Err(error::new(py, "InputError", &text));
        }
    };
    let request = PlanRequest { verify, max_candidates, runs, threads, ignore_estimate };
    gridhaul::plan::check(&scenario.content, &scenario.file)
        .map_err(|error| error::exception(py, &error))?;
    let (scenario, label) = (scenario.clone(), scenario.label());
    let ended = task::run(py, progress, move |observer| {
        let outcome = gridhaul::plan(&scenario.content, &request, &label, observer)?;
        let document = outcome.document(&scenario.content).to_string();
        let choice = outcome.choice();
        let toml = choice.map(|choice| choice.to_toml()).unwrap_or_default();
        Ok(PlanOutcome {
            choice: choice
                .map(|content| Scenario { content: content.clone(), file: scenario.file.clone() }),
            answers: Answers::of(outcome.answers()?, toml),
            summary: outcome.summary(),
            document,
            charts: svg(outcome.charts()),
        })
    })?;
    Ok(ended.into_python(py))
}

#[pymethods]
impl PlanOutcome {
    /// The scenario with the chosen values; None if no candidate meets every limit.
    #[getter]
    fn choice(&self) -> Option<Scenario> {
        self.choice.clone()
    }

    /// The answers of the model and of the simulator to the choice.
    #[getter]
    fn answers(&self) -> Answers {
        self.answers.clone()
    }

    /// The result in a few sentences.
    #[getter]
    fn summary(&self) -> &str {
        &self.summary
    }

    /// The outcome as in `plan.json`.
    #[getter]
    fn document(&self) -> &str {
        &self.document
    }

    /// Charts of the limits around the choice: name, title and SVG of each.
    #[getter]
    fn charts(&self) -> Vec<(String, String, String)> {
        self.charts.clone()
    }
}
