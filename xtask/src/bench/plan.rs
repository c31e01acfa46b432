//! `bench plan`: `gridhaul plan` for a district of 50,000 meters, by equations alone.
//!
//! The scenario is `scenarios/district.toml`, whose meters send in bursts, and the same with
//! readings at fixed times. CPU time is that of the process, start-up and results folder included.

use std::fs;
use std::path::Path;

use anyhow::ensure;

use super::{Bounds, Measurement, path_text, timed};
use crate::process::{root, target};

/// CPU time in seconds for each of the two.
const BOUNDS: Bounds = Bounds::at_most(2.0, 2.0);

pub(super) fn run(gridhaul: &Path) -> anyhow::Result<Vec<Measurement>> {
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
        let mut command = vec![path_text(gridhaul)?, "plan".into()];
        command.extend([path_text(&file)?, "--verify".into(), "none".into()]);
        command.extend(["--quiet", "--force", "--out"].map(String::from));
        command.push(path_text(&folder.join(name))?);
        let (printed, cpu_s, memory_kb) = timed(&command)?;
        let summary = printed.lines().find(|line| line.contains("equations"));
        println!("  {name}: {cpu_s:.2} s CPU, {memory_kb} kB; {}", summary.unwrap_or_default());
        slowest = slowest.max(cpu_s);
    }
    Ok(vec![Measurement::new("plan", (slowest, 2, " s CPU"), BOUNDS)])
}
