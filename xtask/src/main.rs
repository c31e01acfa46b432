//! Development tasks of the repository: `cargo xtask test`, `cargo xtask bench`, `cargo xtask
//! soak`, `cargo xtask bpf`, `cargo xtask browser`, `cargo xtask dist`, `cargo xtask docs`, `cargo
//! xtask release`, `cargo xtask web`, `cargo xtask wheel`, `cargo xtask mutants`, `cargo xtask
//! coverage`.

#![forbid(unsafe_code)]

mod analysis;
mod bench;
mod bpf;
mod browser;
mod dist;
mod docs;
mod empty_system;
mod instructions;
mod process;
mod release;
mod soak;
mod test;
mod training;
mod web;
mod wheel;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Run development tasks of the repository", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run all checks that a change must pass; CI runs the same
    Test(test::Options),
    /// Run the benchmarks of gridhaul and of comparable programs, and compare the results with the
    /// limits
    Bench(bench::Options),
    /// Run tests that take long: kills of the relay
    Soak(soak::Options),
    /// Compile the programs for the kernel, which are embedded in gridhaul (needs clang)
    Bpf,
    /// Check the status page of the relay in headless Chromium
    Browser,
    /// Make static programs and a package for Debian
    Dist(dist::Options),
    /// Regenerate the generated pages and golden files, or make a site of all pages
    Docs(docs::Options),
    /// Run checks of a release that take long: archives of crates, oldest versions and compiler
    Release(release::Options),
    /// Make the page of `gridhaul explore` without a server
    Web(web::Options),
    /// Build the Python package as a wheel
    Wheel(wheel::Options),
    /// Change the code of a crate in many small ways, and list the changes that no test detects
    Mutants(analysis::Mutants),
    /// Print which lines of a crate its tests run
    Coverage(analysis::Coverage),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test(options) => test::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Bpf => bpf::run(),
        Task::Browser => browser::run(),
        Task::Dist(options) => dist::run(&options),
        Task::Docs(options) => docs::run(&options),
        Task::Release(options) => release::run(&options),
        Task::Web(options) => web::run(&options),
        Task::Wheel(options) => wheel::run(&options),
        Task::Mutants(options) => analysis::mutants(&options),
        Task::Coverage(options) => analysis::coverage(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
