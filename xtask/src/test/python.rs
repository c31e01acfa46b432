//! The tests of the Python code: the Petri net of paper `medx`.

use std::fs;
use std::path::Path;

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
    let folder = target().join("python");
    provide(&folder)?;
    let net = root().join(NET);
    let python = |arguments: &[&str]| {
        let mut python = program(&folder.join("bin/python").to_string_lossy());
        // The source folder stays free of generated files.
        python.current_dir(&net).env("PYTHONDONTWRITEBYTECODE", "1").args(arguments);
        process::run(&mut python)
    };
    python(&["-m", "ruff", "check", "--no-cache", "--quiet", "."])?;
    python(&["-m", "ruff", "format", "--no-cache", "--check", "--quiet", "."])?;
    python(&["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
}

/// Creates a virtual environment with the packages of `requirements.txt`, again whenever that file
/// changes.
fn provide(folder: &Path) -> anyhow::Result<()> {
    let requirements = root().join(NET).join("requirements.txt");
    let wanted = fs::read_to_string(&requirements)?;
    let installed = folder.join("requirements.txt");
    let works = || {
        let mut python = program(&folder.join("bin/python").to_string_lossy());
        output(python.args(["-c", "import pytest, snakes"])).is_ok()
    };
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) && works() {
        return Ok(());
    }
    let environment = folder.to_string_lossy();
    process::run(program("python3").args(["-m", "venv", "--clear", &environment]))
        .with_context(|| format!("cannot create a Python environment in {environment}"))?;
    let mut pip = program(&folder.join("bin/python").to_string_lossy());
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--use-pep517"]);
    process::run(pip.arg("--requirement").arg(&requirements)).with_context(|| {
        format!(
            "cannot install the packages of {NET}/requirements.txt; \
             pip needs access to PyPI or to the index in PIP_INDEX_URL"
        )
    })?;
    fs::write(installed, wanted)?;
    Ok(())
}
