//! The command `gridhaul` of the package: the module has everything that the program has.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

/// Exit code of a Rust program that panics.
const PANICKED: u8 = 101;

/// Runs the command with these arguments, and returns its exit code.
#[pyfunction]
pub(crate) fn command_line(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let name = std::iter::once(OsString::from("gridhaul"));
    let run = || gridhaul::command_line::run(name.chain(arguments));
    // The message of a panic has been printed.
    py.detach(|| catch_unwind(AssertUnwindSafe(run)).unwrap_or(PANICKED))
}
