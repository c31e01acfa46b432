//! Stepped simulation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use gridhaul_scenario::answer::LossReason;
use gridhaul_scenario::units::{BitRate, Duration, Instant, Probability};
use gridhaul_sim::{
    LinkChange, MessageFate, MessageReport, Session as Simulation, SessionError, Snapshot as State,
    Step,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error;
use crate::scenario::Scenario;
use crate::task::exception_object;

/// End of the times of a session: up to it, a double counts nanoseconds (2⁵³ of them).
const SECONDS_MAX: f64 = 9e6;

/// A simulation that its caller steps.
#[pyclass(frozen, module = "gridhaul._native")]
#[derive(Debug)]
pub(crate) struct Session {
    simulation: Mutex<Simulation>,
}

/// The state of a session at one time.
#[pyclass(frozen, skip_from_py_object, module = "gridhaul._native")]
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    state: Arc<Mutex<State>>,
}

/// The end of a message: its number, when it was sent and ended, why it was lost, and whether it
/// was altered.
type Report = (u64, f64, f64, Option<&'static str>, bool);

/// The ends of messages, and the exception that interrupted the step.
type StepResult = (Vec<Report>, Option<Py<PyAny>>);

#[pymethods]
impl Session {
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, replication: u32) -> PyResult<Self> {
        let opened = py.detach(|| Simulation::open(&scenario.content, replication));
        let simulation = opened.map_err(|error| exception(py, &error))?;
        Ok(Self { simulation: Mutex::new(simulation) })
    }

    /// The time up to which the simulation has advanced, in seconds.
    #[getter]
    fn now_s(&self) -> PyResult<f64> {
        Ok(self.free()?.now().as_secs_f64())
    }

    /// Number of messages that are neither delivered nor lost.
    #[getter]
    fn in_flight(&self) -> PyResult<usize> {
        Ok(self.free()?.in_flight())
    }

    /// Sends a message. Times are in seconds, and not negative.
    fn send(
        &self,
        py: Python<'_>,
        from_node: &str,
        to_node: &str,
        size_bytes: u64,
        at_s: f64,
    ) -> PyResult<u64> {
        let at = instant(py, "at", at_s)?;
        let sent = self.free()?.send(from_node, to_node, size_bytes, at);
        sent.map(|id| id.0).map_err(|error| exception(py, &error))
    }

    /// Sends messages: sender, receiver, bytes and time of each, up to the first that is refused.
    fn send_many(
        &self,
        py: Python<'_>,
        messages: Vec<(String, String, u64, f64)>,
    ) -> PyResult<Vec<u64>> {
        messages.iter().map(|(from, to, size, at)| self.send(py, from, to, *size, *at)).collect()
    }

    /// Advances to a time. Returns the messages that were delivered or lost.
    fn advance_to(&self, py: Python<'_>, until_s: f64) -> PyResult<StepResult> {
        self.step(py, until_s, |session, until, continues| session.advance_to(until, continues))
    }

    /// Advances to the first message that is delivered or lost, or to a time.
    fn advance_to_report(&self, py: Python<'_>, until_s: f64) -> PyResult<StepResult> {
        self.step(py, until_s, |session, until, continues| {
            session.advance_to_report(until, continues)
        })
    }

    /// The time of the next event in seconds; None if nothing will happen without a message.
    fn next_event_s(&self) -> PyResult<Option<f64>> {
        Ok(self.free()?.next_event().map(Instant::as_secs_f64))
    }

    /// Changes a link. The values are texts with units, as in a scenario.
    #[pyo3(signature = (name, up=None, rate=None, delay=None, loss=None))]
    fn set_link(
        &self,
        py: Python<'_>,
        name: &str,
        up: Option<bool>,
        rate: Option<&str>,
        delay: Option<&str>,
        loss: Option<&str>,
    ) -> PyResult<()> {
        let change = LinkChange {
            up,
            rate: parsed::<BitRate>(py, "rate", rate)?,
            delay: parsed::<Duration>(py, "delay", delay)?,
            loss: parsed::<Probability>(py, "loss", loss)?,
        };
        self.free()?.set_link(name, &change).map_err(|error| exception(py, &error))
    }

    /// Makes a node fail or work again.
    fn set_node(&self, py: Python<'_>, name: &str, up: bool) -> PyResult<()> {
        self.free()?.set_node(name, up).map_err(|error| exception(py, &error))
    }

    fn snapshot(&self) -> PyResult<Snapshot> {
        Ok(Snapshot { state: Arc::new(Mutex::new(self.free()?.snapshot())) })
    }

    fn restore(&self, py: Python<'_>, snapshot: &Snapshot) -> PyResult<()> {
        let state = snapshot.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.free()?.restore(&state).map_err(|error| exception(py, &error))
    }
}

