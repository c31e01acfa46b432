//! Events at aggregators: arriving segments, complete messages, upstream transmissions.

use gridhaul_core::link::LossCause;
use gridhaul_core::load::{Application, InFlightMessages};
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::Aggregators;
use crate::alterations::Alterations;
use crate::counters::RunCounters;
use crate::end_id::EndId;
use crate::flow::{Ends, Flow, Received};
use crate::waiting_message::WaitingMessage;

/// The state of a run that aggregators read and change. The caller has connections transmit.
pub(crate) struct Context<'a> {
    pub aggregators: &'a mut Aggregators,
    pub flows: &'a mut [Flow],
    pub in_flight: &'a mut InFlightMessages,
    pub counters: &'a mut RunCounters,
    pub alterations: &'a mut Alterations,
}

impl Context<'_> {
    /// A segment with data has reached an aggregator. Returns the connection ends that may now have
    /// segments to send, in this order.
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        to: EndId,
        segment: &Segment,
        sent: Instant,
    ) -> [Option<EndId>; 2] {
        let flow_index = to.flow();
        let row = self.flows[flow_index as usize].row as usize;
        let is_altered = self.alterations.on_arrived(to, segment, sent);
        let Some(accepted) = self.admit(now, flow_index, segment) else {
            // The sender retransmits the segment as if a queue had dropped it.
            self.counters.on_segment_lost(row as u32, flow_index, segment, LossCause::Queue);
            return [None, None];
        };
        self.counters.path_counters[row].on_arrived(now.since(sent));
        let flow = &mut self.flows[flow_index as usize];
        let before = flow.received();
        if is_altered && let Ends::Tcp(ends) = &flow.ends {
            self.alterations.on_accepted(to, &accepted, &ends[to.side()]);
        }
        let totals = &mut self.counters.rows[row];
        let received = flow.on_segment(now, to, (&accepted, segment.wire_bytes()), totals);
        let new_bytes = flow.received() - before;
        let stream_end = flow.received();
        let (node, slot) = self.aggregators.slot_of(flow_index);
        self.aggregators.nodes[node].audit.on_accepted(new_bytes);
        let upstream = if received == Received::PayloadReady {
            self.on_complete_message(now, flow_index)
        } else {
            None
        };
        let aggregator = &mut self.aggregators.nodes[node].aggregator;
        aggregator.handle_received(now, (flow_index, slot), stream_end);
        [upstream, Some(to)]
    }

    /// The part of a segment for which the buffer has space.
    fn admit(&mut self, now: Instant, flow_index: u32, segment: &Segment) -> Option<Segment> {
        let flow = &self.flows[flow_index as usize];
        let Ends::Tcp(ends) = &flow.ends else { return None };
        // A segment without new data needs no buffer space.
        let Some(data) = ends[1].incoming(segment) else { return Some(*segment) };
        let next = ends[1].receiver().delivered();
        let (node, slot) = self.aggregators.slot_of(flow_index);
        let connection = self.aggregators.upstream_index(flow_index);
        let aggregator = &mut self.aggregators.nodes[node].aggregator;
        let member = (flow_index, slot);
        let until = match (flow.app.as_ref().and_then(Application::outbox), connection) {
            (Some(outbox), _) => {
                aggregator.admit(now, member, data.clone(), next, outbox.ends(self.in_flight))
            }
            (_, Some(connection)) => {
                let ends = self.aggregators.connections[connection]
                    .messages
                    .iter()
                    .map(|message| message.end);
                aggregator.admit(now, member, data.clone(), next, ends)
            }
            _ => {
                let chunks = flow.chunks(flow.notify_at);
                aggregator.admit(now, member, data.clone(), next, chunks)
            }
        };
        if until == data.end {
            return Some(*segment);
        }
        if until <= data.start.max(next) {
            return None;
        }
        let len = (until - data.start) as u32;
        Some(Segment { len, flags: segment.flags.without(Flags::FIN), ..*segment })
    }

    /// An aggregator has complete messages of a flow. Writes them to the upstream connection, of
    /// which the sending end is returned.
    fn on_complete_message(&mut self, now: Instant, flow_index: u32) -> Option<EndId> {
        let index = self.aggregators.upstream_after(flow_index)?;
        let (node, slot) = self.aggregators.slot_of(flow_index);
        let mut bytes = 0;
        while let Some(message) = self.next_complete(flow_index) {
            let Aggregators { nodes, connections, .. } = &mut *self.aggregators;
            let size = nodes[node].aggregator.handle_message(now, (flow_index, slot), message.end);
            let end = nodes[node].aggregator.written(slot);
            let message = WaitingMessage { end, ..message };
            nodes[node].audit.on_message(slot, &message, size);
            connections[index as usize].messages.push_back(message);
            bytes += size;
        }
        let upstream_index = self.aggregators.first_flow + index;
        let first = self.aggregators.connections[index as usize].messages.front();
        let upstream = &mut self.flows[upstream_index as usize];
        upstream.notify_at = first.map_or(u64::MAX, |message| message.end);
        if let Ends::Tcp(ends) = &mut upstream.ends {
            self.counters.handshakes.on_use(now, upstream_index, &ends[0]);
            ends[0].write(bytes);
        }
        Some(EndId::of(upstream_index, FlowEnd::From))
    }

    /// The next message that the receiving end of a flow has completely, with its end in the flow's
    /// stream.
    fn next_complete(&mut self, flow_index: u32) -> Option<WaitingMessage> {
        let flow = &mut self.flows[flow_index as usize];
        let receiver = EndId::of(flow_index, FlowEnd::To);
        let delivered = flow.received();
        let end = flow.notify_at;
        if end > delivered {
            return None;
        }
        if let Some(connection) = self.aggregators.upstream_index(flow_index) {
            let connection = &mut self.aggregators.connections[connection];
            let mut message = connection.messages.pop_front()?;
            message.is_altered |= self.alterations.take_delivered(receiver, message.end);
            flow.notify_at = connection.messages.front().map_or(u64::MAX, |message| message.end);
            let size = message.end - std::mem::replace(&mut connection.delivered, message.end);
            let (node, slot) = (connection.node as usize, connection.slot as usize);
            self.aggregators.nodes[node].audit.on_delivered(slot, &message, size);
            return Some(message);
        }
        let mut ready = Instant::NEVER;
        match flow.app.as_mut().and_then(Application::outbox_mut) {
            Some(outbox) => {
                ready = outbox.pop(delivered, self.in_flight)?.at;
                flow.notify_at = outbox.watch(self.in_flight);
            }
            None => {
                flow.notify_at = flow.chunks(end).nth(1).unwrap_or(u64::MAX);
                if flow.notify_at == u64::MAX
                    && let Ends::Tcp(ends) = &mut flow.ends
                {
                    ends[1].close();
                }
            }
        }
        let is_altered = self.alterations.take_delivered(receiver, end);
        Some(WaitingMessage { end, ready, origin: flow_index, is_altered })
    }

    /// Returns a message, or chunk of a byte stream, that has completely arrived over an upstream
    /// connection at its destination.
    pub(crate) fn poll_delivered(
        &mut self,
        now: Instant,
        flow_index: u32,
    ) -> Option<WaitingMessage> {
        let connection = self.aggregators.upstream_index(flow_index)?;
        let previous_end = self.aggregators.connections[connection].delivered;
        let message = self.next_complete(flow_index)?;
        let origin = &mut self.flows[message.origin as usize];
        let delivered = &mut self.counters.indirect_payload[message.origin as usize];
        *delivered += message.end - previous_end;
        if let Some(transfer) = origin.app.as_mut().and_then(Application::transfer_mut)
            && *delivered == transfer.bytes
        {
            transfer.completed = now;
        }
        Some(message)
    }

    /// An upstream connection may have sent data or received acknowledgements.
    pub(crate) fn on_transmitted(&mut self, now: Instant, flow_index: u32) {
        let Some(upstream) = self.upstream(flow_index) else { return };
        let node = &mut self.aggregators.nodes[upstream.node];
        node.audit.on_sent(upstream.slot, upstream.sent);
        node.aggregator.handle_acknowledged(now, upstream.slot, upstream.acknowledged);
    }

    /// Frees the buffer space of messages that the upstream connection has sent. Returns an end
    /// whose receive window this has opened, and which may have to send an acknowledgement; `None`
    /// when none is left.
    pub(crate) fn poll_departed(&mut self, now: Instant, flow_index: u32) -> Option<EndId> {
        let UpstreamProgress { node, slot, sent, .. } = self.upstream(flow_index)?;
        let node = &mut self.aggregators.nodes[node];
        while let Some(departed) = node.aggregator.poll_departed(now, slot, sent) {
            let member = &mut self.flows[departed.connection as usize];
            self.counters.path_counters[member.row as usize].on_aggregator_wait(departed.waited);
            if node.backpressure
                && let Ends::Tcp(ends) = &mut member.ends
            {
                ends[1].read(departed.bytes);
                return Some(EndId::of(departed.connection, FlowEnd::To));
            }
        }
        None
    }

    fn upstream(&self, flow_index: u32) -> Option<UpstreamProgress> {
        let connection =
            &self.aggregators.connections[self.aggregators.upstream_index(flow_index)?];
        let Ends::Tcp(ends) = &self.flows[flow_index as usize].ends else { return None };
        let (next, una) = ends[0].sent_and_acknowledged();
        Some(UpstreamProgress {
            node: connection.node as usize,
            slot: connection.slot as usize,
            // Position 0 is the SYN.
            sent: next.saturating_sub(1),
            acknowledged: una.saturating_sub(1),
        })
    }
}

/// An upstream connection: its index at the aggregator, and bytes of payload sent and acknowledged.
struct UpstreamProgress {
    node: usize,
    slot: usize,
    sent: u64,
    acknowledged: u64,
}

impl Aggregators {
    /// The aggregator at which a flow ends, and the index of the upstream connection there.
    fn slot_of(&self, flow: u32) -> (usize, usize) {
        let connection = &self.connections[self.forwarded_by[flow as usize] as usize];
        (connection.node as usize, connection.slot as usize)
    }
}
