//! Events of applications: messages, datagrams and recorded traces.

use gridhaul_core::load::Arrival;
use gridhaul_core::tcp::Sender;
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::{Duration, Instant};

use super::World;
use crate::counters::ArrivedMessage;
use crate::end_id::EndId;
use crate::events::Target;
use crate::external_messages::MessageFate;
use crate::flow::{Ends, Received};
use crate::packet::{Body, Datagram, Packet};

impl World {
    #[cold]
    pub(super) fn on_datagram(&mut self, now: Instant, packet: Packet, datagram: Datagram) {
        let flow = &self.flows[packet.flow() as usize];
        let bytes = u64::from(packet.body.wire_bytes());
        let echo = matches!(flow.ends, Ends::Datagram { echo: true, .. });
        let (row, reverse_route) = (flow.row, flow.routes[1]);
        let totals = &mut self.counters.rows[row as usize];
        match packet.is_reverse() {
            true => totals.reverse_bytes += bytes,
            false => totals.arrived_bytes += bytes,
        }
        let Some(datagram) = self.reassemble(&packet, datagram) else { return };
        if datagram.coap.is_some() {
            self.on_coap_datagram(now, &packet, &datagram);
            return;
        }
        if !packet.is_reverse() {
            self.counters.indirect_payload[packet.flow() as usize] += u64::from(datagram.bytes);
        }
        if echo && !packet.is_reverse() {
            let (to, body) = (packet.to.peer(), Body::Datagram(datagram));
            let response = Packet { to, next: reverse_route, body, ..packet };
            self.forward(now, response);
            return;
        }
        // A message counts once, also where a link has duplicated its datagram.
        let Datagram { ready, number, is_altered, .. } = datagram;
        if self.counters.is_first_copy(row, number, ready) {
            self.external.on_datagram_ended(now, row, number, MessageFate::delivered(is_altered));
            self.on_message(now, &ArrivedMessage { row, flow: packet.flow(), ready, is_altered });
        }
    }

    /// The timer of the application of a flow has expired: it starts, or a message is ready.
    pub(super) fn on_app<const PLAIN: bool>(&mut self, now: Instant, flow_index: u32) {
        self.read_ahead();
        let flow = &mut self.flows[flow_index as usize];
        if let Ends::Tcp(ends) = &flow.ends {
            // The window of a connection counts from its first use on.
            let cwnd = ends[0].sender().map_or(0, Sender::cwnd);
            self.counters.rows[flow.row as usize].note_cwnd(now, &mut flow.cwnd, cwnd);
            self.counters.handshakes.on_use(now, flow_index, &ends[0]);
        }
        let next = match &flow.ends {
            Ends::Tcp(_) => {
                let row = flow.row;
                let on_ready = |ready| self.counters.on_ready(row, flow_index, ready);
                let next = flow.on_due(now, &mut self.in_flight, on_ready);
                if self.aggregators.upstream_after(flow_index).is_some() {
                    flow.begin_chunks();
                }
                next
            }
            Ends::Managed(_) => return self.on_managed(now, flow_index),
            Ends::Coap(_) => return self.on_coap(now, flow_index),
            Ends::Datagram { .. } => {
                let Some((arrival, next)) = flow.next_datagram(now) else { return };
                if let Some(arrival) = arrival {
                    self.send_datagram(now, flow_index, arrival);
                }
                next
            }
        };
        self.net.events.schedule(Target::App(flow_index), next);
        self.transmit_ready::<PLAIN>(now, EndId::of(flow_index, FlowEnd::From));
        if self.is_active_at_to_end(now, flow_index) {
            self.transmit_ready::<PLAIN>(now, EndId::of(flow_index, FlowEnd::To));
        }
    }

    /// Has the processor load the state of the flows whose timers expire next. Each of a million
    /// meters is in memory when its message is ready, and in some ten places of it: an event waits
    /// for one after the other, whereas the processor loads those of several flows at once.
    #[inline]
    fn read_ahead(&mut self) {
        for target in self.net.events.upcoming() {
            match target {
                Target::App(flow) => self.flows[flow as usize].read_for_message(),
                Target::End(end) => self.flows[end.flow() as usize].read_for_timer(end),
                _ => {}
            }
        }
    }

    /// Whether the `to` end may have something to send when its application has an event: in a
    /// dialogue, the message that is ready may be the response, and a timer may expire now.
    fn is_active_at_to_end(&self, now: Instant, flow_index: u32) -> bool {
        let app = self.flows[flow_index as usize].app.as_ref();
        app.is_some_and(|app| app.watch_response().is_some())
            || self.net.events.may_be_due(EndId::of(flow_index, FlowEnd::To), now)
            || self.aggregators.upstream_after(flow_index).is_some()
            || self.event_logs.is_active()
    }

