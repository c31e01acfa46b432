//! `cargo xtask docs`: regenerates the pages that are generated from the code.

use crate::process::{self, cargo};

/// Regenerates all pages. Each is the golden file of a test, which writes the file instead of
/// comparing it.
pub(crate) fn run() -> anyhow::Result<()> {
    let reference = ["test", "--quiet", "--package", "gridhaul-scenario"];
    process::run(cargo().args(reference).env("GRIDHAUL_UPDATE", "1"))?;
    let measurement = ["test", "--quiet", "--package", "gridhaul-measure", "--features", "schema"];
    let measurement = [&measurement[..], &["--test", "reference"]].concat();
    process::run(cargo().args(measurement).env("GRIDHAUL_UPDATE", "1"))?;
    let profiles = ["test", "--quiet", "--package", "gridhaul-core", "--test", "profiles"];
    process::run(cargo().args(profiles).env("GRIDHAUL_UPDATE", "1"))?;
    let help = ["test", "--quiet", "--package", "gridhaul", "--test", "cli", "help"];
    process::run(cargo().args(help).env("INSTA_UPDATE", "always"))?;
    let pictures = ["test", "--quiet", "--package", "gridhaul", "--test", "cli", "pictures"];
    process::run(cargo().args(pictures).env("GRIDHAUL_UPDATE", "1"))
}
