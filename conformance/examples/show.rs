//! Prints the observation of a case on a backend: `cargo run --example show -- [kernel]
//! slow_start/initial_window`.

use std::env;
use std::process::ExitCode;

use gridhaul_conformance::case::{self, Case};
use gridhaul_conformance::{backend, compare};

fn main() -> ExitCode {
    let mut words: Vec<String> = env::args().skip(1).collect();
    let backends = backend::all();
    let named = |word: &String| backends.iter().copied().find(|backend| backend.name() == word);
    let backend =
        words.first().and_then(named).inspect(|_| drop(words.remove(0))).unwrap_or(backends[0]);
    let wanted = words.first().cloned().unwrap_or_default();
    let cases = match case::load_all(&case::folder()) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let wanted = cases.iter().filter(|case| case.name.starts_with(&wanted));
    for (congestion_control, case) in wanted.flat_map(Case::with_each_algorithm) {
        let case = backend.adapt_case(&case);
        println!("== {} {congestion_control}: {}", case.name, case.title);
        match backend.run(&case) {
            Ok(observation) => {
                let all = observation.rows(&case.expect);
                let count = if case.expect.events.is_some() { all.len() } else { 0 };
                for (ms, row) in all.into_iter().take(count.min(60)) {
                    println!("{ms:>10.3} | {row}");
                }
                for name in case.expect.totals.keys() {
                    println!("{name}: {:?}", observation.totals.get(name));
                }
                let result = compare::compare(&case, &observation, &backend.tolerance());
                println!("{}", result.err().unwrap_or_else(|| "as expected".to_owned()));
            }
            Err(error) => println!("{error}"),
        }
    }
    ExitCode::SUCCESS
}
