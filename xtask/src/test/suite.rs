//! A test executable of cargo: its build, its tests, and their output.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use serde_json::Value;

use super::failure::Failure;
use crate::process::{cargo, in_ci, output, program};

/// Environment variable with the seed of property tests.
const RANDOM_SEED: &str = "PROPTEST_RNG_SEED";

/// Name of a test executable: package folder and target.
pub(super) type Name = (&'static str, &'static str);

/// A test executable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Suite {
    /// The folder of the package, in which cargo runs its tests.
    pub package: PathBuf,
    /// Name of the target: a file of tests, or the crate for its unit tests.
    pub target: String,
    pub executable: PathBuf,
}

/// Which tests of a suite run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tests<'a> {
    All,
    /// All but those whose names contain a text.
    Without(&'static str),
    /// Only these, one after the other.
    Alone(&'static str),
    /// Failed ones once more, by their complete names, one after the other.
    Repeated(&'a [String]),
}

impl Tests<'_> {
    /// Arguments of the test executable.
    fn arguments(&self) -> Vec<&str> {
        match self {
            Self::All => Vec::new(),
            Self::Without(name) => vec!["--skip", name],
            Self::Alone(name) => vec!["--test-threads", "1", name],
            Self::Repeated(names) => {
                let names = names.iter().map(String::as_str);
                ["--test-threads", "1", "--exact"].into_iter().chain(names).collect()
            }
        }
    }

    /// Text after the name of the suite in the output.
    const fn label(&self) -> &'static str {
        match self {
            Self::All | Self::Without(_) => "",
            Self::Alone(_) => ", alone",
            Self::Repeated(_) => ", failed tests repeated alone",
        }
    }
}

impl Suite {
    pub(super) fn is(&self, (package, target): Name) -> bool {
        self.package.ends_with(package) && self.target == target
    }

    /// Runs the executable and prints its output in one piece. Returns its failure, if it failed.
    #[expect(clippy::disallowed_methods, reason = "the duration of a suite is printed only")]
    pub(super) fn run(&self, tests: Tests<'_>, nice: u32) -> anyhow::Result<Option<Failure>> {
        let begun = Instant::now();
        let mut command = program("nice");
        command.args(["-n", &nice.to_string()]).arg(&self.executable);
        command.args(tests.arguments());
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        let output = with_settings(&mut command).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot start {self}"))?;
        let [printed, errors] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        println!(
            "\n-- {self}{}: {:.0} s\n{}{errors}",
            tests.label(),
            begun.elapsed().as_secs_f64(),
            printed.trim_start(),
        );
        let failed = || Failure::new(self.clone(), &printed, &errors, output.status);
        Ok((!output.status.success()).then(failed))
    }
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let package = self.package.file_name().unwrap_or_default();
        write!(f, "{}, {}", package.to_string_lossy(), self.target)
    }
}

/// Builds all test executables.
pub(super) fn build() -> anyhow::Result<Vec<Suite>> {
    let mut build = cargo();
    // Without `--tests`, cargo links the examples as well, which the lints have checked.
    build.args(["test", "--workspace", "--locked", "--no-run", "--tests"]);
    build.arg("--message-format=json-render-diagnostics");
    let suites = suites(&output(with_settings(&mut build))?)?;
    println!("{} test executables", suites.len());
    Ok(suites)
}

/// The test executables in cargo's messages, in the order of their packages and names.
fn suites(messages: &str) -> anyhow::Result<Vec<Suite>> {
    let mut suites = BTreeSet::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("reading a message of cargo")?;
        let text = |value: &Value| value.as_str().map(String::from);
        let executable = text(&message["executable"]);
        let manifest = text(&message["manifest_path"]);
        let target = text(&message["target"]["name"]);
        if message["profile"]["test"] != true {
            continue;
        }
        if let (Some(executable), Some(manifest), Some(target)) = (executable, manifest, target) {
            let package = Path::new(&manifest).parent().context("a package without a folder")?;
            let suite =
                Suite { package: package.to_owned(), target, executable: executable.into() };
            suites.insert(suite);
        }
    }
    Ok(suites.into_iter().collect())
}

/// Sets what the tests read from the environment.
pub(super) fn with_settings(command: &mut Command) -> &mut Command {
    command.env("INSTA_UPDATE", "no");
    if env::var_os(RANDOM_SEED).is_none() {
        // With a fixed seed a failure is caused by the change. CONTRIBUTING.md explains how to use
        // other seeds.
        command.env(RANDOM_SEED, "1");
    }
    if in_ci() {
        command.env("GRIDHAUL_REQUIRE_TOOLS", "1");
    }
    command
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Tests, suites};

    #[test]
    fn only_test_executables_are_suites() {
        let artifact = |name: &str, is_test: bool, executable: Option<&str>| {
            let message = json!({
                "reason": "compiler-artifact",
                "manifest_path": "/a/Cargo.toml",
                "target": { "name": name },
                "profile": { "test": is_test },
                "executable": executable,
            });
            message.to_string()
        };
        let messages = [
            artifact("cli", true, Some("/t/cli-1")),
            artifact("a", false, Some("/t/a")),
            artifact("a", true, None),
            json!({ "reason": "build-finished", "success": true }).to_string(),
        ];
        let found = suites(&messages.join("\n")).expect("messages of cargo");
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a, cli"]);
        assert!(suites("no message").is_err());
    }

    #[test]
    fn repeated_tests_are_those_with_exactly_these_names() {
        let names = ["m::b".to_owned()];
        let arguments = Tests::Repeated(&names);
        assert_eq!(arguments.arguments(), ["--test-threads", "1", "--exact", "m::b"]);
    }
}
