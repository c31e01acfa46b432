//! `bench model`: figure 10 of paper `sa-tcp` by equations, from 1 to 1000 collectors.

use super::{Figure, timed};
use crate::shell::{cargo, output, root, target};

/// CPU seconds for the whole figure, both variants.
const BAR: f64 = 1.0;

pub(super) fn run() -> anyhow::Result<Vec<Figure>> {
    let example = ["build", "--release", "-p", "gridhaul-model", "--example", "answer"];
    output(cargo().args(example))?;
    let path = target().join("release/examples/answer");
    let mut figures = Vec::new();
    for (name, rules) in [("model, the paper's rules", Some("paper")), ("model", None)] {
        let file = root().join("bench/model/figure10.toml");
        let mut command = vec![path.display().to_string(), file.display().to_string()];
        command.extend(rules.map(str::to_owned));
        let (_, cpu_s, memory_kb) = timed(&command)?;
        println!("{name}: {cpu_s:.2} s CPU, {memory_kb} kB");
        let line = format!("{name}: {cpu_s:.2} s CPU (bar {BAR} s)");
        figures.push(Figure { line, reached: cpu_s <= BAR });
    }
    Ok(figures)
}
