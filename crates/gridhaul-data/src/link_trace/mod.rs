//! Traces of links: the rate of a direction over time, read from a file.
//!
//! A file is read completely before a run. Its path is relative to the folder of the scenario.

mod csv;
mod mahimahi;

use std::fs;
use std::path::Path;

use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Diagnostic, Directions, LinkTrace, LinkTraceContent, Scenario};

use crate::trace::TraceError;
use crate::trace::error::{RowError, of_file, unreadable_file};

/// Largest size of a file in bytes: about five million delivery opportunities.
const SIZE_MAX: u64 = 64 << 20;

/// The directions of a scenario with the traces of its links.
///
/// # Errors
/// A trace cannot be read.
pub fn directions(scenario: &Scenario) -> Result<Directions, RunError> {
    if !scenario.has_link_trace() {
        return Ok(Directions::new(scenario));
    }
    let mut known: Vec<(&LinkTrace, LinkTraceContent)> = Vec::new();
    let mut traces = Vec::new();
    for keys in Directions::keys(scenario) {
        let Some(trace) = &keys.trace else {
            traces.push(None);
            continue;
        };
        let content = match known.iter().find(|(other, _)| *other == trace) {
            Some((_, content)) => content.clone(),
            None => {
                let content = read(scenario, trace);
                let content = content.map_err(|error| RunError::Invalid(error.to_string()))?;
                known.push((trace, content.clone()));
                content
            }
        };
        traces.push(Some(content));
    }
    Ok(Directions::with_traces(scenario, traces))
}

/// Reads the trace of a direction.
///
/// # Errors
/// A file that cannot be read, or is not a trace of this format.
pub fn read(scenario: &Scenario, trace: &LinkTrace) -> Result<LinkTraceContent, TraceError> {
    let folder = Path::new(scenario.folder.as_deref().unwrap_or_default());
    let path = folder.join(trace.file());
    let content = text_of(&path).and_then(|text| match trace {
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

fn text_of(path: &Path) -> Result<String, RowError> {
    let unreadable = |error| unreadable_file(&error, "name a text file with a trace");
    let metadata = path.metadata().map_err(unreadable)?;
    // Reading a device or a pipe may never end.
    if !metadata.is_file() {
        return Err(of_file("this is not a regular file", "name a text file with a trace"));
    }
    if metadata.len() > SIZE_MAX {
        let message = format!("this file is larger than {} MiB", SIZE_MAX >> 20);
        return Err(of_file(message, "shorten the trace: it starts again at its end"));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        of_file(
            format!("this is not a text file: line {line} is not valid UTF-8"),
            "save the trace as text; decompress compressed files first",
        )
    })
}
