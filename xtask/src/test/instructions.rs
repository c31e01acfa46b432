//! Instruction gate: the simulator must need as many instructions for a unit of work as the
//! reference states. Times would depend on the load of the machine.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use toml::{Table, Value};

use super::build_with_tests;
use super::tools::VALGRIND;
use crate::instructions::WORKLOADS;
use crate::process::{output, program, root, target};

/// The largest deviation from the reference in per cent. Counts of one build vary by less than
/// 0.1 %; functions of the C library depend on the processor.
const TOLERANCE: i64 = 3;

/// Begins the file of the reference.
const HEADER: &str = "\
# Instructions of the simulator for a unit of work, by compiler and build profile: `bulk`, `flows`
# and `cubic` for a data packet with its acknowledgement, `meters` for a message.
# `cargo xtask test instructions` compares them, and with GRIDHAUL_UPDATE=1 writes those of the
# present compiler.
";

/// Counts the instructions of the build of the tests and compares them with the reference, or
/// writes the reference if GRIDHAUL_UPDATE is set.
pub(super) fn check() -> anyhow::Result<()> {
    if !cfg!(target_arch = "x86_64") {
        println!("the reference contains the instructions of x86-64 only; skipped");
        return Ok(());
    }
    if !VALGRIND.is_usable() {
        return VALGRIND.report_missing();
    }
    build_with_tests()?;
    let counts = count()?;
    let path = root().join("bench/instructions.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut reference: Table = text.parse().with_context(|| path.display().to_string())?;
    let key = compiler()?;
    if env::var_os("GRIDHAUL_UPDATE").is_some() {
        reference.insert(key, Value::Table(counts));
        return Ok(fs::write(&path, format!("{HEADER}\n{}", toml::to_string(&reference)?))?);
    }
    match reference.get(&key).and_then(Value::as_table) {
        Some(expected) => compare(&counts, expected),
        None => {
            println!("no reference for {key:?} in bench/instructions.toml; nothing is compared");
            Ok(())
        }
    }
}

/// Counts the instructions for each workload, rounded, and prints them.
fn count() -> anyhow::Result<Table> {
    let gridhaul: PathBuf = target().join("debug/gridhaul");
    let mut counts = Table::new();
    for workload in WORKLOADS {
        let instructions = workload.count(&gridhaul)?;
        println!("{}: {instructions:.0} instructions", workload.name);
        counts.insert(workload.name.to_owned(), Value::Integer(instructions.round() as i64));
    }
    Ok(counts)
}

/// Compiler and build profile, on which instructions depend.
fn compiler() -> anyhow::Result<String> {
    let version = output(program("rustc").arg("--version"))?;
    let version: Vec<_> = version.split_whitespace().take(2).collect();
    Ok(format!("{}, profile dev", version.join(" ")))
}

/// Fails if a count deviates from its reference.
fn compare(counts: &Table, expected: &Table) -> anyhow::Result<()> {
    let number = |table: &Table, name: &str| table.get(name).and_then(Value::as_integer);
    let deviations = counts.keys().filter_map(|name| {
        let (count, reference) = (number(counts, name)?, number(expected, name).unwrap_or(0));
        let deviation = count - reference;
        (deviation.abs() * 100 > TOLERANCE * reference).then(|| {
            let share = deviation as f64 / reference.max(1) as f64 * 100.0;
            format!("{name}: {count} instead of {reference} ({share:+.1} %)")
        })
    });
    let deviations: Vec<_> = deviations.collect();
    ensure!(
        deviations.is_empty(),
        "instructions deviate from bench/instructions.toml by more than {TOLERANCE} %: {}; if this \
         is intended, run GRIDHAUL_UPDATE=1 cargo xtask test instructions",
        deviations.join("; ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_and_more_instructions_than_the_reference_fail() {
        let table = |count: i64| Table::from_iter([("bulk".to_owned(), Value::Integer(count))]);
        for count in [9_700, 10_000, 10_300] {
            assert!(compare(&table(count), &table(10_000)).is_ok(), "{count}");
        }
        for count in [9_699, 10_301] {
            let error = compare(&table(count), &table(10_000)).unwrap_err().to_string();
            assert!(error.contains(&format!("bulk: {count} instead of 10000")), "{error}");
        }
        assert!(compare(&table(1), &Table::new()).is_err(), "a workload has no reference");
    }
}
