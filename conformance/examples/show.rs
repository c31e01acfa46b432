//! Shows what an arm sees in a case: `cargo run --example show -- [kernel] slow_start/initial_window`.

use std::env;
use std::process::ExitCode;

use gridhaul_conformance::case::{self, Case};
use gridhaul_conformance::{arm, judge};

fn main() -> ExitCode {
    let mut words: Vec<String> = env::args().skip(1).collect();
    let arms = arm::all();
    let named = |word: &String| arms.iter().copied().find(|arm| arm.name() == word);
    let arm = words.first().and_then(named).inspect(|_| drop(words.remove(0))).unwrap_or(arms[0]);
    let wanted = words.first().cloned().unwrap_or_default();
    let cases = match case::load_all(&case::folder()) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let wanted = cases.iter().filter(|case| case.name.starts_with(&wanted));
    for (congestion_control, case) in wanted.flat_map(Case::each_variant) {
        let case = arm.own(&case);
        println!("== {} {congestion_control}: {}", case.name, case.title);
        match arm.run(&case) {
            Ok(seen) => {
                let all = seen.rows(&case.expect);
                let count = if case.expect.events.is_some() { all.len() } else { 0 };
                for (ms, row) in all.into_iter().take(count.min(60)) {
                    println!("{ms:>10.3} | {row}");
                }
                for name in case.expect.totals.keys() {
                    println!("{name}: {:?}", seen.totals.get(name));
                }
                let verdict = judge::judge(&case, &seen, &arm.allowance());
                println!("{}", verdict.err().unwrap_or_else(|| "as expected".to_owned()));
            }
            Err(error) => println!("{error}"),
        }
    }
    ExitCode::SUCCESS
}
