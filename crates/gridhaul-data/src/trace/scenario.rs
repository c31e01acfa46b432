//! Opens and checks the traces of a scenario before a run.

use std::collections::BTreeSet;
use std::path::Path;

use gridhaul_scenario::scenario::{
    Diagnostic, Load, Scenario, ScenarioError, ScenarioFile, ScenarioPoint, Transport,
};

use super::{TraceError, TraceLimits, TraceReader};
use crate::{link_quality, link_trace};

/// Reads a scenario file as [`Scenario::load`] does, then opens its traces as [`check`] does.
///
/// # Errors
/// Those of [`Scenario::load`]; otherwise all traces that cannot be read, each located at its key
/// in the scenario file.
pub fn load_scenario(path: &Path) -> Result<Scenario, ScenarioError> {
    load_file(path).map(|file| file.scenario)
}

/// Reads a scenario file as [`load_scenario`] does, and keeps its text for later errors.
///
/// # Errors
/// Those of [`load_scenario`].
pub fn load_file(path: &Path) -> Result<ScenarioFile, ScenarioError> {
    let file = ScenarioFile::load(path)?;
    let diagnostics = diagnostics(&file.scenario);
    if diagnostics.is_empty() { Ok(file) } else { Err(file.error(diagnostics)) }
}

/// Opens the traces of all flows, at all points of a sweep, and reads the first row of each, and
/// reads the traces and qualities of all links.
///
/// # Errors
/// All traces that cannot be read, without locations in the scenario file.
pub fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    let diagnostics = diagnostics(scenario);
    if diagnostics.is_empty() {
        return Ok(());
    }
    Err(ScenarioError { file: String::new(), diagnostics })
}

/// Opens the trace of a flow and reads its first row; `None` if the load of the flow is not a
/// trace, or if the scenario has no such flow.
#[must_use]
pub fn open(scenario: &Scenario, flow: &str) -> Option<Result<TraceReader, TraceError>> {
    let spec = scenario.flow.get(flow)?;
    let Load::Trace(trace) = &spec.load else { return None };
    let bytes_max = match spec.transport {
        Transport::Tcp => u64::MAX,
        Transport::Datagram | Transport::Echo | Transport::Coap => {
            let largest = scenario.datagram_payload_max(spec.ip).get();
            largest.saturating_sub(spec.datagram_overhead())
        }
    };
    let limits = TraceLimits { members: scenario.connections(spec), bytes_max };
    let folder = Path::new(scenario.folder.as_deref().unwrap_or_default());
    Some(TraceReader::open(&folder.join(&trace.file), limits))
}

/// Opens the traces of the flows; in a sweep, those of all points.
fn diagnostics(scenario: &Scenario) -> Vec<Diagnostic> {
    if scenario.sweep.is_empty() || !scenario.has_trace() {
        return diagnostics_here(scenario);
    }
    let Ok(all) = scenario.points() else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let mut diagnostics = Vec::new();
    for ScenarioPoint { scenario: here, .. } in all {
        // The checks of a trace depend on its flow, so each distinct flow is checked once, and each
        // distinct file of a link.
        let traced = here.flow.iter().filter(|(_, flow)| matches!(flow.load, Load::Trace(_)));
        let checks = traced.map(|(name, flow)| {
            let limits = (
                here.connections(flow),
                flow.transport != Transport::Tcp,
                here.datagram_payload_max(flow.ip),
            );
            format!("{name} {limits:?} {:?} {:?}", flow.load, here.folder)
        });
        let links = here.link.iter().map(|(name, link)| {
            let files = link.given().map(|(side, direction)| {
                let own = (direction.rate, direction.loss.is_some());
                (side, &direction.trace, &direction.quality, own)
            });
            format!("{name} {:?} {:?}", files.collect::<Vec<_>>(), here.folder)
        });
        if seen.insert(checks.chain(links).collect::<Vec<_>>()) {
            for mut diagnostic in diagnostics_here(&here) {
                // The sweep entry that sets the trace, if any.
                if let Some(key) = scenario.swept_key(&diagnostic.key) {
                    diagnostic.key = key;
                }
                if !diagnostics.contains(&diagnostic) {
                    diagnostics.push(diagnostic);
                }
            }
        }
    }
    diagnostics
}

fn diagnostics_here(scenario: &Scenario) -> Vec<Diagnostic> {
    let opened = scenario.flow.keys().filter_map(|name| {
        let error = open(scenario, name)?.err()?;
        let key = format!("flow.{name}.load.trace.file");
        Some(Diagnostic::new(key, error.message(), error.remedy()))
    });
    let of_links = link_trace::diagnostics(scenario).chain(link_quality::diagnostics(scenario));
    opened.chain(of_links).collect()
}
