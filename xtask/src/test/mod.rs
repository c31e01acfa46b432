//! `cargo xtask test`: all checks that a change must pass.
//!
//! Short steps come first. The tests of cargo come last, so that their result ends the output.

mod background;
mod cosimulation;
mod failure;
mod instructions;
mod licences;
mod module;
mod ns2;
mod python;
mod suite;
mod suites;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;

use self::background::Background;
pub(crate) use self::python::Environment;
use crate::process::{self, cargo, program, root, target};

/// Arguments of `test`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Steps to run: tools, format, licences, lints, python, ns-2, fuzzing, module, instructions,
    /// tests [default: all]
    steps: Vec<String>,
    /// Skip the slow steps: python (a Petri net), fuzzing, ns-2, module (of Python)
    #[arg(long)]
    quick: bool,
}

struct Step {
    name: &'static str,
    /// Skipped with `--quick`, and otherwise run in the background unless selected by name.
    slow: bool,
    run: fn() -> anyhow::Result<()>,
}

const STEPS: [Step; 10] = [
    Step { name: "tools", slow: false, run: tools::provide },
    Step { name: "format", slow: false, run: format },
    Step { name: "licences", slow: false, run: licences::check },
    Step { name: "lints", slow: false, run: lints },
    Step { name: "python", slow: true, run: python::test },
    Step { name: "ns-2", slow: true, run: ns2::compare },
    Step { name: "fuzzing", slow: true, run: fuzz },
    Step { name: "module", slow: true, run: module::test },
    Step { name: "instructions", slow: false, run: instructions::check },
    Step { name: "tests", slow: false, run: suites::run },
];

/// Runs the steps and stops at the first failure.
#[expect(clippy::disallowed_methods, reason = "the duration of a step is printed only")]
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    for name in &options.steps {
        ensure!(STEPS.iter().any(|step| step.name == name), "there is no step {name:?}");
    }
    let all = options.steps.is_empty();
    let mut times = Vec::new();
    let mut background = None;
    for step in &STEPS {
        let chosen = all || options.steps.iter().any(|name| name == step.name);
        if !chosen || all && step.slow {
            continue;
        }
        println!("\n== {}", step.name);
        let begun = Instant::now();
        (step.run)().with_context(|| format!("step `{}`", step.name))?;
        times.push(format!("{} {:.0} s", step.name, begun.elapsed().as_secs_f64()));
        // The programs that the slow steps need are installed now.
        if all && !options.quick && step.name == "tools" {
            let slow: Vec<_> =
                STEPS.iter().filter(|step| step.slow).map(|step| step.name).collect();
            background = Some(Background::start(&slow)?);
        }
    }
    if let Some(background) = background {
        let begun = Instant::now();
        background.finish()?;
        times.push(format!("waiting for the background {:.0} s", begun.elapsed().as_secs_f64()));
    }
    println!("\ndone: {}", times.join(", "));
    Ok(())
}

/// Checks the format of each file, because `cargo fmt` does not find modules that a macro declares.
fn format() -> anyhow::Result<()> {
    let mut files = Vec::new();
    for folder in ["crates", "conformance", "xtask", "fuzz/fuzz_targets"] {
        rust_files(&root().join(folder), &mut files)?;
    }
    files.sort();
    println!("{} files", files.len());
    let mut rustfmt = program("rustfmt");
    rustfmt.args(["--check", "--edition", "2024"]).args(&files);
    // `process::run` would print the list of files.
    let status = rustfmt.status()?;
    ensure!(
        status.success(),
        "files are not formatted; run rustfmt --edition 2024 on the files above"
    );
    Ok(())
}

/// Builds libraries and programs as for the tests. The features of crates depend on the selected
/// packages and targets, so that another selection would compile most of them again.
fn build_with_tests() -> anyhow::Result<()> {
    let selected = ["--workspace", "--lib", "--bins", "--tests"];
    process::run(cargo().arg("build").args(selected).arg("--locked"))
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
    // The feature adds a program, and changes no other crate.
    let clippy = ["clippy", "--workspace", "--all-targets", "--features", "gridhaul-web/program"];
    process::run(cargo().args(clippy).args(["--locked", "--", "-D", "warnings"]))?;
    // The program without the emulator, as the Python module and other systems than Linux build it.
    let portable = ["--no-default-features", "--features", "cli"];
    let clippy = ["clippy", "-p", "gridhaul", "--locked"];
    process::run(cargo().args(clippy).args(portable).args(["--", "-D", "warnings"]))?;
    // Links between comments that lead nowhere are found by rustdoc alone.
    let rustdoc = ["doc", "--workspace", "--no-deps", "--locked"];
    process::run(cargo().args(rustdoc).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Fuzz targets: one for each parser or state machine with untrusted input.
const FUZZ_TARGETS: [&str; 10] = [
    "scenario", "trace", "proxies", "bridge", "packet", "relay", "frame", "capture", "explain",
    "user_tcp",
];

/// Random input for each fuzz target, 10 s each, two targets at a time. See fuzz/README.md.
fn fuzz() -> anyhow::Result<()> {
    process::run(fuzz_cargo("build").arg("--bins"))?;
    for pair in FUZZ_TARGETS.chunks(2) {
        let runs: Vec<_> = pair.iter().map(|name| thread::spawn(|| fuzz_target(name))).collect();
        for run in runs {
            print!("{}", run.join().expect("a fuzz run does not panic")?);
        }
    }
    Ok(())
}

/// Cargo in the folder of the fuzz targets, which have their own compiler flags.
fn fuzz_cargo(command: &str) -> Command {
    let mut cargo = cargo();
    cargo.current_dir(root().join("fuzz")).env("CARGO_TARGET_DIR", target().join("fuzz"));
    cargo.args([command, "--release", "--locked"]);
    cargo
}

/// Runs a fuzz target, which must have been built, and returns its statistics.
fn fuzz_target(target_name: &str) -> anyhow::Result<String> {
    let folder = root().join("fuzz");
    let corpus = format!("corpus/{target_name}");
    fs::create_dir_all(folder.join(&corpus))?;
    fs::create_dir_all(folder.join("artifacts"))?;
    let mut run = fuzz_cargo("run");
    run.args(["--bin", target_name]);
    run.args(["--quiet", "--", "-max_total_time=10", "-max_len=8192", "-timeout=60"]);
    run.args(["-seed=1", "-verbosity=0", "-print_final_stats=1", "-artifact_prefix=artifacts/"]);
    let output = run.args([corpus, format!("seeds/{target_name}")]).output()?;
    let printed = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{target_name} failed; its input is in fuzz/artifacts:\n{printed}"
    );
    let statistics = printed.lines().filter(|line| line.starts_with("stat::"));
    Ok(statistics.map(|line| format!("{target_name}: {line}\n")).collect())
}