    /// Messages of a recorded trace are ready.
    #[cold]
    pub(super) fn on_trace(&mut self, now: Instant, trace: u32) {
        // The channels of a session are numbered after the traces.
        if let Some(channel) = trace.checked_sub(self.playbacks.len() as u32) {
            self.on_external(now, channel);
            return;
        }
        loop {
            let playback = &mut self.playbacks[trace as usize];
            let at = playback.at();
            if at > now {
                self.net.events.schedule(Target::Trace(trace), at);
                return;
            }
            let (bytes, flows) = playback.message();
            let more = playback.advance();
            let arrival = Arrival { at: now, bytes };
            for flow_index in flows {
                let flow = &mut self.flows[flow_index as usize];
                if let Ends::Datagram { .. } = flow.ends {
                    self.send_datagram(now, flow_index, arrival);
                } else if let Ends::Coap(_) = flow.ends {
                    self.push_coap(flow_index, arrival);
                    self.advance_coap(now, flow_index);
                } else {
                    if let Ends::Tcp(ends) = &flow.ends {
                        self.counters.handshakes.on_use(now, flow_index, &ends[0]);
                    }
                    let row = flow.row;
                    let on_ready = |ready| self.counters.on_ready(row, flow_index, ready);
                    flow.on_recorded(arrival, &mut self.in_flight, on_ready);
                    self.transmit_ready::<false>(now, EndId::of(flow_index, FlowEnd::From));
                }
            }
            match more {
                Ok(true) => {}
                Ok(false) => return,
                Err(failure) => {
                    self.failure = Some(failure);
                    return;
                }
            }
        }
    }

    /// Sends a message as a datagram.
    pub(super) fn send_datagram(&mut self, now: Instant, flow_index: u32, arrival: Arrival) {
        let flow = &mut self.flows[flow_index as usize];
        let Ends::Datagram { header, .. } = flow.ends else { return };
        let totals = &mut self.counters.rows[flow.row as usize];
        let bytes = u32::try_from(arrival.bytes).unwrap_or(u32::MAX);
        let ready = arrival.at;
        let (number, is_altered) = (totals.datagrams as u32, false);
        let datagram =
            Datagram { bytes, header, is_altered, number, ready, fragment: None, coap: None };
        totals.datagrams += 1;
        let row = flow.row;
        let (to, next) = (EndId::of(flow_index, FlowEnd::To), flow.routes[0]);
        let packet = Packet { to, next, sent: now, body: Body::Datagram(datagram) };
        self.counters.on_ready(row, flow_index, ready);
        self.count_sent(row as usize, &packet);
        self.forward(now, packet);
    }

    /// Counts the packets of a datagram of a row that its sender sends.
    pub(super) fn count_sent(&mut self, row: usize, packet: &Packet) {
        let fragments = self.fragments(packet);
        let path_counters = &mut self.counters.path_counters[row];
        for fragment in &fragments {
            path_counters.on_sent(Body::Datagram(*fragment).wire_bytes());
        }
        if fragments.is_empty() {
            path_counters.on_sent(packet.body.wire_bytes());
        }
    }

    /// Payload for which an application waits, or a SYN-ACK, has arrived at an end.
    #[inline(never)]
    pub(super) fn on_received(&mut self, now: Instant, end: EndId, received: Received) {
        let flow_index = end.flow();
        match received {
            Received::Managed => self.on_managed(now, flow_index),
            Received::SynAck => {
                let flow = &self.flows[flow_index as usize];
                if let Ends::Tcp([client, _]) = &flow.ends {
                    self.counters.handshakes.on_syn_ack(now, flow_index, flow.row, client);
                }
            }
            // An upstream connection has no application: its messages belong to those of the
            // members.
            Received::PayloadReady if self.aggregators.upstream_index(flow_index).is_some() => {
                self.on_delivered(now, flow_index);
            }
            Received::PayloadReady if self.flows[flow_index as usize].has_outbox() => {
                self.on_one_way_payload(now, flow_index);
            }
            Received::PayloadReady => self.on_payload(now, end),
            Received::Other => {}
        }
    }

    /// Payload has arrived at the `to` end, whose application does not respond: its deadline stays
    /// the same.
    #[inline]
    fn on_one_way_payload(&mut self, now: Instant, flow_index: u32) {
        let to = EndId::of(flow_index, FlowEnd::To);
        loop {
            let flow = &mut self.flows[flow_index as usize];
            let row = flow.row;
            let Some(message) = flow.pop_delivered(&mut self.in_flight) else { return };
            let is_last = !flow.has_payload_ready();
            let is_altered = self.alterations.take_delivered(to, message.id);
            let message = ArrivedMessage { row, flow: flow_index, ready: message.at, is_altered };
            self.on_message(now, &message);
            if is_last {
                return;
            }
        }
    }

    /// Payload has arrived for which an application waits.
    #[cold]
    fn on_payload(&mut self, now: Instant, end: EndId) {
        let flow_index = end.flow();
        let side = end.end();
        loop {
            let flow = &mut self.flows[flow_index as usize];
            let row = flow.row;
            let Some(message) = flow.poll_delivered(now, side, &mut self.in_flight) else { break };
            let is_altered = match side {
                FlowEnd::To => self.alterations.take_delivered(end, message.id),
                // A response: it or its request may have been altered.
                FlowEnd::From => [end, end.peer()]
                    .map(|end| self.alterations.take_delivered(end, u64::MAX))
                    .contains(&true),
            };
            let message = ArrivedMessage { row, flow: flow_index, ready: message.at, is_altered };
            self.on_message(now, &message);
        }
        let next = self.flows[flow_index as usize].next_deadline();
        self.net.events.schedule(Target::App(flow_index), next);
    }

    /// A message has arrived completely.
    pub(super) fn on_message(&mut self, now: Instant, message: &ArrivedMessage) {
        let ArrivedMessage { row, flow, ready, is_altered } = *message;
        let delay: Duration = now.since(ready);
        self.external.on_delivered(now, row, flow, MessageFate::delivered(is_altered));
        self.counters.on_delivered(message, delay);
        if let Some(recorder) = &mut self.recorder {
            recorder.on_message(ready, row, flow, delay);
        }
    }
}
