//! `cargo xtask wheel`: builds the Python package. Its module is the command `gridhaul` too.

mod check;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, iter};

use anyhow::Context;
use clap::Args;

use crate::process::{self, COMMIT, program, root, target};
use crate::test::Environment;
use crate::training::{self, TARGET};

/// Arguments of `wheel`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Take this wheel, and build nothing
    #[arg(long, value_name = "FILE")]
    wheel: Option<PathBuf>,
    /// Compile without counts of a training run: the build takes half the time, and simulations a
    /// tenth more
    #[arg(long, conflicts_with = "wheel")]
    untrained: bool,
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
        None => build(!options.untrained)?,
    };
    if options.check { check::run(&wheel) } else { Ok(()) }
}

/// Builds the wheel in `target/wheels`, with the counts of a [training run](training) if `trained`,
/// and returns its path.
pub(crate) fn build(trained: bool) -> anyhow::Result<PathBuf> {
    let environment = Environment {
        folder: target().join("python-wheel"),
        requirements: root().join("python/requirements-wheel.txt"),
        works: "import maturin, ziglang",
    };
    environment.provide()?;
    let wheels = target().join("wheels");
    let mut build = compiler(&environment, &wheels, TAG)?;
    if trained {
        build.env("RUSTFLAGS", training::option(&counts(&environment)?));
    }
    compile(&mut build, &wheels)
}

/// The counts of a training run of the command in the module. Those of the packaged program do not
/// fit: the names of functions depend on the features of all crates, and their code on what a panic
/// does.
fn counts(environment: &Environment) -> anyhow::Result<PathBuf> {
    let folder = target().join("wheel-training");
    training::counts(&folder, |option| {
        let wheels = folder.join("wheels");
        // This wheel runs on this machine only.
        let mut build = compiler(environment, &wheels, "linux")?;
        // The linker of Zig has no option that counters need.
        build.env("RUSTFLAGS", format!("{option} -C linker=cc"));
        // The objects of other builds would be replaced.
        build.env("CARGO_TARGET_DIR", &folder);
        let wheel = compile(&mut build, &wheels)?;
        // The wheel is an archive of the packages folder.
        let packages = folder.join("packages");
        let python = environment.python();
        process::run(program(&python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&packages))?;
        Ok(move || {
            let mut command = program(&python);
            command.args(["-m", "gridhaul"]).env("PYTHONPATH", &packages);
            command
        })
    })
}

/// The command that builds the wheel in the folder `wheels`, with this tag of compatible systems.
fn compiler(environment: &Environment, wheels: &Path, tag: &str) -> anyhow::Result<Command> {
    let mut maturin = program(environment.python());
    maturin.current_dir(root().join("python"));
    maturin.args(["-m", "maturin", "build", "--locked", "--zig", "--target", TARGET]);
    maturin.args(["--compatibility", tag]);
    maturin.arg("--out").arg(wheels);
    // maturin looks for the package ziglang with the first Python of the search path.
    let path = env::var_os("PATH").unwrap_or_default();
    let own = iter::once(environment.folder.join("bin"));
    maturin.env("PATH", env::join_paths(own.chain(env::split_paths(&path)))?);
    if let Some(commit) = process::commit() {
        maturin.env(COMMIT, commit);
    }
    Ok(maturin)
}

/// Runs the command that builds the wheel in the folder `wheels`, and returns the wheel.
fn compile(maturin: &mut Command, wheels: &Path) -> anyhow::Result<PathBuf> {
    if wheels.exists() {
        fs::remove_dir_all(wheels)?;
    }
    process::run(maturin)?;
    let file = fs::read_dir(wheels)?.next().context("maturin has written no wheel")?;
    Ok(file?.path())
}
