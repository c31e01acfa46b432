//! `cargo xtask wheel`: builds the Python package, with the module and the command `gridhaul`.

use std::fs;

use anyhow::Context;

use crate::process::{self, cargo, program, root, target};

/// Folder of the wheel's data, from which `pip` installs programs.
const SCRIPTS: &str = "python/gridhaul.data/scripts";

/// Version of maturin, which packs the wheel.
const MATURIN: &str = "maturin==1.16.0";

/// Builds the wheel in `target/wheels`.
pub(crate) fn run() -> anyhow::Result<()> {
    let build = ["build", "--profile", "wheel", "--package", "gridhaul", "--bin", "gridhaul"];
    process::run(cargo().args(build).arg("--locked"))?;
    let scripts = root().join(SCRIPTS);
    fs::create_dir_all(&scripts)?;
    let command = target().join("wheel/gridhaul");
    fs::copy(&command, scripts.join("gridhaul"))
        .with_context(|| format!("cannot copy {}", command.display()))?;
    let environment = target().join("python-wheel");
    let python = environment.join("bin/python").to_string_lossy().into_owned();
    if process::output(program(&python).args(["-m", "maturin", "--version"])).is_err() {
        let folder = environment.to_string_lossy();
        process::run(program("python3").args(["-m", "venv", "--clear", &folder]))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", MATURIN];
        process::run(program(&python).args(install))?;
    }
    let wheels = target().join("wheels").to_string_lossy().into_owned();
    let mut maturin = program(&python);
    maturin.current_dir(root().join("python"));
    maturin.args(["-m", "maturin", "build", "--locked", "--out", &wheels]);
    process::run(&mut maturin)
}
