//! The native part of the Python package `gridhaul`: scenarios, runs, answers and sessions.
//!
//! The package in `python/gridhaul` documents and checks the interface for users, and calls these
//! classes and functions. Long work runs in a thread of its own without the lock of the
//! interpreter, so that signals are handled meanwhile (`task`). Tables leave as streams of the
//! Arrow C interface (`table`). Panics become exceptions.

#![forbid(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "arguments from Python are owned values")]

mod answer;
mod command_line;
mod compare;
mod error;
mod paper;
mod plan;
mod scenario;
mod session;
mod table;
mod task;
mod units;

use pyo3::prelude::*;

/// The module `gridhaul._native`.
#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::answer::{Answers, read, sweep};
    #[pymodule_export]
    use crate::command_line::command_line;
    #[pymodule_export]
    use crate::compare::compare;
    #[pymodule_export]
    use crate::paper::paper;
    #[pymodule_export]
    use crate::plan::{PlanOutcome, plan};
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::session::{Session, Snapshot};
    #[pymodule_export]
    use crate::table::{Table, panic_in_stream};
    #[pymodule_export]
    use crate::task::panic_in_task;
    #[pymodule_export]
    use crate::units::{UnitPlan, compute_unit, store_unit, stored_answer, swept};
    /// Version of gridhaul.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python programs expect")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
