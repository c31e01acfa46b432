//! Sweeps whose results are stored in units: computed here, or by the workers of another scheduler.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::anyhow;
use gridhaul::{
    ANSWER_POINTS_MAX, Changes, Engine, Error, Observer, Origin, PartPlace, RemoteUnit, Shard,
    UnitSweep, Vary, without_units,
};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::Scenario as Content;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::answer::{Answers, EngineOptions, compute};
use crate::error;
use crate::scenario::Scenario;
use crate::task::{self, Outcome, POLL};

/// A part of a unit: the index of its point, and the number of the replication; None for all that
/// the point needs.
type Part = (usize, Option<u32>);

/// The missing units of a sweep, one at a time.
#[pyclass(frozen, module = "gridhaul._native")]
pub(crate) struct UnitPlan {
    planned: Mutex<Receiver<Planned>>,
    part_count: u64,
}

/// A planned unit, or the reason why planning ended.
enum Planned {
    Unit(RemoteUnit),
    Failed(Error),
    Panicked(Box<dyn Any + Send>),
}

/// Units that are planned before they are requested.
const PLANNED_AHEAD: usize = 16;

/// Runs a scenario with its sweep, and stores the results in a folder.
pub(crate) fn run_units(
    content: &Content,
    label: &str,
    folder: PathBuf,
    engine: &Engine,
    observer: &dyn Observer,
) -> Result<Vec<Answer>, Error> {
    ensure_units(content, engine)?;
    let sweep = UnitSweep::new(content, label, vec![folder])?;
    ensure_answer(&sweep)?;
    sweep.run(Shard::ALL, engine, observer)?;
    Ok(vec![sweep.answer()?])
}

/// The scenario with a sweep over these values of keys, if its results can be stored in units.
#[pyfunction]
pub(crate) fn swept(
    py: Python<'_>,
    scenario: &Scenario,
    vary: Vec<String>,
    on: Vec<String>,
) -> PyResult<Scenario> {
    let engine = EngineOptions { on, threads: 0, ignore_estimate: true }.engine(py)?;
    let (vary, file) = (parsed(py, &vary)?, scenario.file.clone());
    let (content, label) = (scenario.content.clone(), scenario.label());
    let ended = task::run(py, None, move |_| {
        let changes = Changes { origin: Origin::Program, ..Changes::default() };
        let (content, _) = gridhaul::change(content, &label, &changes, &vary)?;
        ensure_units(&content, &engine)?;
        ensure_answer(&UnitSweep::new(&content, &label, Vec::new())?)?;
        Ok(content)
    })?;
    match (ended.result, ended.interrupted) {
        (Some(content), None) => Ok(Scenario { content, file }),
        (_, Some(interrupted)) => Err(interrupted),
        (None, None) => Err(error::new(py, "InternalError", "the scenario was not changed")),
    }
}

/// Computes the parts of a unit. Returns the contents for `store_unit`.
#[pyfunction]
pub(crate) fn compute_unit<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    parts: Vec<Part>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (content, label) = (scenario.content.clone(), scenario.label());
    let place = |(point, replication): Part| PartPlace { point, replication };
    let parts: Vec<PartPlace> = parts.into_iter().map(place).collect();
    let ended = task::run(py, None, move |observer| {
        let sweep = UnitSweep::new(&content, &label, Vec::new())?;
        sweep.compute(&parts, observer.begin(&label).as_ref())
    })?;
    match (ended.result.flatten(), ended.interrupted) {
        (Some(contents), None) => Ok(PyBytes::new(py, &contents)),
        (_, Some(interrupted)) => Err(interrupted),
        (None, None) => Err(error::new(py, "InternalError", "the unit has no parts")),
    }
}

/// Stores a unit that `compute_unit` has computed.
#[pyfunction]
pub(crate) fn store_unit(py: Python<'_>, folder: PathBuf, contents: &[u8]) -> PyResult<()> {
    let stored = UnitSweep::store(&folder, contents);
    stored.map_err(|error| error::exception(py, &error))
}

