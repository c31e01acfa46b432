//! A compiler for WebAssembly: that of rustup with the standard library of the target, or that of
//! Debian, which builds the standard library from its source.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::process::{self, cargo, installed, output, program, target};

/// A target without an operating system: the module imports nothing.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// The package of Debian with the newest compiler, which Debian keeps for browsers, and the one
/// with the source of its standard library.
const PACKAGES: [&str; 2] = ["rustc-web", "rust-web-src"];

/// Beginnings of the names of the packages that the compiler needs, each a dependency of the one
/// before; the names of two have a version.
const NEEDED: [&str; 3] = ["libstd-rust-web-dev", "libstd-rust-web-1", "libllvm"];

/// A compiler with the standard library of the target.
pub(super) enum Compiler {
    /// The compiler of the workspace.
    Own,
    /// Debian's compiler in this folder, which builds the standard library.
    Debian(PathBuf),
}

impl Compiler {
    /// The compiler of the workspace if its standard library is installed or can be had by rustup;
    /// otherwise that of Debian.
    ///
    /// # Errors
    /// Neither is available.
    pub(super) fn find() -> anyhow::Result<Self> {
        if has_target()? {
            return Ok(Self::Own);
        }
        let folder = target().join("tools/rust-web");
        if folder.join("usr/bin/rustc").is_file() {
            return Ok(Self::Debian(folder));
        }
        if installed("rustup") {
            let added = process::run(program("rustup").args(["target", "add", TARGET]));
            if added.is_ok() && has_target()? {
                return Ok(Self::Own);
            }
        }
        unpack(&folder)?;
        Ok(Self::Debian(folder))
    }

    /// Cargo with this compiler.
    pub(super) fn cargo(&self) -> anyhow::Result<Command> {
        let mut cargo = cargo();
        if let Self::Debian(folder) = self {
            cargo.env("RUSTC", folder.join("usr/bin/rustc"));
            cargo.env("LD_LIBRARY_PATH", folder.join(format!("usr/lib/{ARCH}-linux-gnu")));
            // A stable compiler builds its standard library only with this variable.
            cargo.env("RUSTC_BOOTSTRAP", "1");
            cargo.arg("-Zbuild-std=std,panic_abort");
            // The linker of WebAssembly is part of each toolchain of rustup.
            let sysroot = output(program("rustc").args(["--print", "sysroot"]))?;
            let linker = format!("lib/rustlib/{ARCH}-unknown-linux-gnu/bin/rust-lld");
            let linker = Path::new(sysroot.trim()).join(linker);
            cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        Ok(cargo)
    }
}

/// Whether the compiler of the workspace has the standard library of the target.
fn has_target() -> anyhow::Result<bool> {
    let libraries = output(program("rustc").args(["--print", "target-libdir", "--target", TARGET]));
    Ok(Path::new(libraries?.trim()).is_dir())
}

/// Unpacks the packages. They are not installed: a compiler of the system would be found by other
/// builds, and the packages conflict with Debian's rustup.
fn unpack(folder: &Path) -> anyhow::Result<()> {
    for tool in ["apt-get", "apt-cache", "dpkg-deb"] {
        ensure!(
            installed(tool),
            "the standard library of {TARGET} is missing; install it with `rustup target add \
             {TARGET}`"
        );
    }
    let parts = folder.with_extension("parts");
    if parts.exists() {
        fs::remove_dir_all(&parts)?;
    }
    fs::create_dir_all(&parts)?;
    println!("rustup has no standard library of {TARGET}; unpacking the compiler of Debian");
    let download = packages()?;
    process::run(program("apt-get").arg("download").args(download).current_dir(&parts))?;
    let unpacked = parts.join("root");
    for entry in fs::read_dir(&parts)? {
        let package = entry?.path();
        if package.extension().is_some_and(|ending| ending == "deb") {
            process::run(program("dpkg-deb").arg("--extract").arg(package).arg(&unpacked))?;
        }
    }
    fs::rename(&unpacked, folder).with_context(|| format!("{}", folder.display()))?;
    fs::remove_dir_all(&parts).with_context(|| format!("{}", parts.display()))
}

/// Names of all packages to unpack.
fn packages() -> anyhow::Result<Vec<String>> {
    let mut names = PACKAGES.map(str::to_owned).to_vec();
    let mut package = PACKAGES[0].to_owned();
    for beginning in NEEDED {
        let shown = output(program("apt-cache").args(["show", "--no-all-versions", &package]))?;
        package = dependency(&shown, beginning)
            .with_context(|| format!("{package} does not need {beginning}"))?;
        names.push(package.clone());
    }
    Ok(names)
}

/// The dependency of a package whose name has this beginning.
fn dependency(shown: &str, beginning: &str) -> Option<String> {
    let line = shown.lines().find_map(|line| line.strip_prefix("Depends: "))?;
    let names = line.split(", ").filter_map(|need| need.split(' ').next());
    names.filter(|name| name.starts_with(beginning)).map(str::to_owned).next()
}

#[test]
fn a_dependency_is_found_by_the_beginning_of_its_name() {
    let shown = "Package: a\nDepends: libc6 (>= 2.34), libllvm22, libstdc++6 (>= 11)\n";
    assert_eq!(dependency(shown, "libllvm").as_deref(), Some("libllvm22"));
    assert_eq!(dependency(shown, "liba"), None);
}
