//! Every case of `cases/`, on every arm that it names, as a test of its own.

use std::process::ExitCode;

use gridhaul_conformance::case::{self, Case};
use gridhaul_conformance::{arm, judge};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = match case::load_all(&case::folder()) {
        Ok(cases) => cases,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials = vec![Trial::test("there_are_at_least_70_cases", {
        let count = cases.len();
        move || if count >= 70 { Ok(()) } else { Err(format!("only {count}").into()) }
    })];
    for case in cases {
        for name in &case.arms {
            let ignored = case.ignore.is_some();
            let (case, name) = (case.clone(), name.clone());
            let title = format!("{} [{name}]", case.name);
            let trial = Trial::test(title, move || run(&case, &name));
            trials.push(trial.with_ignored_flag(ignored));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(case: &Case, arm: &str) -> Result<(), Failed> {
    let known = arm::all();
    let arm = known.iter().find(|known| known.name() == arm).ok_or("no arm of this name")?;
    let seen = arm.run(case)?;
    judge::judge(case, &seen).map_err(Failed::from)
}