/// The answer of the stored results of a sweep.
#[pyfunction]
pub(crate) fn stored_answer(
    py: Python<'_>,
    scenario: &Scenario,
    folder: PathBuf,
) -> PyResult<Outcome<Answers>> {
    compute(py, scenario.clone(), Vec::new(), None, move |content, label, _| {
        Ok(vec![UnitSweep::new(content, label, vec![folder])?.answer()?])
    })
}

#[pymethods]
impl UnitPlan {
    /// Plans the units without a result in a folder, for so many threads.
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, folder: PathBuf, threads: usize) -> PyResult<Self> {
        let (sender, receiver) = sync_channel(PLANNED_AHEAD);
        let (content, label) = (scenario.content.clone(), scenario.label());
        let part_count = UnitSweep::new(&content, &label, Vec::new());
        let part_count = part_count.map_err(|error| error::exception(py, &error))?.part_count();
        let plan = move || {
            let planned = catch_unwind(AssertUnwindSafe(|| {
                send_units(&content, &label, &folder, threads, &sender)
            }));
            // A plan that nobody reads any more has ended.
            let _ = match planned {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => sender.send(Planned::Failed(error)),
                Err(payload) => sender.send(Planned::Panicked(payload)),
            };
        };
        let started = thread::Builder::new().name("gridhaul-plan".to_owned()).spawn(plan);
        drop(started.map_err(|error| error::machine(&error))?);
        Ok(Self { planned: Mutex::new(receiver), part_count })
    }

    /// Number of parts of the sweep, those with stored results included.
    #[getter]
    const fn part_count(&self) -> u64 {
        self.part_count
    }

    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// The parts of the next unit, and the number of parts with stored results before them.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(Vec<Part>, u64)>> {
        loop {
            let received = py.detach(|| {
                let planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
                planned.recv_timeout(POLL)
            });
            match received {
                Ok(Planned::Unit(RemoteUnit { parts, stored })) => {
                    let part = |place: PartPlace| (place.point, place.replication);
                    return Ok(Some((parts.into_iter().map(part).collect(), stored)));
                }
                Ok(Planned::Failed(error)) => return Err(error::exception(py, &error)),
                Ok(Planned::Panicked(payload)) => return Err(error::panicked(py, &*payload)),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }
}

fn send_units(
    content: &Content,
    label: &str,
    folder: &Path,
    threads: usize,
    sender: &SyncSender<Planned>,
) -> Result<(), Error> {
    let sweep = UnitSweep::new(content, label, vec![folder.to_owned()])?;
    sweep.plan(threads, |unit| sender.send(Planned::Unit(unit)).is_ok())
}

/// `KEY=VALUES` each, as with `--vary`.
pub(crate) fn parsed(py: Python<'_>, vary: &[String]) -> PyResult<Vec<Vary>> {
    let vary: Result<Vec<Vary>, String> = vary.iter().map(|text| text.parse()).collect();
    vary.map_err(|message| error::new(py, "InputError", &message))
}

fn ensure_units(content: &Content, engine: &Engine) -> Result<(), Error> {
    match without_units(content, engine) {
        None => Ok(()),
        Some(reason) => Err(anyhow!("{reason}\n  help: sweep without `units` and `client`").into()),
    }
}

/// Refuses sweeps whose answer has too many points for the memory.
fn ensure_answer(sweep: &UnitSweep<'_>) -> Result<(), Error> {
    let points = sweep.point_count();
    if points <= ANSWER_POINTS_MAX {
        return Ok(());
    }
    Err(anyhow!(
        "the sweep has {points} points; an answer has at most {ANSWER_POINTS_MAX}\n  help: use \
         `gridhaul sweep` and `gridhaul merge`, and read answers.parquet"
    )
    .into())
}
