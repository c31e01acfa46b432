//! Shows what the sim arm sees in a case: `cargo run --example show -- slow_start/initial_window`.

use std::env;
use std::process::ExitCode;

use gridhaul_conformance::arm::{Arm, SimArm};
use gridhaul_conformance::{case, judge};

fn main() -> ExitCode {
    let wanted = env::args().nth(1).unwrap_or_default();
    let cases = match case::load_all(&case::folder()) {
        Ok(cases) => cases,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    for case in cases.iter().filter(|case| case.name.starts_with(&wanted)) {
        println!("== {}: {}", case.name, case.title);
        match SimArm.run(case) {
            Ok(seen) => {
                let all = seen.rows(&case.expect);
                let count = if case.expect.events.is_some() { all.len() } else { 0 };
                for (ms, row) in all.into_iter().take(count.min(60)) {
                    println!("{ms:>10.3} | {row}");
                }
                for name in case.expect.totals.keys() {
                    println!("{name}: {:?}", seen.totals.get(name));
                }
                let verdict = judge::judge(case, &seen);
                println!("{}", verdict.err().unwrap_or_else(|| "as expected".to_owned()));
            }
            Err(problem) => println!("{problem}"),
        }
    }
    ExitCode::SUCCESS
}
