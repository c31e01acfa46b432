//! `cargo xtask bench`: figures against their bars, peers measured in the same run.

mod model;
mod sim;

use anyhow::ensure;
use clap::Args;

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Names of the benches; without any, all of them
    names: Vec<String>,
}

/// A bench: prints what it measures and returns its figures.
struct Bench {
    name: &'static str,
    run: fn() -> anyhow::Result<Vec<Figure>>,
}

/// A figure against its bar.
struct Figure {
    /// `NAME: FIGURE (bar BAR)`.
    line: String,
    reached: bool,
}

const BENCHES: &[Bench] =
    &[Bench { name: "sim", run: sim::run }, Bench { name: "model", run: model::run }];

/// Runs the benches; an error if a figure falls short.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
    for name in &options.names {
        ensure!(known.contains(&name.as_str()), "no bench {name:?}; there is {}", known.join(", "));
    }
    let chosen = |bench: &&Bench| {
        options.names.is_empty() || options.names.iter().any(|name| name == bench.name)
    };
    let mut figures = Vec::new();
    for bench in BENCHES.iter().filter(chosen) {
        figures.extend((bench.run)()?);
    }
    println!();
    for figure in &figures {
        println!("{}", figure.line);
    }
    let short: Vec<_> = figures.iter().filter(|figure| !figure.reached).collect();
    let short: Vec<_> = short.iter().filter_map(|figure| figure.line.split(':').next()).collect();
    ensure!(short.is_empty(), "short of the bar: {}", short.join(", "));
    Ok(())
}
