//! Messages of the program that steps the simulation.

use gridhaul_core::load::Arrival;
use gridhaul_core::tcp::State;
use gridhaul_scenario::answer::LossReason;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::World;
use crate::end_id::EndId;
use crate::event_log::EventLogs;
use crate::events::Target;
use crate::external_messages::QueuedMessage;
use crate::flow::Ends;

/// The time at which a step ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepEnd {
    /// The given time.
    Time,
    /// The first time at which a message is delivered or lost, and the given time at the latest.
    FirstReport,
}

/// How far a slice of a step has come.
pub(crate) struct Reached {
    pub now: Instant,
    /// Whether all events of the step are handled.
    pub is_complete: bool,
}

impl World {
    /// Handles up to `count` events up to and including a time, or that of the first report.
    pub(crate) fn run_events(
        &mut self,
        mut until: Instant,
        end: StepEnd,
        count: u32,
    ) -> Result<Reached, RunError> {
        let mut reached = Instant::ZERO;
        for _ in 0..count {
            let Some((now, target)) = self.net.events.pop(until) else {
                return Ok(Reached { now: until, is_complete: true });
            };
            reached = now;
            self.handle::<false>(now, target)?;
            if end == StepEnd::FirstReport && self.external.has_reports() {
                until = now;
            }
        }
        Ok(Reached { now: reached, is_complete: false })
    }

    /// Schedules the messages that were sent since the last step.
    pub(crate) fn schedule_external(&mut self) {
        for channel in self.external.take_changed() {
            self.schedule_channel(channel);
        }
    }

    /// The first event of a session: external messages take the places of the first rows of
    /// recorded traces.
    pub(super) fn reserve_external(&mut self) {
        for channel in 0..self.external.channels() as u32 {
            let place = self.net.events.reserve();
            self.external.set_place(channel, place);
        }
    }

    /// Messages of a channel are due.
    #[cold]
    pub(super) fn on_external(&mut self, now: Instant, channel: u32) {
        while let Some(message) = self.external.take_due(channel, now) {
            let flow = self.external.flow(channel, message.member);
            self.send_external(now, channel, flow, &message);
        }
        let place = self.net.events.reserve();
        self.external.set_place(channel, place);
        self.schedule_channel(channel);
    }

    /// Reports the messages of connections that are closed, which will not arrive.
    pub(crate) fn report_closed(&mut self, now: Instant) {
        // Without proxies, a connection closes only when its handshake fails, which its timer
        // reports.
        if self.proxies.instances.is_empty() {
            return;
        }
        let in_flight: Vec<u32> = self.external.flows_in_flight().collect();
        for flow in in_flight {
            self.report_if_closed(now, flow);
        }
    }

    /// Reports the messages of a flow whose connection is closed.
    #[cold]
    pub(super) fn report_if_closed(&mut self, now: Instant, flow: u32) {
        if let Some(reason) = self.closed(flow) {
            let row = self.flows[flow as usize].row;
            self.external.on_closed(now, row, flow, reason);
        }
    }

    /// A copy of the state of a session, which has no recordings and no traces.
    pub(crate) fn copy(&self) -> Self {
        Self {
            net: self.net.clone(),
            flows: self.flows.clone(),
            in_flight: self.in_flight.clone(),
            starts: self.starts.clone(),
            aggregators: self.aggregators.clone(),
            proxies: self.proxies.clone(),
            hybrid_routers: self.hybrid_routers.clone(),
            playbacks: Vec::new(),
            external: self.external.clone(),
            alterations: self.alterations.clone(),
            fragmentation: self.fragmentation.clone(),
            failure: None,
            counters: self.counters.clone(),
            warmup: self.warmup.clone(),
            recorder: None,
            event_logs: EventLogs::default(),
        }
    }

    fn send_external(
        &mut self,
        now: Instant,
        channel: u32,
        flow_index: u32,
        message: &QueuedMessage,
    ) {
        let arrival = Arrival { at: message.at, bytes: message.bytes };
        let row = self.flows[flow_index as usize].row;
        if let Ends::Datagram { .. } = self.flows[flow_index as usize].ends {
            let number = self.counters.rows[row as usize].datagrams as u32;
            self.external.on_datagram(channel, number, message);
            self.send_datagram(now, flow_index, arrival);
            return;
        }
        if let Some(reason) = self.closed(flow_index) {
            self.external.on_refused(now, message, reason);
            return;
        }
        let flow = &mut self.flows[flow_index as usize];
        if let Ends::Tcp(ends) = &flow.ends {
            self.counters.handshakes.on_use(now, flow_index, &ends[0]);
        }
        self.external.on_written(channel, message);
        let on_ready = |ready| self.counters.on_ready(row, flow_index, ready);
        flow.on_recorded(arrival, &mut self.in_flight, on_ready);
        self.transmit_ready::<false>(now, EndId::of(flow_index, FlowEnd::From));
    }

    fn schedule_channel(&mut self, channel: u32) {
        let at = self.external.next_at(channel);
        if let Some(place) = self.external.place(channel) {
            let trace = self.playbacks.len() as u32 + channel;
            self.net.events.schedule_at(Target::Trace(trace), at, place);
        }
    }

    /// Why no further message of a flow arrives.
    fn closed(&self, flow_index: u32) -> Option<LossReason> {
        let flow = &self.flows[flow_index as usize];
        let Ends::Tcp(ends) = &flow.ends else { return None };
        if flow.has_failed_to_open() && ends[0].state() == State::Closed {
            return Some(LossReason::ConnectionFailed);
        }
        let is_closed = ends.iter().any(|end| end.state() == State::Closed);
        is_closed.then_some(LossReason::ConnectionClosed)
    }
}
