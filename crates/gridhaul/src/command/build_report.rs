//! `gridhaul --version --verbose`: commit, features and support of the kernel.

use gridhaul_cli::{build_report, print};

use super::doctor;
use super::error::CommandError;

/// Prints the report.
pub(crate) fn run() -> Result<(), CommandError> {
    let features = if cfg!(feature = "emulation") { "emulation" } else { "none" };
    let mut facts = vec![("features", features.to_owned())];
    facts.extend(doctor::kernel_support());
    Ok(print(&build_report("gridhaul", env!("CARGO_PKG_VERSION"), &facts))?)
}
