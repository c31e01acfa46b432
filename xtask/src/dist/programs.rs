//! The programs of a release: linked statically, so that they need no library of the system.

use std::path::PathBuf;
use std::process::Command;

use super::PROGRAMS;
use crate::process::{self, COMMIT, cargo, program, target};
use crate::training::{self, TARGET};

/// The programs are linked with a static C library (Debian: libc6-dev).
///
/// musl would give the same, but its standard library is a further download, and its allocator is
/// several times slower in parallel runs. The static C library of Debian finds names of hosts in
/// `/etc/hosts` and by DNS; other sources of `/etc/nsswitch.conf` are not asked.
const STATIC: &str = "-C target-feature=+crt-static";

/// The profile of cargo.
const PROFILE: &str = "dist";

/// Compiles the programs, with the counts of a [training run](training) if `trained`, and returns
/// their folder.
pub(super) fn build(trained: bool) -> anyhow::Result<PathBuf> {
    let mut flags = STATIC.to_owned();
    if trained {
        flags = format!("{flags} {}", training::option(&counts()?));
    }
    let mut build = compiler(&flags);
    build.arg("--bins");
    if let Some(commit) = process::commit() {
        build.env(COMMIT, commit);
    }
    process::run(&mut build)?;
    Ok(target().join(TARGET).join(PROFILE))
}

/// The counts of a training run of `gridhaul`.
fn counts() -> anyhow::Result<PathBuf> {
    let folder = target().join("training");
    training::counts(&folder, |option| {
        let mut compile = compiler(&format!("{STATIC} {option}"));
        // The objects of other builds would be replaced.
        compile.args(["--bin", "gridhaul"]).env("CARGO_TARGET_DIR", &folder);
        process::run(&mut compile)?;
        let gridhaul = folder.join(TARGET).join(PROFILE).join("gridhaul");
        Ok(move || program(&gridhaul))
    })
}

/// The command that compiles programs with these flags. Counters are found by the names of
/// functions, which depend on the features of all crates, and so on the packages that are compiled
/// together.
fn compiler(flags: &str) -> Command {
    let mut compiler = cargo();
    compiler.args(["build", "--locked", "--profile", PROFILE, "--target", TARGET]);
    for name in PROGRAMS {
        compiler.args(["--package", name]);
    }
    compiler.env("RUSTFLAGS", flags);
    compiler
}
