//! `cargo xtask docs`: pages that are made from the code.

use crate::shell::{self, cargo};

/// Writes them anew. Each is a golden file of a test, which then writes instead of comparing.
pub(crate) fn run() -> anyhow::Result<()> {
    let reference = ["test", "--quiet", "--package", "gridhaul-scenario"];
    shell::run(cargo().args(reference).env("GRIDHAUL_UPDATE", "1"))?;
    let profiles = ["test", "--quiet", "--package", "gridhaul-core", "--test", "profiles"];
    shell::run(cargo().args(profiles).env("GRIDHAUL_UPDATE", "1"))?;
    let help = ["test", "--quiet", "--package", "gridhaul", "--test", "cli", "help"];
    shell::run(cargo().args(help).env("INSTA_UPDATE", "always"))?;
    let pictures = ["test", "--quiet", "--package", "gridhaul", "--test", "cli", "pictures"];
    shell::run(cargo().args(pictures).env("GRIDHAUL_UPDATE", "1"))
}
