//! Traces of links: the rate of a direction over time, read from a file.
//!
//! A file is read completely before a run. Its path is relative to the folder of the scenario.

mod csv;
mod mahimahi;

use std::path::Path;

use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{
    Diagnostic, Directions, LinkFiles, LinkTrace, LinkTraceContent, Scenario,
};

use crate::link_quality;
use crate::link_table::text_of;
use crate::trace::TraceError;

/// The directions of a scenario with the traces and the qualities of its links.
///
/// # Errors
/// A file cannot be read.
pub fn directions(scenario: &Scenario) -> Result<Directions, RunError> {
    if !scenario.has_link_file() {
        return Ok(Directions::new(scenario));
    }
    let mut known: Vec<(&LinkTrace, LinkTraceContent)> = Vec::new();
    let mut files = LinkFiles::default();
    for keys in Directions::keys(scenario) {
        let trace = match &keys.trace {
            None => None,
            Some(trace) => Some(match known.iter().find(|(other, _)| *other == trace) {
                Some((_, content)) => content.clone(),
                None => {
                    let content = read(scenario, trace).map_err(invalid)?;
                    known.push((trace, content.clone()));
                    content
                }
            }),
        };
        files.traces.push(trace);
        let quality = link_quality::read(scenario, keys).transpose().map_err(invalid)?;
        files.qualities.push(quality);
    }
    Ok(Directions::with_files(scenario, files))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn invalid(error: TraceError) -> RunError {
    RunError::Invalid(error.to_string())
}

/// Reads the trace of a direction.
///
/// # Errors
/// A file that cannot be read, or is not a trace of this format.
pub fn read(scenario: &Scenario, trace: &LinkTrace) -> Result<LinkTraceContent, TraceError> {
    let folder = Path::new(scenario.folder.as_deref().unwrap_or_default());
    let path = folder.join(trace.file());
    let content = text_of(&path, "name a text file with a trace").and_then(|text| match trace {
        LinkTrace::Mahimahi(keys) => mahimahi::parse(&text, keys.repeat),
        LinkTrace::Steps(keys) => csv::parse(&text, keys.every),
    });
    content.map_err(|error| TraceError::new(&path.display().to_string(), error))
}

/// Reads the traces of all links, and reports those that cannot be read.
pub(crate) fn diagnostics(scenario: &Scenario) -> impl Iterator<Item = Diagnostic> {
    let links = scenario.link.iter();
    let directions = links.flat_map(|(name, link)| {
        link.given().map(move |(side, direction)| (format!("link.{name}.{side}"), direction))
    });
    directions.filter_map(|(key, direction)| {
        let trace = direction.trace.as_ref()?;
        let error = read(scenario, trace).err()?;
        let key = format!("{key}.trace.{}", trace.file_key());
        Some(Diagnostic::new(key, error.message(), error.remedy()))
    })
}
