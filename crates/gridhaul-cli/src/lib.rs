//! Parts that the programs share: messages, exit codes, signals, the report of a panic, parsers of
//! the values of options, and the manual pages and completions of their packages.
//!
//! Standard output carries data only ([`print()`]); messages go to standard error ([`say`]).

#![forbid(unsafe_code)]

pub mod exit_code;
mod output;
mod package_files;
mod panic_report;
pub mod signal;
pub mod value;

pub use output::{print, say};
pub use package_files::{PackageFilesArgs, write_package_files};
pub use panic_report::report_panic;
