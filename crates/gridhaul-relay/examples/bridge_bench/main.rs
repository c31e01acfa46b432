//! Measurements of a bridge with proxies beside the bridge of the kernel: `cargo xtask bench
//! bridge`.
//!
//! The only argument is a list of measurements, separated by commas: `rate`, `latency`, `memory`.
//! Progress goes to standard error, results to standard output: one JSON object with a list of
//! results for each measurement. The program of the relay is in the environment variable
//! `GRIDHAUL_RELAY`. As root.

#![expect(clippy::disallowed_methods, reason = "the bridge runs in real time")]

#[path = "../../tests/memory/frames.rs"]
#[expect(dead_code, reason = "the transfers of a test")]
mod frames;
mod latency;
mod memory;
mod network;
#[path = "../relay_bench/process.rs"]
#[expect(dead_code, reason = "other benchmarks also count wake-ups and children")]
mod process;
mod rate;

use anyhow::{Result, bail};
use gridhaul_linux::become_root;
use serde_json::{Map, Value};

/// The bridge of the kernel, and the modes of the relay.
pub(crate) const SUBJECTS: [&str; 7] =
    ["kernel", "none", "reflect", "spoof", "snoop", "ack", "split"];

/// Repetitions, in which all subjects take turns: a result is the median.
pub(crate) const ROUNDS: usize = 3;

fn main() -> Result<()> {
    become_root()?;
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let mut results = Map::new();
    for name in wanted.split(',') {
        let result = match name {
            "rate" => rate::run()?,
            "latency" => latency::run()?,
            "memory" => memory::run()?,
            _ => bail!("there is no measurement {name:?}; choose from: rate, latency, memory"),
        };
        results.insert(name.to_owned(), result.into());
    }
    println!("{}", Value::from(results));
    Ok(())
}

/// The median of each column of equally long rows.
pub(crate) fn medians<const N: usize>(rows: &[[f64; N]]) -> [f64; N] {
    std::array::from_fn(|column| {
        let mut values: Vec<_> = rows.iter().map(|row| row[column]).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    })
}
