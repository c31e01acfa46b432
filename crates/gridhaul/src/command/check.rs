//! `gridhaul check`: validates scenario files without running them.

use std::fmt::Write;

use anyhow::anyhow;
use gridhaul_cli::{print, say};
use gridhaul_data::trace;
use gridhaul_scenario::answer::Warning;
use gridhaul_scenario::backend::Backend;
use gridhaul_scenario::scenario::{Diagnostic, ScenarioError, ScenarioFile};
use gridhaul_scenario::units::counted;
use gridhaul_sim::Sim;

use super::error::CommandError;
use crate::args::CheckArgs;

/// Prints a summary and the warnings of each valid file. The errors of all files are one error.
pub(crate) fn run(args: &CheckArgs) -> Result<(), CommandError> {
    let mut errors = Vec::new();
    let mut lines = String::new();
    let mut warnings = Vec::new();
    for file in &args.files {
        match trace::load_file(file).and_then(|read| Ok((read.scenario.point_count()?, read))) {
            Ok((points, read)) => {
                let unsupported = unsupported(&read)?.into_iter();
                warnings.extend(unsupported.map(|error| format!("warning: {error}")));
                let scenario = &read.scenario;
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

/// Largest number of points of a sweep whose keys are compared with those of the backend.
const POINTS_MAX: usize = 1_000;

/// The keys that the default backend does not support, each at its place in the file. Only a
/// warning names them: another backend may support them, or a `Session` of the simulator.
fn unsupported(file: &ScenarioFile) -> Result<Vec<ScenarioError>, ScenarioError> {
    let points = file.scenario.sweep_points()?;
    let backend = Sim::default();
    let mut diagnostics = Vec::new();
    for number in 0..points.len().min(POINTS_MAX) {
        for found in backend.supports(&points.get(number)?.scenario).err().into_iter().flatten() {
            let key = file.scenario.swept_key(&found.key).unwrap_or(found.key);
            let message = format!("`gridhaul run` refuses this with backend `{}`", backend.name());
            let diagnostic = Diagnostic::new(key, message, found.reason);
            if !diagnostics.contains(&diagnostic) {
                diagnostics.push(diagnostic);
            }
        }
    }
    Ok(diagnostics.into_iter().map(|diagnostic| file.error(vec![diagnostic])).collect())
}
