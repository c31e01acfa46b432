//! `bench plan`: `gridhaul plan` for a district of 50,000 meters, by equations alone.
//!
//! The scenario is `scenarios/district.toml`, whose meters send in bursts, and the same with a reading
//! of every meter at fixed times. CPU time is of the whole process, start-up and results folder included.

use std::fs;

use anyhow::ensure;

use super::{Figure, text, timed};
use crate::shell::{self, cargo, root, target};

/// CPU seconds for either.
const BAR: f64 = 2.0;

pub(super) fn run() -> anyhow::Result<Vec<Figure>> {
    shell::run(cargo().args(["build", "--release", "--package", "gridhaul"]))?;
    let folder = target().join("bench-plan");
    fs::create_dir_all(&folder)?;
    let district = fs::read_to_string(root().join("scenarios/district.toml"))?;
    let bursts = district.lines().find(|line| line.starts_with("load.on_off"));
    let bursts = bursts.unwrap_or_default();
    ensure!(!bursts.is_empty(), "scenarios/district.toml has no line that begins with load.on_off");
    let readings =
        district.replace(bursts, r#"load.periodic = { every = "5 min", size = "200 B" }"#);
    println!("\nplan: 50,000 meters, 260 candidates, without verification");
    let mut slowest = 0.0_f64;
    for (name, scenario) in [("bursts", district.as_str()), ("readings", readings.as_str())] {
        let file = folder.join(format!("{name}.toml"));
        fs::write(&file, scenario)?;
        let mut command = vec![text(&target().join("release/gridhaul"))?, "plan".into()];
        command.extend([text(&file)?, "--verify".into(), "none".into()]);
        command.extend(["--quiet".into(), "--out".into()]);
        command.push(text(&folder.join(name))?);
        let (printed, cpu_s, memory_kb) = timed(&command)?;
        let judged = printed.lines().find(|line| line.contains("judged by equations"));
        println!("  {name}: {cpu_s:.2} s CPU, {memory_kb} kB; {}", judged.unwrap_or_default());
        slowest = slowest.max(cpu_s);
    }
    let line = format!("plan: {slowest:.2} s CPU (bar {BAR} s)");
    Ok(vec![Figure { line, reached: slowest <= BAR }])
}
