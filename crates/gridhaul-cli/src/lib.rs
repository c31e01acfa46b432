//! Parts that the programs `gridhaul` and `gridhaul-measure` share: messages, exit codes, signals,
//! the report of a panic and parsers of the values of options.
//!
//! Standard output carries data only ([`print()`]); messages go to standard error ([`say`]).

#![forbid(unsafe_code)]

pub mod exit_code;
mod output;
mod panic_report;
pub mod signal;
pub mod value;

pub use output::{print, say};
pub use panic_report::report_panic;
