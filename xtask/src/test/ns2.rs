//! Checks that ns-2 reproduces the stored tables.

use std::fs;

use anyhow::ensure;

use crate::process::{installed, output, program, root};

/// Runs the deterministic cases in ns-2 and compares them with the stored tables. Cargo tests
/// compare gridhaul with these tables, and with packet traces that ns-2 writes for the test
/// `ns2_replay`.
pub(crate) fn compare() -> anyhow::Result<()> {
    if !installed("ns") {
        println!("skipped: ns-2 is not installed");
        return Ok(());
    }
    for (script, table) in [
        ("conformance/ns2/run.sh", "conformance/ns2/grid.csv"),
        ("papers/hybrid/ns2/run.sh", "papers/hybrid/ns2/ns2.csv"),
    ] {
        let printed = output(program("sh").arg(script).arg("--quick"))?;
        let stored = fs::read_to_string(root().join(table))?;
        let same = same_rows(&printed, &stored)?;
        println!("{table}: {same} deterministic rows are reproduced");
    }
    Ok(())
}

/// Number of rows with a single seed, each of which must be in the stored table unchanged.
fn same_rows(printed: &str, stored: &str) -> anyhow::Result<usize> {
    let header = printed.lines().next().unwrap_or_default();
    ensure!(
        stored.lines().next() == Some(header),
        "the columns differ from the stored table: {header}"
    );
    let seeds = header.split(',').position(|column| column == "seeds");
    let mut same = 0;
    for row in printed.lines().skip(1) {
        if seeds.and_then(|seeds| row.split(',').nth(seeds)) != Some("1") {
            continue;
        }
        ensure!(
            stored.lines().any(|line| line == row),
            "the stored table lacks this row of ns-2: {row}"
        );
        same += 1;
    }
    ensure!(same > 0, "no deterministic row was printed");
    Ok(same)
}

#[cfg(test)]
mod tests {
    use super::same_rows;

    #[test]
    fn rows_with_one_seed_must_be_the_same() {
        let stored = "point,seeds,goodput\na,1,5.0\nb,40,3.0\n";
        assert_eq!(same_rows("point,seeds,goodput\na,1,5.0\nb,3,3.3\n", stored).unwrap(), 1);
        assert!(same_rows("point,seeds,goodput\na,1,5.1\n", stored).is_err());
        assert!(same_rows("point,goodput\na,5.0\n", stored).is_err());
        assert!(same_rows("point,seeds,goodput\n", stored).is_err());
    }
}
