//! `cargo xtask wheel`: builds the Python package. Its module is the command `gridhaul` too.

mod check;

use std::path::{Path, PathBuf};
use std::{env, fs, iter};

use anyhow::Context;
use clap::Args;

use crate::process::{self, COMMIT, program, root, target};
use crate::test::Environment;

/// Arguments of `wheel`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Take this wheel, and build nothing
    #[arg(long, value_name = "FILE")]
    wheel: Option<PathBuf>,
    /// Afterwards, run the wheel on the oldest processor and Python that it declares, and in an
    /// empty system (needs qemu-user, python3.11, debootstrap and root)
    #[arg(long)]
    check: bool,
}

/// The oldest C library on which the wheel runs, as a tag of Python packages: that of Rust itself.
/// The linker of Zig has the symbols of each version of the library.
const TAG: &str = "manylinux_2_17";

/// Builds the wheel, or takes one, and checks it if the options ask for that.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let wheel = match &options.wheel {
        Some(wheel) => wheel.clone(),
        None => build()?,
    };
    if options.check { check::run(&wheel) } else { Ok(()) }
}

/// Builds the wheel in `target/wheels`, and returns its path.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let environment = Environment {
        folder: target().join("python-wheel"),
        requirements: root().join("python/requirements-wheel.txt"),
        works: "import maturin, ziglang",
    };
    environment.provide()?;
    let wheels = target().join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let mut maturin = program(environment.python());
    maturin.current_dir(root().join("python"));
    maturin.args(["-m", "maturin", "build", "--locked", "--zig", "--compatibility", TAG]);
    maturin.arg("--out").arg(&wheels);
    // maturin looks for the package ziglang with the first Python of the search path.
    let path = env::var_os("PATH").unwrap_or_default();
    let own = iter::once(environment.folder.join("bin"));
    maturin.env("PATH", env::join_paths(own.chain(env::split_paths(&path)))?);
    if let Some(commit) = process::commit() {
        maturin.env(COMMIT, commit);
    }
    process::run(&mut maturin)?;
    only_file(&wheels)
}

fn only_file(folder: &Path) -> anyhow::Result<PathBuf> {
    let file = fs::read_dir(folder)?.next().context("maturin has written no wheel")?;
    Ok(file?.path())
}
