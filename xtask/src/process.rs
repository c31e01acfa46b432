//! Starts other programs in the root of the repository.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// Environment variable with the commit that `--version --verbose` of the programs shows.
pub(crate) const COMMIT: &str = "GRIDHAUL_COMMIT";

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The cargo executable that runs this program.
pub(crate) fn cargo() -> Command {
    let mut cargo = program(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    if in_ci() {
        // A build that nobody repeats gains nothing from the files that would make the next one
        // faster.
        cargo.env("CARGO_INCREMENTAL", "0");
    }
    cargo
}

/// A command that runs in the root of the repository.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs a program, with its output on the terminal.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    run_with_results(command, &[])
}

/// The same for a program some of whose exit codes are results, and no failures.
pub(crate) fn run_with_results(command: &mut Command, results: &[i32]) -> anyhow::Result<()> {
    println!("$ {}", shown(command));
    run_quietly(command, results)
}

/// The same without a line on the terminal.
pub(crate) fn run_quietly(command: &mut Command, results: &[i32]) -> anyhow::Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    let is_result = status.code().is_some_and(|code| results.contains(&code));
    ensure!(status.success() || is_result, "{shown} failed: {status}");
    Ok(())
}

/// Runs a program and returns its standard output.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let shown = shown(command);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {shown}"))?;
    ensure!(output.status.success(), "{shown} failed: {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("the output of {shown} is not UTF-8"))
}

/// The packages of the workspace and their dependencies, as cargo describes them.
pub(crate) fn metadata() -> anyhow::Result<serde_json::Value> {
    let text = output(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    serde_json::from_str(&text).context("cargo metadata prints no JSON")
}

/// The commit of the checkout, for the programs of packages; null without git.
pub(crate) fn commit() -> Option<String> {
    let mut describe = program("git");
    describe.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    let output = describe.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Whether a program is in the search path.
pub(crate) fn installed(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Whether this program runs in continuous integration, where no step may be skipped.
pub(crate) fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// The build folder of cargo.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let name = Path::new(words[0].as_ref()).file_name().map(|name| name.to_string_lossy());
    let name = name.unwrap_or_default();
    format!("{name} {}", words[1..].join(" ")).trim_end().to_owned()
}
