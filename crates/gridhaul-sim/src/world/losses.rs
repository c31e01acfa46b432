//! Lost packets, and messages that have not arrived at the end of a run.

use gridhaul_core::link::{DropReason, LossCause};
use gridhaul_core::tcp::{LinkEvent, State};
use gridhaul_scenario::answer::{LossReason, LostMessage};
use gridhaul_scenario::units::Instant;

use super::World;
use crate::external_messages::MessageFate;
use crate::flow::Ends;
use crate::packet::{Body, Packet};
use crate::recorder::Recorder;

impl World {
    /// A packet is lost.
    pub(super) fn on_lost(&mut self, now: Instant, packet: &Packet, reason: LossReason) {
        if let Body::Probe(probe) = &packet.body {
            self.hybrid_routers.on_lost(probe.id);
            return;
        }
        if let (Some(links), Body::Datagram(datagram)) = (&mut self.fragmentation, &packet.body)
            && !links.on_lost(packet, datagram)
        {
            return;
        }
        if matches!(packet.body, Body::PacketTooBig(_)) {
            // The next packet that is too big causes another report.
            return;
        }
        let flow = &mut self.flows[packet.flow() as usize];
        if matches!(flow.ends, Ends::Coap(_)) {
            // The ends retransmit their datagrams.
            return;
        }
        let cause = match reason {
            LossReason::QueueFull | LossReason::Aqm => LossCause::Queue,
            _ => LossCause::Error,
        };
        match &packet.body {
            Body::Datagram(datagram) => {
                self.counters.on_datagram_lost(flow.row, datagram.number, datagram.ready);
                let (row, fate) = (flow.row, MessageFate::Lost(reason));
                self.external.on_datagram_ended(now, row, datagram.number, fate);
                if let Some(recorder) = &mut self.recorder {
                    let message = LostMessage {
                        ready: datagram.ready,
                        flow: row,
                        member: recorder.member(row, packet.flow()),
                        lost: Some(now),
                        reason,
                    };
                    recorder.on_datagram_lost(datagram.number, message);
                }
            }
            Body::Tcp(segment) => {
                if segment.len > 0 && !packet.is_reverse() {
                    self.counters.on_segment_lost(flow.row, packet.flow(), segment, cause);
                    if self.counters.loss_causes.needs_reports() {
                        self.report_to_sender(packet, LinkEvent::Lost(cause));
                    }
                }
            }
            Body::Probe(_) | Body::PacketTooBig(_) => {}
        }
    }

    /// Reports an event of a data segment on a link to its sender.
    #[cold]
    pub(super) fn report_to_sender(&mut self, packet: &Packet, event: LinkEvent) {
        let flow = &mut self.flows[packet.flow() as usize];
        if let (Body::Tcp(segment), Ends::Tcp(ends)) = (&packet.body, &mut flow.ends)
            && segment.len > 0
            && !packet.is_reverse()
        {
            ends[0].handle_link_report(segment.seq, segment.len, packet.sent, event);
        }
    }

    /// The recorder at the end of the run, with the messages that have not arrived.
    pub(crate) fn take_recorder(&mut self) -> Option<Recorder> {
        let mut recorder = self.recorder.take()?;
        recorder.retain_losses(|row, number| self.counters.is_missing(row, number));
        for message in recorder.take_given_up() {
            self.record_undelivered(&mut recorder, message);
        }
        for (number, flow) in (0..).zip(&self.flows) {
            let Some(app) = &flow.app else { continue };
            let reason = self.reason_of_undelivered(number);
            for ready in app.undelivered(&self.in_flight).chain(flow.unconfirmed()) {
                let (row, member) = (flow.row, recorder.member(flow.row, number));
                let message = LostMessage { ready, flow: row, member, lost: None, reason };
                self.record_undelivered(&mut recorder, message);
            }
        }
        let first = self.aggregators.first_flow as usize;
        for (index, connection) in self.aggregators.connections.iter().enumerate() {
            let reason = self.reason_of_undelivered((first + index) as u32);
            for message in &connection.messages {
                // The chunks of a byte stream are no messages.
                if message.ready != Instant::NEVER {
                    let row = self.flows[message.origin as usize].row;
                    let (ready, member) = (message.ready, recorder.member(row, message.origin));
                    let message = LostMessage { ready, flow: row, member, lost: None, reason };
                    recorder.on_undelivered(message);
                }
            }
        }
        Some(recorder)
    }

    /// Records a message that has not arrived, for its own flow and for those that would have
    /// forwarded it.
    fn record_undelivered(&self, recorder: &mut Recorder, message: LostMessage) {
        recorder.on_undelivered(message);
        for subscription in &self.counters.subscriptions {
            if subscription.publications == message.flow {
                let flow = subscription.row;
                recorder.on_undelivered(LostMessage { flow, member: 0, ..message });
            }
        }
    }

    /// Why a message of the connection of a flow has not arrived at the end of the run.
    fn reason_of_undelivered(&self, flow: u32) -> LossReason {
        if self.aggregators.has_failed_to_open(&self.flows, flow) {
            return LossReason::ConnectionFailed;
        }
        match &self.flows[flow as usize].ends {
            Ends::Tcp([client, _])
                if client.state() == State::Closed && client.receiver().next() > 0 =>
            {
                LossReason::ConnectionClosed
            }
            _ => LossReason::Unfinished,
        }
    }
}

/// The reason for which a link has dropped a packet.
pub(super) const fn reason(reason: DropReason) -> LossReason {
    match reason {
        DropReason::QueueFull => LossReason::QueueFull,
        DropReason::Aqm => LossReason::Aqm,
        DropReason::Loss => LossReason::Loss,
        DropReason::Outage => LossReason::Outage,
        DropReason::Shadowing => LossReason::Shadowing,
        DropReason::Noise => LossReason::Noise,
        DropReason::Collision => LossReason::Collision,
        DropReason::Attack => LossReason::Attack,
    }
}
