//! The tests of all crates. Test executables run in five lanes at once: tests on the kernel, and
//! those of relays and measurements, mostly wait for packets, so that two lanes share the processor
//! time that they leave idle. A lane that has finished helps these.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::ensure;

use super::failure::Failure;
use super::suite::{Name, Suite, Tests, build, with_settings};
use crate::process::{self, cargo};

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

/// Packages whose tests run in real time, with processes and kernels. A machine that pauses for
/// some ten milliseconds, as a virtual one may, changes what they measure.
const ON_CLOCKS: [&str; 7] = [
    "gridhaul",
    "gridhaul-cc",
    "gridhaul-emu",
    "gridhaul-linux",
    "gridhaul-measure",
    "gridhaul-relay",
    "conformance",
];

/// Nice values of the longest executable and of the others: real-time tests have the processor
/// before both.
const NICE: [u32; 2] = [5, 10];

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
    let (passed, failures): (Vec<_>, Vec<_>) = failures.into_iter().partition(passes_alone);
    for failure in &passed {
        println!("\n-- failed once, passed alone: {}\n{}", failure.suite, failure.reason);
    }
    for failure in &failures {
        println!("\n-- failed: {}\n{}", failure.suite, failure.reason);
    }
    let failed: Vec<_> = failures.iter().map(|failure| failure.suite.to_string()).collect();
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
            Some(Failure { suite: suite.clone(), tests: Vec::new(), reason: format!("{error:#}") })
        });
        if let (Some(failure), Ok(mut failures)) = (failure, failures.lock()) {
            failures.push(failure);
        }
    }
}

/// Whether the tests that failed pass when no other test runs. Only tests in real time are
/// repeated: another test that fails has found a fault, and fails again.
fn passes_alone(failure: &Failure) -> bool {
    let is_repeated = ON_CLOCKS.iter().any(|package| failure.suite.package.ends_with(package));
    // An executable that crashed lists no failed tests.
    if !is_repeated || failure.tests.is_empty() {
        return false;
    }
    matches!(failure.suite.run(Tests::Repeated(&failure.tests), 0), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::root;

    #[test]
    fn only_failed_tests_in_real_time_are_repeated() {
        let passes = |package: &str, executable: &str, tests: &[&str]| {
            let suite = Suite {
                package: root().join(package),
                target: "kernel".into(),
                executable: executable.into(),
            };
            let tests = tests.iter().copied().map(String::from).collect();
            passes_alone(&Failure { suite, tests, reason: String::new() })
        };
        assert!(passes("crates/gridhaul-relay", "true", &["a"]));
        assert!(!passes("crates/gridhaul-relay", "false", &["a"]));
        assert!(!passes("crates/gridhaul-relay", "true", &[]), "a crash");
        assert!(!passes("crates/gridhaul-model", "true", &["a"]));
    }
}
