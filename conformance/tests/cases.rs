//! Each case of `cases/` in the simulator, as a test of its own.

use std::process::ExitCode;

use gridhaul_conformance::backend::{CaseBackend, SimBackend};
use gridhaul_conformance::case::{self, Case};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = match case::load_all(&case::folder()) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials = vec![Trial::test("there_are_at_least_70_cases", {
        let count = cases.len();
        move || if count >= 70 { Ok(()) } else { Err(format!("only {count}").into()) }
    })];
    for case in cases {
        // The kernel has its own test: it requires privileges and real time.
        for (congestion_control, case) in
            case.with_each_algorithm().into_iter().filter(|_| case.runs_on("sim"))
        {
            let ignored = case.ignore.is_some();
            let title =
                format!("{} [{}]", case.name, ["sim", &congestion_control].join(" ").trim());
            let trial = Trial::test(title, move || run(&case));
            trials.push(trial.with_ignored_flag(ignored));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(case: &Case) -> Result<(), Failed> {
    SimBackend.check(case).map_err(Failed::from)
}
