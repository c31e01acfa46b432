//! `cargo xtask test`: everything that must hold before a change is taken.
//!
//! The cheap steps come first, cargo's own tests last, so that their result ends the output.

mod licences;
mod peers;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::shell::{self, cargo, in_ci, program, root, target};

/// Arguments of `test`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Leave out what takes long: fuzzing and the comparison with ns-2
    #[arg(long)]
    quick: bool,
}

/// Runs all steps and stops at the first that fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    step("tools", tools::provide)?;
    step("format", format)?;
    step("licences", licences::check)?;
    step("lints", lints)?;
    if options.quick {
        println!("\n== left out with --quick: ns-2, fuzzing");
    } else {
        step("ns-2", peers::ns2)?;
        step("fuzzing", fuzz)?;
    }
    step("tests", tests)
}

fn step(name: &str, run: fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
    println!("\n== {name}");
    run().map_err(|error| error.context(format!("step `{name}`")))
}

/// Formats are checked file by file: cargo does not find modules that a macro declares.
fn format() -> anyhow::Result<()> {
    let mut files = Vec::new();
    for folder in ["crates", "conformance", "xtask", "fuzz/fuzz_targets"] {
        rust_files(&root().join(folder), &mut files)?;
    }
    files.sort();
    println!("{} files", files.len());
    let mut rustfmt = program("rustfmt");
    rustfmt.args(["--check", "--edition", "2024"]).args(&files);
    // The list of files would fill the screen.
    let status = rustfmt.status()?;
    anyhow::ensure!(status.success(), "not formatted; run: rustfmt <the files above>");
    Ok(())
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn lints() -> anyhow::Result<()> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    shell::run(cargo().args(clippy))
}

/// A minute of random scenario files. See fuzz/README.md.
fn fuzz() -> anyhow::Result<()> {
    let folder = root().join("fuzz");
    fs::create_dir_all(folder.join("corpus/scenario"))?;
    fs::create_dir_all(folder.join("artifacts"))?;
    let mut command = cargo();
    command.current_dir(&folder).env("CARGO_TARGET_DIR", target().join("fuzz"));
    command.args(["run", "--release", "--locked", "--bin", "scenario", "--"]);
    command.args(["-max_total_time=60", "-max_len=8192", "-timeout=10", "-verbosity=0"]);
    command.args(["-print_final_stats=1", "-artifact_prefix=artifacts/"]);
    shell::run(command.args(["corpus/scenario", "seeds/scenario"]))
}

fn tests() -> anyhow::Result<()> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked"]).env("INSTA_UPDATE", "no");
    if in_ci() {
        command.env("GRIDHAUL_REQUIRE_TOOLS", "1");
    }
    shell::run(&mut command)
}
