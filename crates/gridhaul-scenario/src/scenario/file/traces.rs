//! The recorded traces that a scenario names.

use std::collections::BTreeSet;
use std::path::{self, Path};

use toml::Value;

use crate::scenario::error::Problem;
use crate::scenario::points;
use crate::scenario::{Load, PACKET_MAX, Scenario, ScenarioPoint, Transport, Values};
use crate::trace::{TraceError, TraceLimits, TraceReader};

impl Scenario {
    /// Opens the trace of a flow; `None` where its load is another, or there is no such flow.
    #[must_use]
    pub fn open_trace(&self, flow: &str) -> Option<Result<TraceReader, TraceError>> {
        let spec = self.flow.get(flow)?;
        let Load::Trace(trace) = &spec.load else { return None };
        let bytes_max = match spec.transport {
            Transport::Tcp => u64::MAX,
            Transport::Datagram | Transport::Echo => {
                PACKET_MAX.get() - spec.ip.datagram_headers().get()
            }
        };
        let limits = TraceLimits { members: self.connections(spec), bytes_max };
        let folder = Path::new(self.folder.as_deref().unwrap_or_default());
        Some(TraceReader::open(&folder.join(&trace.file), limits))
    }

    /// Says that the scenario lies in this folder: paths of its traces begin there, or in the
    /// [`Scenario::folder`] that it names, which becomes a whole path. Nothing happens where no
    /// flow and no sweep names a trace.
    pub fn lies_in(&mut self, folder: &Path) {
        let own = Path::new(self.folder.as_deref().unwrap_or_default());
        if self.names_a_trace()
            && let Ok(whole) = match own.as_os_str().is_empty() {
                true => path::absolute(folder),
                false => path::absolute(folder.join(own)),
            }
        {
            self.folder = whole.to_str().map(str::to_owned);
        }
    }

    fn names_a_trace(&self) -> bool {
        let swept = self.sweep.iter().flat_map(|sweep| &sweep.vary);
        let chosen = self.plan.iter().flat_map(|plan| &plan.choose);
        self.flow.values().any(|flow| matches!(flow.load, Load::Trace(_)))
            || swept.chain(chosen).any(|(_, values)| match values {
                Values::List(list) => list.iter().any(holds_a_trace),
                Values::Range(_) => false,
            })
    }
}

/// Opens the traces of the flows; where there is a sweep, those of its points and no others.
pub(super) fn problems(scenario: &Scenario) -> Vec<Problem> {
    if scenario.sweep.is_empty() || !scenario.names_a_trace() {
        return problems_here(scenario);
    }
    let Ok(all) = scenario.points() else { return Vec::new() };
    let swept = |key: &str| scenario.sweep.iter().position(|entry| entry.vary.contains_key(key));
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for ScenarioPoint { scenario, .. } in all {
        // Whether a trace is right depends on its flow, and a file is read once for each that is the same.
        let traced = scenario.flow.iter().filter(|(_, flow)| matches!(flow.load, Load::Trace(_)));
        let looks = traced.map(|(name, flow)| {
            let limits = (scenario.connections(flow), flow.transport != Transport::Tcp, flow.ip);
            format!("{name} {limits:?} {:?} {:?}", flow.load, scenario.folder)
        });
        if seen.insert(looks.collect::<Vec<_>>()) {
            for mut problem in problems_here(&scenario) {
                // The entry that brings the trace, where one does.
                if let Some(entry) = swept(&problem.key) {
                    problem.key = points::name(entry, &problem.key);
                }
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
    }
    problems
}

fn problems_here(scenario: &Scenario) -> Vec<Problem> {
    let opened = scenario.flow.keys().filter_map(|name| {
        let error = scenario.open_trace(name)?.err()?;
        let key = format!("flow.{name}.load.trace.file");
        Some(Problem::new(key, error.problem(), error.remedy()))
    });
    opened.collect()
}

/// Whether a swept value brings a trace where there was another load.
fn holds_a_trace(value: &Value) -> bool {
    match value {
        Value::Table(table) => table.contains_key("trace") || table.values().any(holds_a_trace),
        Value::Array(list) => list.iter().any(holds_a_trace),
        _ => false,
    }
}
