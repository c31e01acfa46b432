//! `gridhaul check`: reads scenarios without running them.

use std::fmt::Write;

use anyhow::anyhow;
use gridhaul_scenario::scenario::Scenario;

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::terminal::print;

/// Tells for each file what it asks, and for all of them together what is wrong.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut errors = Vec::new();
    let mut lines = String::new();
    for file in &args.files {
        match Scenario::load(file).and_then(|scenario| Ok((scenario.point_count()?, scenario))) {
            Ok((points, scenario)) => {
                let points = if points == 1 { String::new() } else { format!(", {points} points") };
                let _ = writeln!(
                    lines,
                    "ok  {}: {} ({} nodes, {} links, {} flows{points})",
                    file.display(),
                    scenario.title,
                    scenario.node.len(),
                    scenario.link.len(),
                    scenario.flow.len(),
                );
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    print(&lines)?;
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::Input(anyhow!("{}", errors.join("\n\nerror: "))))
}
