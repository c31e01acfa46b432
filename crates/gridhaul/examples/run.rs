//! Runs a scenario from a string in the simulator and in the analytical model, and prints the
//! goodput of both.
//!
//! `cargo run --release -p gridhaul --example run`

use gridhaul::scenario::Scenario;
use gridhaul::scenario::answer::Metric;
use gridhaul::scenario::backend::NoProgress;
use gridhaul::{BackendName, Engine};

const SCENARIO: &str = r#"
title = "A download over a lossy feeder"
duration = "60 s"
warmup = "10 s"
replications = 5

[node]
head = {}
meter = {}

[link.feeder]
from = "head"
to = "meter"
both = { rate = "1 Mbit/s", delay = "40 ms", loss = { bernoulli = "1 %" } }

[flow.download]
from = "head"
to = "meter"
load = "bulk"
"#;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The name is that of a file in error messages.
    let scenario = Scenario::from_toml(SCENARIO, "feeder.toml")?;
    let engine =
        Engine { backends: vec![BackendName::Sim, BackendName::Model], ..Engine::default() };
    // The label names the answers in comparisons; an `Observer` in the place of `NoProgress` can
    // draw a progress bar or interrupt the run.
    for answer in gridhaul::run(&scenario, &engine, "feeder", &NoProgress)? {
        let goodput = &answer.points[0].flows[0].metrics[&Metric::Goodput];
        // A mean is absent where a backend does not know it, and an interval where no number is
        // random.
        let mean =
            goodput.mean.map_or_else(|| "unknown".to_owned(), |mean| format!("{mean:.0} bit/s"));
        let interval = goodput.ci95.map(|half_width| format!(" ± {half_width:.0}"));
        println!("{:<6} {mean}{}", answer.backend, interval.unwrap_or_default());
        for warning in &answer.warnings {
            println!("       warning: {}: {}", warning.about, warning.message);
        }
    }
    Ok(())
}
