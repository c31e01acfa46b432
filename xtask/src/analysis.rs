//! `cargo xtask mutants` and `cargo xtask coverage`: which code the tests check, and which they
//! only run. Both take long and are no part of `cargo xtask test`.

use clap::Args;

use crate::process::{self, cargo, installed, program, target};

/// Arguments of `mutants`.
#[derive(Debug, Args)]
pub(crate) struct Mutants {
    /// Crate, such as gridhaul-core
    package: String,
    /// Files to change, relative to the root, such as 'crates/gridhaul-core/src/tcp/congestion/**'
    /// [default: all]
    #[arg(long, value_name = "PATTERN")]
    file: Vec<String>,
    /// A part of the mutants, such as 1/8: every eighth
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// Seconds after which the tests of a mutant count as failed: it may run forever
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u32,
    /// Only tests whose names contain this text
    #[arg(long, value_name = "TEXT")]
    tests: Option<String>,
}

/// Arguments of `coverage`.
#[derive(Debug, Args)]
pub(crate) struct Coverage {
    /// Crate, such as gridhaul-core
    package: String,
    /// Only tests whose names contain this text
    #[arg(long, value_name = "TEXT")]
    tests: Option<String>,
    /// Write pages with every line to target/coverage instead of a table of files
    #[arg(long)]
    html: bool,
}

/// Lists the mutants of a crate that its unit tests do not detect.
pub(crate) fn mutants(options: &Mutants) -> anyhow::Result<()> {
    provide("cargo-mutants")?;
    let mut command = program("cargo");
    command.args(["mutants", "--package", &options.package, "--baseline=skip", "--no-shuffle"]);
    command.args(["--timeout", &options.timeout.to_string()]);
    command.arg("--output").arg(target());
    for pattern in &options.file {
        command.args(["--file", pattern]);
    }
    if let Some(shard) = &options.shard {
        command.args(["--shard", shard]);
    }
    command.args(["--", "--lib"]);
    command.args(&options.tests);
    process::run_with_results(&mut command, &[MISSED, TIMED_OUT])
}

/// Exit codes of cargo-mutants: no test has detected some mutants, or the tests took too long.
const MISSED: i32 = 2;
const TIMED_OUT: i32 = 3;

/// Prints how much of a crate its unit tests run.
pub(crate) fn coverage(options: &Coverage) -> anyhow::Result<()> {
    provide("cargo-llvm-cov")?;
    let mut command = program("cargo");
    command.args(["llvm-cov", "--package", &options.package, "--lib"]);
    if options.html {
        command.args(["--html", "--output-dir"]).arg(target().join("coverage"));
    }
    if let Some(tests) = &options.tests {
        command.args(["--", tests]);
    }
    process::run(&mut command)
}

/// Installs a subcommand of cargo, if it is missing.
fn provide(name: &str) -> anyhow::Result<()> {
    if installed(name) {
        return Ok(());
    }
    println!("{name} is missing and is installed now");
    process::run(cargo().args(["install", "--locked", name]))
}
