//! The tests of the Python code: the Petri net of paper `medx`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use super::tools::PYTHON;
use crate::process::{self, output, program, root, target};

/// Folder of the Petri net in the repository.
const NET: &str = "papers/medx/net";

/// Checks the style and runs the tests, in a virtual environment in the build folder.
pub(crate) fn test() -> anyhow::Result<()> {
    if !PYTHON.is_usable() {
        return PYTHON.report_missing();
    }
    let net = root().join(NET);
    let environment = Environment {
        folder: target().join("python"),
        requirements: net.join("requirements.txt"),
        works: "import pytest, snakes",
    };
    environment.provide()?;
    let python = |arguments: &[&str]| {
        let mut python = program(environment.python());
        // The source folder stays free of generated files.
        python.current_dir(&net).env("PYTHONDONTWRITEBYTECODE", "1").args(arguments);
        process::run(&mut python)
    };
    python(&["-m", "ruff", "check", "--no-cache", "--quiet", "."])?;
    python(&["-m", "ruff", "format", "--no-cache", "--check", "--quiet", "."])?;
    python(&["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
}

/// Name of the folder of packages in an environment.
pub(super) const PACKAGES: &str = "site-packages";

/// A virtual environment in the build folder.
pub(crate) struct Environment {
    pub(crate) folder: PathBuf,
    /// The list of its packages.
    pub(crate) requirements: PathBuf,
    /// A program that fails if packages are missing.
    pub(crate) works: &'static str,
}

impl Environment {
    /// The path of its Python.
    pub(crate) fn python(&self) -> String {
        self.folder.join("bin/python").to_string_lossy().into_owned()
    }

    /// Creates the environment with its packages, again whenever their list changes.
    pub(crate) fn provide(&self) -> anyhow::Result<()> {
        let wanted = fs::read_to_string(&self.requirements)?;
        let installed = self.folder.join("requirements.txt");
        let works = || output(program(self.python()).args(["-c", self.works])).is_ok();
        if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) && works() {
            return Ok(());
        }
        let environment = self.folder.to_string_lossy();
        process::run(program("python3").args(["-m", "venv", "--clear", &environment]))
            .with_context(|| format!("cannot create a Python environment in {environment}"))?;
        let mut pip = program(self.python());
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--use-pep517", "--requirement"]).arg(&self.requirements);
        process::run(&mut pip).with_context(|| {
            format!(
                "cannot install the packages of {}; pip needs access to PyPI or to the index in \
                 PIP_INDEX_URL",
                self.requirements.display()
            )
        })?;
        fs::write(installed, wanted)?;
        Ok(())
    }
}
