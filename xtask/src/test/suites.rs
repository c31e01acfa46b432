//! The tests of all crates. Test executables run in five lanes at once: tests on the kernel, and
//! those of relays and measurements, mostly wait for packets, so that two lanes share the processor
//! time that they leave idle. A lane that has finished helps these.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::failure::Failure;
use crate::process::{self, cargo, in_ci, output, program};

/// Environment variable with the seed of property tests.
const RANDOM_SEED: &str = "PROPTEST_RNG_SEED";

/// Name of a test executable: package folder and target.
type Name = (&'static str, &'static str);

/// Test executables in real time, in three lanes of about the same length, five minutes on idle
/// processors. The tests that measure the kernel are in one lane, so that they do not disturb each
/// other.
const REAL_TIME: [&[Name]; 3] = [
    &[
        ("gridhaul-emu", "kernel"),
        ("gridhaul-cc", "kernel"),
        ("conformance", "kernel"),
        ("gridhaul-measure", "documents"),
    ],
    &[("gridhaul-measure", "protocols"), ("gridhaul-measure", "known_answers")],
    &[
        ("gridhaul-relay", "daemon"),
        ("gridhaul-relay", "split"),
        ("gridhaul-relay", "router"),
        ("gridhaul-measure", "agent"),
        ("gridhaul-measure", "reserve"),
        ("gridhaul-measure", "packet_sockets"),
    ],
];

/// Tests that measure how soon a relay stores data: other tests of their executable, which
/// synchronise files all the time, would delay them. They run one after the other, after the other
/// tests.
const ALONE: (Name, &str) = (("gridhaul-relay", "daemon"), "kill::");

/// The executable that takes longest outside the kernel. It starts first.
const LONGEST: Name = ("gridhaul", "cli");

/// Nice values of the longest executable and of the others: real-time tests have the processor
/// before both.
const NICE: [u32; 2] = [5, 10];

/// A test executable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Suite {
    /// The folder of the package, in which cargo runs its tests.
    package: PathBuf,
    /// Name of the target: a file of tests, or the crate for its unit tests.
    target: String,
    executable: PathBuf,
}

/// Which tests of a suite run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tests {
    All,
    /// All but those whose names contain a text.
    Without(&'static str),
    /// Only these, one after the other.
    Alone(&'static str),
}

/// Builds and runs the tests of all crates.
///
/// # Errors
/// A build or a test failed.
pub(super) fn run() -> anyhow::Result<()> {
    let mut suites = build()?;
    let mut lanes = Vec::new();
    for names in REAL_TIME {
        let (lane, others): (Vec<_>, Vec<_>) =
            suites.into_iter().partition(|suite| names.iter().any(|name| suite.is(*name)));
        ensure!(
            lane.len() == names.len(),
            "of the test executables {names:?} only these exist: {lane:?}"
        );
        lanes.push(lane);
        suites = others;
    }
    suites.sort_by_key(|suite| !suite.is(LONGEST));
    let failures = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let help = || {
        while let Some(suite) = suites.get(next.fetch_add(1, Ordering::Relaxed)) {
            let nice = NICE[usize::from(!suite.is(LONGEST))];
            run_suite(suite, nice, &failures);
        }
    };
    thread::scope(|scope| {
        for lane in &lanes {
            scope.spawn(|| {
                lane.iter().for_each(|suite| run_suite(suite, 0, &failures));
                help();
            });
        }
        scope.spawn(help);
        help();
    });
    let failures = failures.into_inner().unwrap_or_default();
    for failure in &failures {
        println!("\n-- failed: {}\n{}", failure.suite, failure.reason);
    }
    let failed: Vec<_> = failures.iter().map(|failure| failure.suite.as_str()).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join("; "));
    process::run(with_settings(cargo().args(["test", "--workspace", "--locked", "--doc"])))
}

/// Runs a suite at a nice value, and appends its failures to those of the others.
fn run_suite(suite: &Suite, nice: u32, failures: &Mutex<Vec<Failure>>) {
    let (name, tests) = ALONE;
    let parts = if suite.is(name) {
        &[Tests::Without(tests), Tests::Alone(tests)][..]
    } else {
        &[Tests::All]
    };
    for tests in parts {
        let failure = suite.run(*tests, nice).unwrap_or_else(|error| {
            Some(Failure { suite: suite.to_string(), reason: format!("{error:#}") })
        });
        if let (Some(failure), Ok(mut failures)) = (failure, failures.lock()) {
            failures.push(failure);
        }
    }
}

impl Tests {
    /// Arguments of the test executable.
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::All => &[],
            Self::Without(_) => &["--skip"],
            Self::Alone(_) => &["--test-threads", "1"],
        }
    }

    /// The text in the names of tests, if not all tests run.
    const fn filter(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Without(name) | Self::Alone(name) => Some(name),
        }
    }
}

impl Suite {
    fn is(&self, (package, target): (&str, &str)) -> bool {
        self.package.ends_with(package) && self.target == target
    }

    /// Runs the executable and prints its output in one piece. Returns its failure, if it failed.
    #[expect(clippy::disallowed_methods, reason = "the duration of a suite is printed only")]
    fn run(&self, tests: Tests, nice: u32) -> anyhow::Result<Option<Failure>> {
        let begun = Instant::now();
        let mut command = program("nice");
        command.args(["-n", &nice.to_string()]).arg(&self.executable);
        command.args(tests.arguments()).args(tests.filter());
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        let output = with_settings(&mut command).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot start {self}"))?;
        let [printed, errors] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        println!(
            "\n-- {self}{}: {:.0} s\n{}{errors}",
            if matches!(tests, Tests::Alone(_)) { ", alone" } else { "" },
            begun.elapsed().as_secs_f64(),
            printed.trim_start(),
        );
        let failed = || Failure::new(self.to_string(), &printed, &errors, output.status);
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
fn build() -> anyhow::Result<Vec<Suite>> {
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
fn with_settings(command: &mut Command) -> &mut Command {
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
    use super::suites;

    #[test]
    fn only_test_executables_are_suites() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","target":{"name":"cli"},"profile":{"test":true},"executable":"/t/cli-1"}
{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","target":{"name":"a"},"profile":{"test":false},"executable":"/t/a"}
{"reason":"compiler-artifact","manifest_path":"/a/Cargo.toml","target":{"name":"a"},"profile":{"test":true},"executable":null}
{"reason":"build-finished","success":true}"#;
        let found = suites(messages).expect("messages of cargo");
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a, cli"]);
        assert!(suites("no message").is_err());
    }
}
