//! `cargo xtask release`: checks of a release that are too long for each change.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};

use crate::process::{self, cargo, output, program, root, target};

/// Arguments of `release`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Checks to run [default: all]
    #[arg(value_enum)]
    checks: Vec<Check>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Check {
    /// Make the archives of the crates that others can use alone, and compile them from these
    Crates,
    /// Compile these crates with the oldest version of each direct dependency that its requirement
    /// permits
    MinimalVersions,
    /// Compile with the oldest compiler that the workspace permits (installed by rustup)
    RustVersion,
}

/// Crates that can be used without the rest of gridhaul, each after those that it depends on.
const CRATES: [&str; 3] = ["gridhaul-scenario", "gridhaul-core", "gridhaul-protocols"];

/// Runs the checks.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let chosen = |check| options.checks.is_empty() || options.checks.contains(&check);
    if chosen(Check::Crates) {
        crates()?;
    }
    if chosen(Check::MinimalVersions) {
        minimal_versions()?;
    }
    if chosen(Check::RustVersion) {
        rust_version()?;
    }
    Ok(())
}

fn crates() -> anyhow::Result<()> {
    let folder = target().join("archives");
    let source = folder.join("source");
    copy_sources(&source)?;
    // Cargo finds the crates in each other's archives only if all of them may be published.
    let path = source.join("Cargo.toml");
    let mut manifest: toml::Table = fs::read_to_string(&path)?.parse()?;
    manifest["workspace"]["package"]["publish"] = true.into();
    fs::write(&path, manifest.to_string())?;
    let mut package = cargo();
    package.current_dir(&source).env("CARGO_TARGET_DIR", folder.join("build"));
    // The archives are made of the files as they are, not of a commit.
    package.args(["package", "--locked", "--allow-dirty"]);
    for name in CRATES {
        package.args(["--package", name]);
    }
    process::run(&mut package)
}

/// Cargo resolves the oldest versions only with an unstable option, which this variable permits;
/// the compiler is the usual one.
const UNSTABLE: (&str, &str) = ("RUSTC_BOOTSTRAP", "1");

/// The crates for others alone: their users may have old versions of a dependency, and a program
/// has those of Cargo.lock.
fn minimal_versions() -> anyhow::Result<()> {
    let folder = target().join("minimal-versions");
    let source = folder.join("source");
    copy_sources(&source)?;
    let path = source.join("Cargo.toml");
    let mut manifest: toml::Table = fs::read_to_string(&path)?.parse()?;
    let workspace = manifest["workspace"].as_table_mut().context("Cargo.toml has no workspace")?;
    let members = CRATES.map(|name| toml::Value::String(format!("crates/{name}")));
    workspace.insert("members".to_owned(), toml::Value::Array(members.into()));
    workspace.remove("default-members");
    fs::write(&path, manifest.to_string())?;
    let mut resolve = cargo();
    resolve.current_dir(&source).env(UNSTABLE.0, UNSTABLE.1);
    process::run(resolve.args(["update", "-Z", "direct-minimal-versions"]))?;
    let mut check = cargo();
    check.current_dir(&source).env("CARGO_TARGET_DIR", folder.join("build"));
    check.args(["check", "--locked"]);
    for name in CRATES {
        check.args(["--package", name]);
    }
    process::run(&mut check)
}

fn rust_version() -> anyhow::Result<()> {
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml"))?.parse()?;
    let version = manifest["workspace"]["package"]["rust-version"].as_str();
    let version = version.context("Cargo.toml has no workspace.package.rust-version")?;
    let mut install = program("rustup");
    process::run(install.args(["toolchain", "install", version, "--profile", "minimal"]))?;
    let mut check = program("rustup");
    check.args(["run", version, "cargo", "check", "--workspace", "--locked"]);
    // The variables of the cargo that runs this program name its own compiler.
    check.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    process::run(check.env("CARGO_TARGET_DIR", target().join("rust-version")))
}

/// Copies the files that git knows to a new folder.
fn copy_sources(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let list = output(
        program("git")
            .args(["ls-files", "--cached", "--others", "-z"])
            .args(["--exclude-standard"]),
    )?;
    for name in list.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root().join(name), folder.join(name));
        if !from.is_file() {
            continue;
        }
        fs::create_dir_all(to.parent().map_or_else(PathBuf::new, Path::to_owned))?;
        fs::copy(&from, &to).with_context(|| name.to_owned())?;
    }
    ensure!(folder.join("Cargo.toml").is_file(), "git lists no sources");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requirements of a registry, and the first that its readers see.
    #[test]
    fn crates_for_others_have_description_keywords_readme_and_examples() {
        for name in CRATES {
            let folder = root().join("crates").join(name);
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            let manifest: toml::Table = manifest.parse().unwrap();
            let package = manifest["package"].as_table().unwrap();
            for key in ["description", "keywords", "categories", "readme", "rust-version"] {
                assert!(package.contains_key(key), "{name} has no {key}");
            }
            let keywords = package["keywords"].as_array().unwrap();
            assert!(keywords.len() <= 5, "{name}: a registry takes five keywords");
            let readme = fs::read_to_string(folder.join("README.md")).unwrap();
            assert!(readme.contains("## Example") && readme.contains("```rust"), "{name}");
            let library = fs::read_to_string(folder.join("src/lib.rs")).unwrap();
            let tested = "include_str!(\"../README.md\")";
            assert!(library.contains(tested), "{name}: the example is no test");
        }
    }

    /// A crate in an archive finds its dependencies by version, and not by path.
    #[test]
    fn crates_for_others_depend_on_versions() {
        let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let workspace = &manifest["workspace"];
        for name in CRATES {
            let version = workspace["dependencies"][name].get("version");
            assert_eq!(version, workspace["package"].get("version"), "{name}");
        }
    }
}
