//! Comparison of answers.

use gridhaul_scenario::answer::{Answer, Metric};
use pyo3::prelude::*;

use crate::answer::Answers;
use crate::error;

/// Compares answers with the first one, as JSON. `only` selects metrics; if it is empty, the
/// headline metrics are compared.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    answers: Vec<(String, PyRef<'_, Answers>)>,
    only: Vec<String>,
) -> PyResult<String> {
    let metrics: Result<Vec<Metric>, String> = only.iter().map(|name| name.parse()).collect();
    let metrics = metrics.map_err(|text| error::new(py, "InputError", &text))?;
    let mut labelled: Vec<(String, &Answer)> = Vec::new();
    for (label, answers) in &answers {
        let several = answers.answers.len() > 1;
        for answer in answers.answers.iter() {
            let label = match several {
                true => format!("{label} ({})", answer.backend),
                false => label.clone(),
            };
            labelled.push((label, answer));
        }
    }
    if labelled.len() < 2 {
        let found = if labelled.is_empty() { "none" } else { "one" };
        let text = format!(
            "answers: compare needs at least two, found {found}\n  help: give a second answer, or \
             one of several backends: on=[\"sim\", \"model\"]"
        );
        return Err(error::new(py, "InputError", &text));
    }
    let compared = gridhaul::compare(&labelled, &metrics);
    let compared = compared.map_err(|error| error::exception(py, &error))?;
    serde_json::to_string(&compared)
        .map_err(|error| error::new(py, "InternalError", &error.to_string()))
}
