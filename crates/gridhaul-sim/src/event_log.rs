//! Event logs of connections, on request.

use std::io;

use gridhaul_core::tcp::{Connection, ConnectionObserver, Segment};
use gridhaul_scenario::answer::{ConnectionEvent, EventLog, EventLogWriter};
use gridhaul_scenario::backend::{Progress, RunError};
use gridhaul_scenario::scenario::{FlowEnd, Scenario};
use gridhaul_scenario::units::Instant;

use crate::flow::{Ends, Flow};

/// The event logs of a run; usually none.
#[derive(Debug, Default)]
pub(crate) struct EventLogs(Vec<FlowLog>);

#[derive(Debug)]
struct FlowLog {
    /// Index of the flow.
    flow: u32,
    /// Observers of the `from` and the `to` end.
    observers: [ConnectionObserver; 2],
    writer: EventLogWriter,
}

impl EventLogs {
    /// Logs of the flows that the scenario names, in files of `progress`; none after the first
    /// replication.
    pub(crate) fn new(
        scenario: &Scenario,
        flows: &[Flow],
        replication: u32,
        progress: &dyn Progress,
    ) -> Result<Self, RunError> {
        let mut logs = Vec::new();
        if replication > 0 || scenario.record.events.is_empty() {
            return Ok(Self(logs));
        }
        for (index, flow) in flows.iter().enumerate() {
            let Some((name, _)) = scenario.flow.get_index(flow.row as usize) else { continue };
            let Ends::Tcp(ends) = &flow.ends else { continue };
            if scenario.record.events.contains(name) {
                logs.push(FlowLog {
                    flow: index as u32,
                    observers: ends.each_ref().map(ConnectionObserver::new),
                    writer: EventLogWriter::new(name, progress.recording_file()?),
                });
            }
        }
        Ok(Self(logs))
    }

    /// Whether the events of an end are logged.
    #[inline]
    pub(crate) fn has(&self, end: u32) -> bool {
        !self.0.is_empty() && self.0.iter().any(|log| log.flow == end / 2)
    }

    /// An end has handled a segment, an expired timer or data of the application.
    #[cold]
    pub(crate) fn on_handled(&mut self, now: Instant, end: u32, connection: &Connection) {
        let Some((observer, mut emit)) = self.of_end(now, end) else { return };
        observer.on_handled(now, connection, &mut emit);
    }

    /// An end was polled for a segment, which may be `sent`.
    #[cold]
    pub(crate) fn on_polled(
        &mut self,
        now: Instant,
        end: u32,
        connection: &Connection,
        sent: Option<&Segment>,
    ) {
        let Some((observer, mut emit)) = self.of_end(now, end) else { return };
        observer.on_polled(connection, sent, &mut emit);
    }

    /// The observer of an end, and the function that writes its events.
    fn of_end(
        &mut self,
        now: Instant,
        end: u32,
    ) -> Option<(&mut ConnectionObserver, impl FnMut(ConnectionEvent))> {
        let FlowLog { observers, writer, .. } =
            self.0.iter_mut().find(|log| log.flow == end / 2)?;
        let side = (end % 2) as usize;
        let at = [FlowEnd::From, FlowEnd::To][side];
        Some((&mut observers[side], move |event| writer.push(now, at, &event)))
    }

    /// The finished logs.
    pub(crate) fn into_logs(self) -> io::Result<Vec<EventLog>> {
        self.0.into_iter().map(|log| log.writer.into_log()).collect()
    }
}
