//! The programs of a release: linked statically, so that they need no library of the system.

use std::path::PathBuf;

use super::PROGRAMS;
use crate::process::{self, COMMIT, TARGET, cargo, target};
use crate::training::{self, Build};

/// The programs are linked with a static C library (Debian: libc6-dev). Naming the target keeps the
/// flag away from build scripts and macros, which are loaded by the compiler.
///
/// musl would give the same, but its standard library is a further download, and its allocator is
/// several times slower in parallel runs. The static C library of Debian finds names of hosts in
/// `/etc/hosts` and by DNS; other sources of `/etc/nsswitch.conf` are not asked.
const STATIC: &str = "-C target-feature=+crt-static";

/// Compiles the programs, with the counts of a [training run](training) if `trained`, and returns
/// their folder.
pub(super) fn build(trained: bool) -> anyhow::Result<PathBuf> {
    let plain = Build { packages: &PROGRAMS, profile: "dist", target: TARGET, flags: STATIC };
    let flags = if trained { training::flags(plain)? } else { plain.flags.into() };
    let mut build = cargo();
    build.args(["build", "--locked", "--profile", plain.profile, "--target", TARGET, "--bins"]);
    for name in PROGRAMS {
        build.args(["--package", name]);
    }
    build.env("RUSTFLAGS", flags);
    if let Some(commit) = process::commit() {
        build.env(COMMIT, commit);
    }
    process::run(&mut build)?;
    Ok(target().join(TARGET).join(plain.profile))
}
