//! Events of flows with confirmable messages.

use gridhaul_core::load::{Arrival, CoapTransmission};
use gridhaul_scenario::answer::{LossReason, LostMessage};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::World;
use crate::counters::ArrivedMessage;
use crate::end_id::EndId;
use crate::events::Target;
use crate::flow::{Ends, Flow};
use crate::packet::{Body, Datagram, Packet};

impl World {
    /// A message of the load is ready, or a timer has expired.
    #[cold]
    pub(super) fn on_coap(&mut self, now: Instant, flow_index: u32) {
        while let Some((Some(arrival), _)) = self.flows[flow_index as usize].next_datagram(now) {
            self.push_coap(flow_index, arrival);
        }
        self.advance_coap(now, flow_index);
    }

    /// A message is ready. [`Self::advance_coap`] must follow.
    pub(super) fn push_coap(&mut self, flow_index: u32, arrival: Arrival) {
        let flow = &mut self.flows[flow_index as usize];
        let Ends::Coap(member) = &mut flow.ends else { return };
        member.push(arrival);
        self.counters.on_ready(flow.row, flow_index, arrival.at);
    }

    /// A datagram has arrived at an end. A record of DTLS that was altered is discarded.
    #[cold]
    pub(super) fn on_coap_datagram(&mut self, now: Instant, packet: &Packet, datagram: &Datagram) {
        let flow_index = packet.flow();
        let flow = &mut self.flows[flow_index as usize];
        let (row, is_altered) = (flow.row, datagram.is_altered);
        let Ends::Coap(member) = &mut flow.ends else { return };
        let Some(counters) = &mut self.counters.coap[row as usize] else { return };
        let Some(content) = datagram.coap.filter(|_| !(is_altered && member.has_dtls())) else {
            return;
        };
        let end = packet.to.end();
        if let Some(message) = member.handle_datagram(now, end, content, counters) {
            self.counters.indirect_payload[flow_index as usize] += message.bytes;
            let ready = message.ready;
            self.on_message(now, &ArrivedMessage { row, flow: flow_index, ready, is_altered });
        }
        self.advance_coap(now, flow_index);
    }

    /// Sends the datagrams that are due, and schedules the next event.
    pub(super) fn advance_coap(&mut self, now: Instant, flow_index: u32) {
        let flow = &mut self.flows[flow_index as usize];
        let row = flow.row as usize;
        if let (Ends::Coap(member), Some(counters)) = (&mut flow.ends, &mut self.counters.coap[row])
            && let Some(ready) = member.advance(now, counters)
            && let Some(recorder) = &mut self.recorder
        {
            let (row, lost, reason) = (flow.row, Some(now), LossReason::GivenUp);
            let member = recorder.member(row, flow_index);
            recorder.on_given_up(LostMessage { ready, flow: row, member, lost, reason });
        }
        while let Some(transmission) = self.poll_coap(flow_index) {
            self.send_coap(now, flow_index, transmission);
        }
        let flow = &self.flows[flow_index as usize];
        if let Flow { ends: Ends::Coap(member), .. } = flow {
            let deadline = member.next_deadline().min(flow.next_deadline());
            self.net.events.schedule(Target::App(flow_index), deadline);
        }
    }

    fn poll_coap(&mut self, flow_index: u32) -> Option<CoapTransmission> {
        match &mut self.flows[flow_index as usize].ends {
            Ends::Coap(member) => member.poll_transmit(),
            _ => None,
        }
    }

    fn send_coap(&mut self, now: Instant, flow_index: u32, transmission: CoapTransmission) {
        let CoapTransmission { end, datagram, bytes } = transmission;
        let flow = &self.flows[flow_index as usize];
        let (row, next) = (flow.row as usize, flow.routes[end as usize]);
        let Ends::Coap(member) = &flow.ends else { return };
        let header = member.headers();
        // The number identifies the fragments of a datagram.
        let number = self.counters.rows[row].datagrams as u32;
        self.counters.rows[row].datagrams += 1;
        let datagram = Datagram {
            bytes,
            header,
            is_altered: false,
            number,
            ready: now,
            fragment: None,
            coap: Some(datagram),
        };
        let to = EndId::of(flow_index, end).peer();
        let packet = Packet { to, next, sent: now, body: Body::Datagram(datagram) };
        if end == FlowEnd::From {
            self.count_sent(row, &packet);
        }
        self.forward(now, packet);
    }
}
