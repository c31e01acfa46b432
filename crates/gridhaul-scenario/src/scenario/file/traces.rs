//! The recorded traces that a scenario names.

use std::path::{self, Path};

use crate::scenario::error::Problem;
use crate::scenario::{DATAGRAM_HEADER, Load, PACKET_MAX, Scenario, Transport};
use crate::trace::{TraceError, TraceLimits, TraceReader};

impl Scenario {
    /// Opens the trace of a flow; `None` where its load is another, or there is no such flow.
    #[must_use]
    pub fn open_trace(&self, flow: &str) -> Option<Result<TraceReader, TraceError>> {
        let spec = self.flow.get(flow)?;
        let Load::Trace(trace) = &spec.load else { return None };
        let members = self.members(&spec.from, &spec.to).map_or(1, u64::from);
        let bytes_max = match spec.transport {
            Transport::Tcp => u64::MAX,
            Transport::Datagram | Transport::Echo => PACKET_MAX.get() - DATAGRAM_HEADER.get(),
        };
        let limits = TraceLimits { members: members * u64::from(spec.count), bytes_max };
        Some(TraceReader::open(Path::new(&trace.file), limits))
    }
}

/// Makes the paths of traces whole, from this folder, and opens each.
pub(super) fn problems(scenario: &mut Scenario, folder: &Path) -> Vec<Problem> {
    for flow in scenario.flow.values_mut() {
        if let Load::Trace(trace) = &mut flow.load
            && let Ok(whole) = path::absolute(folder.join(&trace.file))
            && let Some(whole) = whole.to_str()
        {
            trace.file = whole.to_owned();
        }
    }
    let opened = scenario.flow.keys().filter_map(|name| {
        let error = scenario.open_trace(name)?.err()?;
        let key = format!("flow.{name}.load.trace.file");
        Some(Problem::new(key, error.problem(), error.remedy()))
    });
    opened.collect()
}
