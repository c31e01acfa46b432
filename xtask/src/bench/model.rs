//! `bench model`: figure 10 of paper `sa-tcp` by equations, with 1 to 1000 aggregators.

use super::{Measurement, timed};
use crate::process::{cargo, output, root, target};

/// Largest CPU time in seconds for the figure with both congestion control algorithms.
const LIMIT: f64 = 1.0;

pub(super) fn run() -> anyhow::Result<Vec<Measurement>> {
    let example = ["build", "--release", "-p", "gridhaul-model", "--example", "answer"];
    output(cargo().args(example))?;
    let path = target().join("release/examples/answer");
    let mut measurements = Vec::new();
    for (name, rules) in [("model, the paper's rules", Some("paper")), ("model", None)] {
        let file = root().join("bench/model/figure10.toml");
        let mut command = vec![path.display().to_string(), file.display().to_string()];
        command.extend(rules.map(str::to_owned));
        let (_, cpu_s, memory_kb) = timed(&command)?;
        println!("{name}: {cpu_s:.2} s CPU, {memory_kb} kB");
        let line = format!("{name}: {cpu_s:.2} s CPU (limit {LIMIT} s)");
        measurements.push(Measurement { line, passed: cpu_s <= LIMIT });
    }
    Ok(measurements)
}
