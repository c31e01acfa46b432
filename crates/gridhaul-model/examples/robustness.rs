//! Solves random scenarios over the parameter space of `tests/integration/meters/design.rs` and
//! reports errors.
//!
//! `cargo run --release -p gridhaul-model --example robustness -- [POINTS] [FIRST]`

#[path = "../tests/integration/meters/design.rs"]
mod design;

use std::panic::catch_unwind;
use std::process::ExitCode;

fn main() -> ExitCode {
    let number = |place: usize, otherwise: u64| {
        std::env::args().nth(place).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (points, first) = (number(1, 20_000), number(2, 0));
    let (mut unsolved, mut wrong, mut worst) = (0_u64, 0_u64, 0.0_f64);
    for point in first..first + points {
        for paper in [false, true] {
            match catch_unwind(|| design::solve(point, paper)) {
                Ok(Ok(outcome)) if outcome.unsolved => {
                    unsolved += 1;
                    println!("{point} (paper: {paper}): not solved, {:.1e}", outcome.residual);
                }
                Ok(Ok(outcome)) => worst = worst.max(outcome.residual),
                Ok(Err(error)) => {
                    wrong += 1;
                    println!("{point} (paper: {paper}): {error}");
                }
                Err(_) => {
                    wrong += 1;
                    println!("{point} (paper: {paper}): a panic\n{}", design::scenario(point).0);
                }
            }
        }
    }
    println!(
        "{points} points by both sets of rules: {wrong} wrong, {unsolved} not solved and said so, \
         worst residual of the others {worst:.1e}"
    );
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
