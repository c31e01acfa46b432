//! `cargo xtask wheel`: builds the Python package. Its module is the command `gridhaul` too.

use crate::process::{self, COMMIT, program, root, target};
use crate::test::Environment;

/// Builds the wheel in `target/wheels`.
pub(crate) fn run() -> anyhow::Result<()> {
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
    if let Some(commit) = process::commit() {
        maturin.env(COMMIT, commit);
    }
    process::run(&mut maturin)
}
