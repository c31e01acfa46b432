//! `gridhaul check`: validates scenario files without running them.

use std::fmt::Write;

use anyhow::anyhow;
use gridhaul_cli::{print, say};
use gridhaul_data::trace;
use gridhaul_scenario::answer::Warning;
use gridhaul_scenario::units::counted;

use super::error::CommandError;
use crate::args::CheckArgs;

/// Prints a summary and the warnings of each valid file. The errors of all files are one error.
pub(crate) fn run(args: &CheckArgs) -> Result<(), CommandError> {
    let mut errors = Vec::new();
    let mut lines = String::new();
    let mut warnings = Vec::new();
    for file in &args.files {
        match trace::load_scenario(file)
            .and_then(|scenario| Ok((scenario.point_count()?, scenario)))
        {
            Ok((points, scenario)) => {
                for warning in scenario.warnings() {
                    let (file, Warning { about, message }) = (file.display(), warning);
                    warnings.push(format!("warning: {file}: {about}: {message}"));
                }
                let _ = writeln!(
                    lines,
                    "ok  {}: {} ({}, {}, {}, {})",
                    file.display(),
                    scenario.title,
                    counted(scenario.node.len(), "node"),
                    counted(scenario.link.len(), "link"),
                    counted(scenario.flow.len(), "flow"),
                    counted(points, "point"),
                );
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    print(&lines)?;
    for warning in warnings {
        say(format_args!("{warning}"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(CommandError::Input(anyhow!("{}", errors.join("\n\nerror: "))))
}
