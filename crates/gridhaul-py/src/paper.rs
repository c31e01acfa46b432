//! Papers: published experiments, reproduced and checked figure by figure.

use gridhaul_scenario::answer::Answer;
use pyo3::prelude::*;

use crate::answer::{Answers, EngineOptions, svg};
use crate::error;
use crate::task::{self, Outcome};

/// Summary, number of checks, names of failed checks, charts, report and answers of a paper.
type Reproduced =
    (String, usize, Vec<String>, Vec<(String, String, String)>, String, Vec<(String, Answers)>);

/// Reproduces the experiments of a paper.
#[pyfunction]
#[pyo3(signature = (name, quick, on, threads, ignore_estimate, progress=None))]
pub(crate) fn paper(
    py: Python<'_>,
    name: String,
    quick: bool,
    on: Vec<String>,
    threads: usize,
    ignore_estimate: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome<Reproduced>> {
    let engine = EngineOptions { on, threads, ignore_estimate }.engine(py)?;
    gridhaul::paper::Paper::named(&name).map_err(|error| error::exception(py, &error))?;
    let ended = task::run(py, progress, move |observer| {
        let reproduction = gridhaul::paper(&name, quick, &engine, observer)?;
        let charts = reproduction.charts();
        let answer = |(name, answer): (String, &Answer)| {
            (name, Answers::of(vec![answer.clone()], String::new()))
        };
        Ok((
            reproduction.summary(),
            reproduction.checks(),
            reproduction.failed(),
            svg(&charts),
            reproduction.html(&charts),
            reproduction.answers().map(answer).collect(),
        ))
    })?;
    Ok(ended.into_python(py))
}
