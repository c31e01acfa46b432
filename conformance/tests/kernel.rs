//! Every case of `cases/` that holds for the kernel, on the kernel of this machine, as a test of its own.
//!
//! They need root and /dev/net/tun; where that is missing they say so and pass, but fail where `CI` is set.

use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

use gridhaul_conformance::arm::{Arm, KernelArm};
use gridhaul_conformance::case::{self, Case};
use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use libtest_mimic::{Arguments, Failed, Trial};

/// They wait most of the time.
const BESIDE: usize = 16;

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
        .flat_map(Case::each_variant)
        .collect();
    if let Err(error) = KernelArm::available() {
        return pass_over(&error);
    }
    // What has to be loaded takes more than the rest: a compiler, and types of the kernel.
    let loaded = KernelArm::load(cases.iter().map(|(_, case)| case));
    if let Err(error) = &loaded {
        if pass_over(error) == ExitCode::FAILURE {
            return ExitCode::FAILURE;
        }
        cases.retain(|(_, case)| {
            case.stack.congestion_control != Some(CongestionControlAlgorithm::Vegas)
        });
    }
    arguments.test_threads.get_or_insert(BESIDE);
    let trials = cases.into_iter().map(|(congestion_control, case)| {
        let title = format!("{} [{}]", case.name, ["kernel", &congestion_control].join(" ").trim());
        Trial::test(title, move || KernelArm.check(&case).map_err(Failed::from))
    });
    let before = namespaces();
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let left: Vec<_> = namespaces().difference(&before).cloned().collect();
    if !left.is_empty() {
        eprintln!("namespaces are left open: {left:?}");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// The network namespaces that this process keeps open, by their numbers: they live by its files alone.
fn namespaces() -> BTreeSet<String> {
    let files = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    let names = targets.map(|target| target.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("net:[")).collect()
}

/// Says what this machine lacks. It may be lacking, but not where `CI` is set.
fn pass_over(error: &str) -> ExitCode {
    eprintln!("passed over, this machine lacks what the kernel arm needs: {error}");
    if std::env::var_os("CI").is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
