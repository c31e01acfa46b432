//! `cargo xtask bench --record`: the history of measured values, so that a slow regression shows.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use super::{Measurement, Value};
use crate::process::{output, program, root};

const FILE: &str = "docs/data/benchmarks.csv";

const HEADER: &str = "date,commit,processor,benchmark,value,unit";

/// Appends the values, after printing how each differs from its last one on a processor of this
/// name. Times on different processors cannot be compared.
///
/// # Errors
/// The tree has changes that are not committed: nobody could repeat the measurement.
pub(super) fn record(measurements: &[Measurement]) -> anyhow::Result<()> {
    let git = |arguments: &[&str]| output(program("git").current_dir(root()).args(arguments));
    // The history itself may have rows that are not committed yet.
    let changes = git(&["status", "--porcelain", "--", ".", &format!(":(exclude){FILE}")])?;
    ensure!(changes.is_empty(), "--record: commit the changes first:\n{changes}");
    let commit = git(&["log", "-1", "--format=%cs,%h"])?;
    let processor = processor(&fs::read_to_string("/proc/cpuinfo")?)?;
    let path = root().join(FILE);
    let history = read(&path)?;
    let mut text = history.clone();
    println!("\nvalues and those before them in {FILE}:");
    for value in measurements.iter().filter_map(|measurement| measurement.value.as_ref()) {
        let Value { name, number, unit } = value;
        match last(&history, &processor, name) {
            Some(before) => {
                let change = 100.0 * (number / before - 1.0);
                println!("  {name}: {number:.3} {unit}, before {before:.3} ({change:+.1} %)");
            }
            None => println!("  {name}: {number:.3} {unit}, the first on {processor}"),
        }
        writeln!(text, "{},{processor},{name},{number:.4},{unit}", commit.trim())?;
    }
    fs::write(&path, text).with_context(|| format!("cannot write {FILE}"))
}

fn read(path: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {FILE}"))?;
    ensure!(text.lines().next() == Some(HEADER), "{FILE}: expected the first line {HEADER:?}");
    Ok(text)
}

/// Name of the processor according to the text of `/proc/cpuinfo`.
fn processor(text: &str) -> anyhow::Result<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.context("/proc/cpuinfo has no model name")?.1;
    Ok(name.trim().replace(',', " "))
}

/// The last value of a benchmark on a processor.
fn last(history: &str, processor: &str, name: &str) -> Option<f64> {
    history.lines().rev().find_map(|line| {
        let row: Vec<_> = line.split(',').collect();
        let [_, _, on, benchmark, value, _] = row[..] else { return None };
        (on == processor && benchmark == name).then(|| value.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_is_that_of_the_same_processor_and_benchmark() {
        let history = format!(
            "{HEADER}\n2026-01-01,a,P,bulk,1.0,x\n2026-01-02,b,P,bulk,2.0,x\n\
             2026-01-03,c,Q,bulk,3.0,x\n2026-01-03,c,P,flows,4.0,x\n"
        );
        assert_eq!(last(&history, "P", "bulk"), Some(2.0));
        assert_eq!(last(&history, "Q", "flows"), None);
    }

    #[test]
    fn a_name_of_a_processor_is_one_column() {
        let text = "processor\t: 0\nmodel name\t: Example, 2 GHz\n";
        assert_eq!(processor(text).unwrap(), "Example  2 GHz");
    }
}
