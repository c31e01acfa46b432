//! Each case of `cases/` with the backend `kernel`, on the running kernel, as a test of its own.
//!
//! The tests require root and /dev/net/tun. Otherwise they report this and pass; with `CI` set they
//! fail.

use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

use gridhaul_conformance::backend::{CaseBackend, KernelBackend};
use gridhaul_conformance::case::{self, Case};
use gridhaul_linux::request_realtime_priority;
use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use libtest_mimic::{Arguments, Failed, Trial};

/// Cases that run at the same time: they wait most of the time.
const CONCURRENT_CASES: usize = 16;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let cases = match case::load_all(&case::folder()) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut cases: Vec<(String, Case)> = cases
        .iter()
        .filter(|case| case.runs_on("kernel") && case.ignore.is_none())
        .flat_map(Case::with_each_algorithm)
        .collect();
    if let Err(error) = KernelBackend::available() {
        return skip(&error);
    }
    // Loading an algorithm requires more than running a case: a compiler, and the types of the
    // kernel.
    let loaded = KernelBackend::load(cases.iter().map(|(_, case)| case));
    if let Err(error) = &loaded {
        if skip(error) == ExitCode::FAILURE {
            return ExitCode::FAILURE;
        }
        cases.retain(|(_, case)| {
            case.stack.congestion_control != Some(CongestionControlAlgorithm::Vegas)
        });
    }
    arguments.test_threads.get_or_insert(CONCURRENT_CASES);
    let trials = cases.into_iter().map(|(congestion_control, case)| {
        let title = format!("{} [{}]", case.name, ["kernel", &congestion_control].join(" ").trim());
        Trial::test(title, move || {
            // The packets of a case are due at their times, also while other programs compute.
            request_realtime_priority();
            KernelBackend.check(&case).map_err(Failed::from)
        })
    });
    let before = namespaces();
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let left: Vec<_> = namespaces().difference(&before).cloned().collect();
    if !left.is_empty() {
        eprintln!("network namespaces remain open: {left:?}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// Inode numbers of the network namespaces that this process keeps open; they exist only by its
/// file descriptors.
fn namespaces() -> BTreeSet<String> {
    let files = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    let names = targets.map(|target| target.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("net:[")).collect()
}

/// Reports a missing prerequisite of this machine: a failure only with `CI` set.
fn skip(error: &str) -> ExitCode {
    eprintln!("skipped, this machine lacks a prerequisite of the kernel backend: {error}");
    if std::env::var_os("CI").is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
