//! The programs of a release: linked statically, so that they need no library of the system.

use std::path::PathBuf;

use super::PROGRAMS;
use crate::process::{self, COMMIT, cargo, target};

/// The target whose programs are linked with a static C library (Debian: libc6-dev). Naming it
/// keeps the flag away from build scripts and macros, which are loaded by the compiler.
///
/// musl would give the same, but its standard library is a further download, and its allocator is
/// several times slower in parallel runs. The static C library of Debian finds names of hosts in
/// `/etc/hosts` and by DNS; other sources of `/etc/nsswitch.conf` are not asked.
const TARGET: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

/// Compiles the programs, and returns their folder.
pub(super) fn build() -> anyhow::Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--locked", "--profile", "dist", "--target", TARGET, "--bins"]);
    for name in PROGRAMS {
        build.args(["--package", name]);
    }
    build.env("RUSTFLAGS", "-C target-feature=+crt-static");
    if let Some(commit) = process::commit() {
        build.env(COMMIT, commit);
    }
    process::run(&mut build)?;
    Ok(target().join(TARGET).join("dist"))
}
