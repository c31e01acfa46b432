//! Events of flows whose connections open and close.

use gridhaul_core::link::LossCause;
use gridhaul_core::load::ManagedCarrier;
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::World;
use crate::counters::ArrivedMessage;
use crate::end_id::EndId;
use crate::events::Target;
use crate::flow::{Ends, Flow};

impl World {
    /// A segment of the flow has arrived, or a deadline of its connections, their manager or the
    /// application has passed.
    #[cold]
    pub(super) fn on_managed(&mut self, now: Instant, flow_index: u32) {
        loop {
            self.handle_managed_events(now, flow_index);
            self.transmit_managed(now, flow_index);
            self.advance_managed(now, flow_index);
            self.transmit_managed(now, flow_index);
            let deadline = self.retire_managed(now, flow_index);
            if deadline > now {
                self.net.events.schedule(Target::App(flow_index), deadline);
                return;
            }
        }
    }

    fn handle_managed_events(&mut self, now: Instant, flow_index: u32) {
        let flow = &mut self.flows[flow_index as usize];
        let Ends::Managed(managed) = &mut flow.ends else { return };
        if let Some(connections) = &mut self.counters.connections[flow.row as usize] {
            managed.handle_events(now, connections);
        }
    }

    fn advance_managed(&mut self, now: Instant, flow_index: u32) {
        let row = self.flows[flow_index as usize].row;
        let Some(mut connections) = self.counters.connections[row as usize].take() else { return };
        let flow = &mut self.flows[flow_index as usize];
        if let Flow { ends: Ends::Managed(managed), app: Some(app), .. } = flow {
            managed.manager.start();
            let on_ready = |ready| self.counters.on_published(row, flow_index, ready);
            let on_event = |ready, event| {
                connections.counters.on_message_event(ready, event);
                if let Some(recorder) = &mut self.recorder {
                    recorder.on_message_event(now, row, flow_index, ready, event);
                }
            };
            let mut carrier = ManagedCarrier { manager: &mut managed.manager, on_ready, on_event };
            app.handle_timeout(now, &mut carrier, &mut self.in_flight);
            managed.advance(now, &mut connections);
        }
        self.counters.connections[row as usize] = Some(connections);
        for end in [FlowEnd::To, FlowEnd::From] {
            while let Some(message) = self.next_delivered(now, flow_index, end) {
                self.on_message(now, &message);
            }
        }
        self.forward_publications(now, flow_index, row);
    }

    /// Passes the messages that the `to` end has received to the flows that forward them.
    fn forward_publications(&mut self, now: Instant, flow_index: u32, row: u32) {
        while let Some(app) = &mut self.flows[flow_index as usize].app
            && let Some(publication) = app.poll_publication()
        {
            for index in 0..self.counters.subscriptions.len() {
                let subscription = self.counters.subscriptions[index];
                let subscriber = &mut self.flows[subscription.flow as usize];
                if subscription.publications == row
                    && let Flow { ends: Ends::Managed(managed), app: Some(app), .. } = subscriber
                {
                    app.forward(now, flow_index as usize, publication);
                    // Messages wait for a subscriber that has not started.
                    if managed.manager.has_started() {
                        self.net.events.schedule(Target::App(subscription.flow), now);
                    }
                }
            }
        }
    }

    /// The next message that has arrived completely at an end.
    fn next_delivered(
        &mut self,
        now: Instant,
        flow_index: u32,
        end: FlowEnd,
    ) -> Option<ArrivedMessage> {
        let flow = &mut self.flows[flow_index as usize];
        let Flow { row, ends: Ends::Managed(managed), app: Some(app), .. } = flow else {
            return None;
        };
        let row = *row;
        let mut connections = self.counters.connections[row as usize].as_mut();
        let on_event = |ready, event| {
            if let Some(connections) = &mut connections {
                connections.counters.on_message_event(ready, event);
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.on_message_event(now, row, flow_index, ready, event);
            }
        };
        let (manager, on_ready) = (&mut managed.manager, |_| {});
        let mut carrier = ManagedCarrier { manager, on_ready, on_event };
        let message = app.poll_delivered(now, end, &mut carrier, &mut self.in_flight)?;
        Some(ArrivedMessage { row, flow: flow_index, ready: message.at, is_altered: false })
    }

    /// Transmits the segments that the connections may send.
    fn transmit_managed(&mut self, now: Instant, flow_index: u32) {
        let flow = &mut self.flows[flow_index as usize];
        let (row, routes) = (flow.row, flow.routes);
        let Ends::Managed(managed) = &mut flow.ends else { return };
        for live in managed.live_mut() {
            for end in [FlowEnd::From, FlowEnd::To] {
                let (id, next) = (EndId::of(flow_index, end), routes[end as usize]);
                while let Some(segment) = live.poll_transmit(now, end) {
                    let bytes = segment.wire_bytes();
                    let mut first_link = self.net.first_link(next);
                    *first_link.segment(now, id.peer()) = segment;
                    let accepted = match first_link.send(now, bytes) {
                        Some(accepted) => accepted,
                        None => self.net.offer_detached(now, next, bytes),
                    };
                    let data = segment.len > 0 && end == FlowEnd::From;
                    if data {
                        self.counters.path_counters[row as usize].on_sent(bytes);
                    }
                    if !accepted && data {
                        let Segment { seq, len, flags, .. } = segment;
                        let lost = Segment { seq, len, flags, ..Segment::default() };
                        self.counters.on_segment_lost(row, flow_index, &lost, LossCause::Queue);
                    }
                }
            }
        }
    }

    /// Forgets connections that have ended. Returns the next deadline of the flow.
    fn retire_managed(&mut self, now: Instant, flow_index: u32) -> Instant {
        let flow = &mut self.flows[flow_index as usize];
        let application = flow.next_deadline();
        let Ends::Managed(managed) = &mut flow.ends else { return Instant::NEVER };
        if let Some(connections) = &mut self.counters.connections[flow.row as usize] {
            managed.retire(now, connections);
        }
        application.min(managed.next_deadline(now))
    }
}
