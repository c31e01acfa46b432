//! `cargo xtask bench`: figures against their bars, peers measured in the same run.

mod sim;

use anyhow::ensure;
use clap::Args;

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Names of the benches; without any, all of them: sim
    names: Vec<String>,
}

/// What a bench found.
struct Figure {
    /// `NAME: <figure> (bar <bar>)`.
    line: String,
    /// Whether the bar is reached.
    reached: bool,
}

struct Bench {
    name: &'static str,
    run: fn() -> anyhow::Result<Vec<Figure>>,
}

const BENCHES: &[Bench] = &[Bench { name: "sim", run: sim::run }];

/// Runs the benches; their figures come last. An error if one falls short.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
    for name in &options.names {
        ensure!(known.contains(&name.as_str()), "no bench {name:?}; there is {}", known.join(", "));
    }
    let mut figures = Vec::new();
    for bench in BENCHES {
        if options.names.is_empty() || options.names.iter().any(|name| name == bench.name) {
            figures.extend((bench.run)()?);
        }
    }
    println!();
    for figure in &figures {
        println!("{}", figure.line);
    }
    let short = figures.iter().filter(|figure| !figure.reached).count();
    ensure!(short == 0, "{short} of {} figures below the bar", figures.len());
    Ok(())
}
