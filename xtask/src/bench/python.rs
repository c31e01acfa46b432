//! `bench python`: the Python module of the wheel, and the size of the wheel.
//!
//! The wheel is built and installed into a virtual environment with the packages of the tests, in
//! which `bench/python/benchmark.py` measures. Times depend on other work of the machine.

use std::env;
use std::fs;

use anyhow::Context;
use serde_json::Value;

use super::{Bounds, Measurement};
use crate::process::{self, output, program, root, target};
use crate::test::Environment;
use crate::wheel;

/// Points of the sweep that is merged: a million are the goal, which takes some minutes.
const MERGED_POINTS: &str = "GRIDHAUL_MERGED_POINTS";

/// A quantity of the program, its factor to the displayed unit, and its bounds in that unit.
struct Quantity {
    name: &'static str,
    factor: f64,
    unit: &'static str,
    bounds: Bounds,
}

const QUANTITIES: &[Quantity] = &[
    quantity("import_s", 1e3, " ms", Bounds::at_most(50.0, 100.0)),
    quantity("first_frame_s", 1.0, " s", Bounds::at_most(10.0, 10.0)),
    quantity("overhead_ratio", 100.0, " %", Bounds::at_most(5.0, 10.0)),
    quantity("million_rows_s", 1e3, " ms", Bounds::at_most(50.0, 200.0)),
    quantity("ten_million_rows_byte", 1e-6, " MB", Bounds::at_most(200.0, 250.0)),
    quantity("first_unit_s", 1.0, " s", Bounds::at_most(2.0, 4.0)),
    quantity("ctrl_c_s", 1e3, " ms", Bounds::at_most(100.0, 200.0)),
    quantity("messages_per_s", 1.0, " messages/s", Bounds::at_least(100_000.0, 50_000.0)),
    quantity("snapshot_s", 1e3, " ms", Bounds::at_most(10.0, 20.0)),
];

const fn quantity(name: &'static str, factor: f64, unit: &'static str, bounds: Bounds) -> Quantity {
    Quantity { name, factor, unit, bounds }
}

pub(super) fn run() -> anyhow::Result<Vec<Measurement>> {
    let wheel = wheel::build(true)?;
    let environment = Environment {
        folder: target().join("python-bench"),
        requirements: root().join("python/requirements.txt"),
        works: "import pandas, polars, pyarrow",
    };
    environment.provide()?;
    let mut pip = program(environment.python());
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    process::run(pip.args(["--force-reinstall", "--no-deps"]).arg(&wheel))?;
    println!("\npython: module and command of {}", wheel.display());
    let size = fs::metadata(&wheel)?.len() as f64;
    let bounds = Bounds::at_most(8.0, 11.0);
    let mut measured = vec![Measurement::new("wheel_byte", (size * 1e-6, 1, " MB"), bounds)];
    let points = env::var(MERGED_POINTS).unwrap_or_else(|_| "20000".to_owned());
    let mut benchmark = program(environment.python());
    benchmark.arg(root().join("bench/python/benchmark.py")).arg(&points);
    for line in output(&mut benchmark)?.lines() {
        let result: Value = serde_json::from_str(line)?;
        let name = result["name"].as_str().context("a result without a name")?;
        let value = result["value"].as_f64().context("a result without a value")?;
        match QUANTITIES.iter().find(|quantity| quantity.name == name) {
            Some(Quantity { factor, unit, bounds, .. }) => {
                measured.push(Measurement::new(name, (value * factor, 1, unit), *bounds));
            }
            None if name == "merge_s" => println!("  {points} points merged in {value:.1} s"),
            None => println!("  {name}: {value:.3}"),
        }
    }
    Ok(measured)
}
