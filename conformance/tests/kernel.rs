//! Every case of `cases/` that holds for the kernel, on the kernel of this machine, as a test of its own.
//!
//! They need root and /dev/net/tun; where that is missing they say so and pass, but fail where `CI` is set.

use std::process::ExitCode;

use gridhaul_conformance::arm::{Arm, KernelArm};
use gridhaul_conformance::case::{self, Case};
use libtest_mimic::{Arguments, Failed, Trial};

/// They wait most of the time.
const BESIDE: usize = 16;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let cases = match case::load_all(&case::folder()) {
        Ok(cases) => cases,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let cases: Vec<(String, Case)> = cases
        .iter()
        .filter(|case| case.runs_on("kernel") && case.ignore.is_none())
        .flat_map(Case::each_variant)
        .collect();
    let ready =
        KernelArm::available().and_then(|()| KernelArm::load(cases.iter().map(|(_, case)| case)));
    let _controls = match (ready, std::env::var_os("CI")) {
        (Ok(controls), _) => controls,
        (Err(problem), None) => {
            eprintln!("passed over, this machine lacks what the kernel arm needs: {problem}");
            return ExitCode::SUCCESS;
        }
        (Err(problem), Some(_)) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    arguments.test_threads.get_or_insert(BESIDE);
    let trials = cases.into_iter().map(|(variant, case)| {
        let title = format!("{} [{}]", case.name, ["kernel", &variant].join(" ").trim());
        Trial::test(title, move || KernelArm.check(&case).map_err(Failed::from))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
