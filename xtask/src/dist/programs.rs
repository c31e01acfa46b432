//! The programs of a release: linked statically, so that they need no library of the system.

use std::path::PathBuf;
use std::process::Command;

use super::{PROGRAMS, training};
use crate::process::{self, COMMIT, cargo, target};

/// The programs are linked with a static C library (Debian: libc6-dev).
///
/// musl would give the same, but its standard library is a further download, and its allocator is
/// several times slower in parallel runs. The static C library of Debian finds names of hosts in
/// `/etc/hosts` and by DNS; other sources of `/etc/nsswitch.conf` are not asked.
pub(super) const STATIC: &str = "-C target-feature=+crt-static";

/// The target of the programs. Naming it keeps flags away from build scripts and macros, which are
/// loaded by the compiler.
pub(super) const TARGET: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

/// The profile of cargo.
pub(super) const PROFILE: &str = "dist";

/// Compiles the programs, with the counts of a [training run](training) if `trained`, and returns
/// their folder.
pub(super) fn build(trained: bool) -> anyhow::Result<PathBuf> {
    let mut flags = STATIC.to_owned();
    if trained {
        flags += &format!(" -C profile-use={}", training::counts()?.display());
    }
    let mut build = compiler(&flags);
    build.arg("--bins");
    if let Some(commit) = process::commit() {
        build.env(COMMIT, commit);
    }
    process::run(&mut build)?;
    Ok(target().join(TARGET).join(PROFILE))
}

/// The command that compiles programs with these flags. Counters are found by the names of
/// functions, which depend on the features of all crates, and so on the packages that are compiled
/// together.
pub(super) fn compiler(flags: &str) -> Command {
    let mut compiler = cargo();
    compiler.args(["build", "--locked", "--profile", PROFILE, "--target", TARGET]);
    for name in PROGRAMS {
        compiler.args(["--package", name]);
    }
    compiler.env("RUSTFLAGS", flags);
    compiler
}
