//! The tests of the adapters for mosaik and HELICS, with the real packages.
//!
//! They have an environment of their own: pandapower needs an older pandas than the other tests.

use super::module;
use super::python::Environment;
use crate::process::{self, program, root, target};

/// Runs the tests on the module that the step `module` has built.
pub(super) fn run() -> anyhow::Result<()> {
    let source = root().join(module::SOURCE);
    let environment = Environment {
        folder: target().join("python-cosimulation"),
        requirements: source.join("cosimulation/requirements.txt"),
        works: "import helics, mosaik, pandapower, pytest",
    };
    environment.provide()?;
    module::install(&environment.folder, &source)?;
    let mut python = program(environment.python());
    python.current_dir(source.join("cosimulation")).env("PYTHONDONTWRITEBYTECODE", "1");
    // Without `-P` the folder of the sources, which has no native module, would be imported.
    python.args(["-P", "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "tests"]);
    process::run(&mut python)
}