#[pymethods]
impl Snapshot {
    /// The time of the state in seconds.
    #[getter]
    fn now_s(&self) -> f64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).now().as_secs_f64()
    }
}

/// A method of the session that advances to a time while the closure returns true.
type Advance = fn(&mut Simulation, Instant, &mut dyn FnMut() -> bool) -> Result<Step, SessionError>;

impl Session {
    fn step(&self, py: Python<'_>, until_s: f64, advance: Advance) -> PyResult<StepResult> {
        let until = instant(py, "until", until_s)?;
        let mut simulation = self.free()?;
        let stepped = &mut *simulation;
        let mut interrupted = None;
        let step = py.detach(|| {
            advance(stepped, until, &mut || {
                Python::attach(|py| match py.check_signals() {
                    Ok(()) => true,
                    Err(error) => {
                        interrupted = Some(error);
                        false
                    }
                })
            })
        });
        let step = step.map_err(|error| exception(py, &error))?;
        let reports = step.reports.iter().map(report).collect();
        Ok((reports, interrupted.map(|error| exception_object(py, error))))
    }

    /// The simulation, unless another thread steps it.
    fn free(&self) -> PyResult<MutexGuard<'_, Simulation>> {
        match self.simulation.try_lock() {
            Ok(simulation) => Ok(simulation),
            // A panic has become an exception; the state may be that of half an event.
            Err(TryLockError::Poisoned(_)) => Err(PyRuntimeError::new_err(
                "an internal error has ended this session; open a new one",
            )),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("another thread is using this session"))
            }
        }
    }
}

fn report(report: &MessageReport) -> Report {
    let reason = match report.fate {
        MessageFate::Delivered | MessageFate::Altered => None,
        MessageFate::Lost(reason) => Some(LossReason::name(reason)),
    };
    let [sent_s, at_s] = [report.sent, report.at].map(Instant::as_secs_f64);
    (report.id.0, sent_s, at_s, reason, report.fate == MessageFate::Altered)
}

fn exception(py: Python<'_>, error: &SessionError) -> PyErr {
    error::new(py, "SessionError", &error.to_string())
}

/// A time of the session.
fn instant(py: Python<'_>, name: &str, seconds: f64) -> PyResult<Instant> {
    if (0.0..SECONDS_MAX).contains(&seconds) {
        return Ok(Instant::from_secs_f64(seconds));
    }
    let text = format!(
        "{name}: {seconds} is no time of a session\n  help: give seconds from 0 to {SECONDS_MAX:e}"
    );
    Err(error::new(py, "SessionError", &text))
}

/// A value with its unit.
fn parsed<T: std::str::FromStr>(
    py: Python<'_>,
    key: &str,
    text: Option<&str>,
) -> PyResult<Option<T>>
where
    T::Err: std::fmt::Display,
{
    let Some(text) = text else { return Ok(None) };
    let value = text.parse::<T>();
    value.map(Some).map_err(|error| error::new(py, "SessionError", &format!("{key}: {error}")))
}
