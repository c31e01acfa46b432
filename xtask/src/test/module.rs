//! The tests of the Python module: types, style and behaviour, on the build of the other tests.

use std::env;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::python::{Environment, PACKAGES};
use super::tools::PYTHON;
use super::{build_with_tests, cosimulation};
use crate::process::{self, program, root, target};

/// The source folder of the package.
pub(super) const SOURCE: &str = "python";

/// Builds the module as the other tests, and runs the tests of the package.
pub(crate) fn test() -> anyhow::Result<()> {
    if !PYTHON.is_usable() {
        return PYTHON.report_missing();
    }
    build_with_tests()?;
    run()?;
    cosimulation::run()
}

/// Installs the module that was built, and runs the tests of the package.
fn run() -> anyhow::Result<()> {
    let source = root().join(SOURCE);
    let environment = Environment {
        folder: target().join("python-module"),
        requirements: source.join("requirements.txt"),
        works: "import distributed, duckdb, mypy, pandas, polars, pyarrow, pytest",
    };
    environment.provide()?;
    install(&environment.folder, &source)?;
    let path = env::join_paths(
        iter::once(target().join("debug"))
            .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    )?;
    let python = |arguments: &[&str]| {
        let mut python = program(environment.python());
        python.current_dir(&source).env("PYTHONDONTWRITEBYTECODE", "1").args(arguments);
        // The tests compare the module with the command.
        python.env("PATH", &path);
        process::run(&mut python)
    };
    let cache = target().join("mypy").to_string_lossy().into_owned();
    python(&["-m", "ruff", "check", "--no-cache", "--quiet", "."])?;
    python(&["-m", "ruff", "format", "--no-cache", "--check", "--quiet", "."])?;
    python(&["-m", "mypy", "--cache-dir", &cache, "gridhaul", "tests"])?;
    // Without `-P` the folder of the sources, which has no native module, would be imported.
    python(&[
        "-P",
        "-m",
        "mypy.stubtest",
        "gridhaul._native",
        "--mypy-config-file",
        "stubtest.ini",
    ])?;
    python(&["-P", "-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
}

/// Copies the package and the native module into the environment.
pub(super) fn install(environment: &Path, source: &Path) -> anyhow::Result<()> {
    let package = packages(environment)?.join("gridhaul");
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    fs::create_dir_all(&package)?;
    for entry in fs::read_dir(source.join("gridhaul"))? {
        let file = entry?.path();
        if let Some(name) = file.file_name().filter(|_| file.is_file()) {
            fs::copy(&file, package.join(name))?;
        }
    }
    let module = target().join("debug/libgridhaul_native.so");
    fs::copy(&module, package.join("_native.abi3.so"))
        .with_context(|| format!("cannot install {}", module.display()))?;
    Ok(())
}

/// The folder of packages of an environment.
fn packages(environment: &Path) -> anyhow::Result<PathBuf> {
    let versions = environment.join("lib");
    for entry in fs::read_dir(&versions)? {
        let packages = entry?.path().join(PACKAGES);
        if packages.is_dir() {
            return Ok(packages);
        }
    }
    anyhow::bail!("{} has no folder of packages", versions.display())
}
