//! `bench model`: figure 10 of paper `sa-tcp` by equations, with 1 to 1000 aggregators.
//!
//! The equations alone, and the command that users run, which also writes the results folder with
//! its report.

use std::path::Path;

use super::{Bounds, Measurement, path_text, timed};
use crate::process::{cargo, output, root, target};

/// CPU time in seconds for the figure with both congestion control algorithms.
const EQUATIONS: Bounds = Bounds::at_most(0.1, 1.5);
const COMMAND: Bounds = Bounds::at_most(0.5, 3.0);

/// Peak memory of the command in MB.
const COMMAND_MB: Bounds = Bounds::at_most(50.0, 150.0);

pub(super) fn run(gridhaul: &Path) -> anyhow::Result<Vec<Measurement>> {
    let example = ["build", "--release", "-p", "gridhaul-model", "--example", "answer"];
    output(cargo().args(example))?;
    let path = target().join("release/examples/answer");
    let file = root().join("bench/model/figure10.toml");
    let mut measurements = Vec::new();
    for (name, rules) in [("model, the paper's rules", Some("paper")), ("model", None)] {
        let mut command = vec![path.display().to_string(), file.display().to_string()];
        command.extend(rules.map(str::to_owned));
        let (_, cpu_s, memory_kb) = timed(&command)?;
        println!("{name}: {cpu_s:.2} s CPU, {memory_kb} kB");
        measurements.push(Measurement::new(name, (cpu_s, 2, " s"), EQUATIONS));
    }
    for backend in ["paper-model", "model"] {
        let mut command = vec![path_text(gridhaul)?, "run".into()];
        command.extend([path_text(&file)?, "--on".into(), backend.into(), "--quiet".into()]);
        command.extend(["--force".into(), "--out".into()]);
        command.push(path_text(&target().join("bench-model"))?);
        let (_, cpu_s, memory_kb) = timed(&command)?;
        let name = format!("gridhaul run --on {backend}");
        println!("{name}: {cpu_s:.2} s CPU, {memory_kb} kB");
        measurements.push(Measurement::new(&name, (cpu_s, 2, " s"), COMMAND));
        let name = format!("gridhaul run --on {backend}, memory");
        measurements.push(Measurement::new(&name, (memory_kb * 1.024e-3, 0, " MB"), COMMAND_MB));
    }
    Ok(measurements)
}
