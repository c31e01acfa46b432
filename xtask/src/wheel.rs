//! `cargo xtask wheel`: builds the Python package, with the module and the command `gridhaul`.

use std::fs;

use anyhow::Context;

use crate::process::{self, COMMIT, cargo, program, root, target};
use crate::test::Environment;

/// Folder of the wheel's data, from which `pip` installs programs.
const SCRIPTS: &str = "python/gridhaul.data/scripts";

/// Builds the wheel in `target/wheels`.
pub(crate) fn run() -> anyhow::Result<()> {
    let build = ["build", "--profile", "wheel", "--package", "gridhaul", "--bin", "gridhaul"];
    let mut command = cargo();
    command.args(build).arg("--locked");
    if let Some(commit) = process::commit() {
        command.env(COMMIT, commit);
    }
    process::run(&mut command)?;
    let scripts = root().join(SCRIPTS);
    fs::create_dir_all(&scripts)?;
    let command = target().join("wheel/gridhaul");
    fs::copy(&command, scripts.join("gridhaul"))
        .with_context(|| format!("cannot copy {}", command.display()))?;
    let environment = Environment {
        folder: target().join("python-wheel"),
        requirements: root().join("python/requirements-wheel.txt"),
        works: "import maturin",
    };
    environment.provide()?;
    let wheels = target().join("wheels").to_string_lossy().into_owned();
    let mut maturin = program(&environment.python());
    maturin.current_dir(root().join("python"));
    maturin.args(["-m", "maturin", "build", "--locked", "--out", &wheels]);
    process::run(&mut maturin)
}
