//! The program `gridhaul-measure`, which `gridhaul measure` starts.

#![forbid(unsafe_code)]

use clap::Parser;

/// Measure power-grid protocols message by message: latency, reliability, outages, efficiency
#[derive(Debug, Parser)]
#[command(name = "gridhaul measure", version)]
struct Cli {}

fn main() {
    let _cli = Cli::parse();
}
