//! Whether a simulation can fit into memory: a count with a few zeros too many is told before the system ends
//! the program.

use std::fs;

use anyhow::ensure;
use gridhaul_scenario::scenario::Scenario;

/// A connection with its links and messages takes about this (`cargo xtask bench meters`: 958 MB for a million
/// meters).
const BYTES_PER_FLOW: u64 = 1000;

/// # Errors
/// With the largest flow's key, if the flows of a run would need more than there is.
pub(crate) fn ensure_room(scenario: &Scenario) -> anyhow::Result<()> {
    let Some(free) = available() else { return Ok(()) };
    room(scenario, free)
}

fn room(scenario: &Scenario, free: u64) -> anyhow::Result<()> {
    let count = |flow| scenario.connections(flow);
    let all = scenario.flow.values().map(count).fold(0, u64::saturating_add);
    let needs = all.saturating_mul(BYTES_PER_FLOW);
    let Some((name, flow)) = scenario.flow.iter().max_by_key(|(_, flow)| count(flow)) else {
        return Ok(());
    };
    ensure!(
        needs <= free,
        "flow.{name}: {} connections of {all} in all take about {:.0} GB of memory, and {:.0} GB are free here\n  \
         help: fewer of them (`count` of the flow or of node `{}`), or a machine with more memory",
        count(flow),
        needs as f64 / 1e9,
        free as f64 / 1e9,
        flow.from
    );
    Ok(())
}

/// Bytes that a program can still have; `None` where the system does not say.
fn available() -> Option<u64> {
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_meters_need_a_gigabyte() {
        let text = "title = \"many\"\nduration = \"1 s\"\n[node]\na = { count = 500_000 }\nb = {}\n[link.up]\nfrom = \"a\"\nto = \"b\"\n\
             both.rate = \"1 Mbit/s\"\n[flow.twice]\nfrom = \"a\"\nto = \"b\"\ncount = 2\nload = \"bulk\"\n";
        let scenario = Scenario::from_toml(text, "test.toml").expect("a scenario");
        assert!(room(&scenario, 1_000_000_000).is_ok());
        let refused = room(&scenario, 999_999_999).unwrap_err().to_string();
        assert!(refused.starts_with("flow.twice: 1000000 connections"), "{refused}");
    }
}
