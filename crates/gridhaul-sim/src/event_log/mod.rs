//! Event logs of connections and of the nodes on their paths, on request.

mod nodes;

use std::io;
use std::ops::Range;

use gridhaul_core::tcp::{Connection, ConnectionObserver, Segment};
use gridhaul_scenario::answer::{ConnectionEvent, EventLog, EventLogWriter, NodeCause, NodeEvent};
use gridhaul_scenario::backend::{Progress, RunError};
use gridhaul_scenario::scenario::{FlowEnd, Scenario};
use gridhaul_scenario::units::Instant;

use self::nodes::{AggregatorLog, ProxyLog, compare_aggregators, compare_proxies};
use crate::aggregation::Aggregators;
use crate::end_id::EndId;
use crate::flow::{Ends, Flow};
use crate::proxy::Proxies;

pub(crate) use nodes::ProxyStep;

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
    proxies: Vec<ProxyLog>,
    aggregators: Vec<AggregatorLog>,
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
        if replication != scenario.record.replication || scenario.record.events.is_empty() {
            return Ok(Self(logs));
        }
        for (index, flow) in flows.iter().enumerate() {
            let Some((name, _)) = scenario.flow.get_index(flow.row as usize) else { continue };
            let Ends::Tcp(ends) = &flow.ends else { continue };
            if scenario.record.events.contains(name) {
                let (proxies, aggregators) = nodes::on_path(scenario, name)?;
                logs.push(FlowLog {
                    flow: index as u32,
                    observers: ends.each_ref().map(ConnectionObserver::new),
                    writer: EventLogWriter::new(name, progress.recording_file()?),
                    proxies,
                    aggregators,
                });
            }
        }
        Ok(Self(logs))
    }

    /// Whether there is a log.
    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether the events of an end are logged.
    #[inline]
    pub(crate) fn has(&self, end: EndId) -> bool {
        !self.0.is_empty() && self.0.iter().any(|log| log.flow == end.flow())
    }

    /// An end has handled a segment, an expired timer or data of the application.
    #[cold]
    pub(crate) fn on_handled(&mut self, now: Instant, end: EndId, connection: &Connection) {
        let Some((observer, mut emit)) = self.of_end(now, end) else { return };
        observer.on_handled(now, connection, &mut emit);
    }

    /// An end was polled for a segment, which may be `sent`.
    #[cold]
    pub(crate) fn on_polled(
        &mut self,
        now: Instant,
        end: EndId,
        connection: &Connection,
        sent: Option<&Segment>,
    ) {
        let Some((observer, mut emit)) = self.of_end(now, end) else { return };
        observer.on_polled(connection, sent, &mut emit);
    }

    /// The proxy instance with this index has handled a packet or a timer.
    #[cold]
    pub(crate) fn on_proxy(
        &mut self,
        now: Instant,
        proxies: &Proxies,
        index: u32,
        step: ProxyStep,
    ) {
        let instance = &proxies.instances[index as usize];
        let Some(log) = self.0.iter_mut().find(|log| log.flow == instance.flow) else { return };
        let ordinal = index - proxies.first[instance.flow as usize];
        let Some(ProxyLog { node, last }) = log.proxies.get_mut(ordinal as usize) else { return };
        let before = std::mem::replace(last, instance.snapshot());
        let writer = &mut log.writer;
        compare_proxies(&before, last, step, &mut |event| writer.push_node(now, node, &event));
    }

    /// An aggregator has handled a segment, or one of its upstream connections has.
    #[cold]
    pub(crate) fn on_aggregators(
        &mut self,
        now: Instant,
        aggregators: &Aggregators,
        cause: NodeCause,
    ) {
        for FlowLog { flow, writer, aggregators: logs, .. } in &mut self.0 {
            let mut upstream = aggregators.upstream_after(*flow);
            for AggregatorLog { node, last } in logs {
                let Some(index) = upstream else { break };
                let before = std::mem::replace(last, aggregators.snapshot(index));
                let mut emit = |event: NodeEvent| writer.push_node(now, node, &event);
                compare_aggregators(&before, last, cause, &mut emit);
                upstream = aggregators.upstream_after(aggregators.first_flow + index);
            }
        }
    }

    /// The first aggregator on the path of a flow has dropped a segment with this new data.
    #[cold]
    pub(crate) fn on_refused(&mut self, now: Instant, flow: u32, new: Option<Range<u64>>) {
        let Some(log) = self.0.iter_mut().find(|log| log.flow == flow) else { return };
        let Some(AggregatorLog { node, .. }) = log.aggregators.first() else { return };
        // Position 0 is SYN.
        let first_seq = new.as_ref().map(|range| range.start + 1);
        let end_seq = new.map(|range| range.end + 1);
        let cause = NodeCause::BufferFull;
        log.writer.push_node(
            now,
            node,
            &NodeEvent::NodeSegmentRefused { first_seq, end_seq, cause },
        );
    }

    /// The observer of an end, and the function that writes its events.
    fn of_end(
        &mut self,
        now: Instant,
        end: EndId,
    ) -> Option<(&mut ConnectionObserver, impl FnMut(ConnectionEvent))> {
        let FlowLog { observers, writer, .. } =
            self.0.iter_mut().find(|log| log.flow == end.flow())?;
        let side = end.side();
        let at = [FlowEnd::From, FlowEnd::To][side];
        Some((&mut observers[side], move |event| writer.push(now, at, &event)))
    }

    /// The finished logs.
    pub(crate) fn into_logs(self) -> io::Result<Vec<EventLog>> {
        self.0.into_iter().map(|log| log.writer.into_log()).collect()
    }
}
