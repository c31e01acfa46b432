//! Exceptions: the errors of the library with the texts of the command line.

use gridhaul::{Error, UnsupportedKeys};
use gridhaul_scenario::scenario::{Diagnostic, ScenarioError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The exception of an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Input(error) => input(py, error),
        Error::Internal(error) => new(py, "InternalError", &internal(&format!("{error:#}"))),
        Error::Interrupted(message) => new(py, "Interrupted", message),
    }
}

/// Options of the command line that remedies of the library name, and what they are in Python.
const OPTIONS: [(&str, &str); 2] =
    [("--ignore-estimate", "ignore_estimate=True"), ("`--series`", "`record.interval`")];

/// The exception of invalid input.
pub(crate) fn input(py: Python<'_>, error: &anyhow::Error) -> PyErr {
    if let Some(scenario) = error.downcast_ref::<ScenarioError>() {
        return scenario_error(py, scenario, &format!("{error:#}"));
    }
    let text = format!("{error:#}");
    let mut text =
        OPTIONS.iter().fold(text, |text, (option, argument)| text.replace(option, argument));
    let unsupported = error.downcast_ref::<UnsupportedKeys>();
    if let Some(other) = unsupported.and_then(|error| error.supported_by.first()) {
        text.push_str(&format!("\n  help: on=\"{other}\" supports every key of this scenario"));
    }
    new(py, "InputError", &text)
}

/// The exception of a scenario that is not valid.
pub(crate) fn scenario_error(py: Python<'_>, error: &ScenarioError, text: &str) -> PyErr {
    let built = (|| {
        let diagnostics = PyList::empty(py);
        let class = py.import("gridhaul._errors")?.getattr("Diagnostic")?;
        for Diagnostic { key, message, remedy, location } in &error.diagnostics {
            let location = location.as_ref();
            let place = location.map(|place| (place.line, place.column, place.text.clone()));
            diagnostics.append(class.call1((key, message, remedy, place))?)?;
        }
        let class = py.import("gridhaul._errors")?.getattr("ScenarioError")?;
        class.call1((text, &error.file, diagnostics))
    })();
    built.map_or_else(|error| error, PyErr::from_value)
}

/// The exception of this class of `gridhaul._errors`.
pub(crate) fn new(py: Python<'_>, class: &str, text: &str) -> PyErr {
    let built = py
        .import("gridhaul._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((text,)));
    built.map_or_else(|error| error, PyErr::from_value)
}

/// The exception of a panic, with its message.
pub(crate) fn panicked(py: Python<'_>, payload: &(dyn std::any::Any + Send)) -> PyErr {
    new(py, "InternalError", &panic_text(payload))
}

/// The text of the exception of a panic.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    internal(text.unwrap_or("a panic without a message"))
}

/// A failure of the machine, such as a thread that cannot be started.
pub(crate) fn machine(error: &std::io::Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

fn internal(text: &str) -> String {
    format!("internal error, please report it as a bug: {text}")
}
