//! Parts that the programs share: messages, exit codes, signals, the report of a panic, parsers of
//! the values of options, the report of a build, and the manual pages and completions of their
//! packages.
//!
//! Standard output carries data only ([`print()`]); messages go to standard error ([`say`]).

#![forbid(unsafe_code)]

mod build_report;
pub mod exit_code;
mod output;
mod package_files;
mod panic_report;
pub mod signal;
pub mod value;

pub use build_report::{
    build_report, refuse_verbose, report_build_if_requested, requests_build_report,
};
pub use output::{print, say};
pub use package_files::{PackageFilesArgs, write_package_files};
pub use panic_report::report_panic;
