//! `bench pep`: what each proxy takes for a segment. There is no bar: the figures are for people.

use super::Figure;
use crate::shell::{cargo, output, program, target};

pub(super) fn run() -> anyhow::Result<Vec<Figure>> {
    let example = ["build", "--release", "-p", "gridhaul-core", "--example", "pep"];
    output(cargo().args(example))?;
    let path = target().join("release/examples/pep").display().to_string();
    let printed = output(&mut program(&path))?;
    let line = |line: &str| Figure { line: format!("proxy {line} (no bar)"), reached: true };
    Ok(printed.lines().map(line).collect())
}
