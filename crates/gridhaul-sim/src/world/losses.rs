//! Lost packets.

use gridhaul_core::link::{DropReason, LossCause};
use gridhaul_core::tcp::LinkEvent;
use gridhaul_scenario::answer::LossReason;
use gridhaul_scenario::units::Instant;

use super::World;
use crate::external_messages::MessageFate;
use crate::flow::Ends;
use crate::packet::{Body, Packet};

impl World {
    /// A packet is lost.
    pub(super) fn on_lost(&mut self, now: Instant, packet: &Packet, reason: LossReason) {
        let flow = &mut self.flows[packet.flow() as usize];
        let cause = match reason {
            LossReason::QueueFull | LossReason::Aqm => LossCause::Queue,
            _ => LossCause::Error,
        };
        match &packet.body {
            Body::Datagram(datagram) => {
                self.counters.on_datagram_lost(flow.row, datagram.number);
                let (row, fate) = (flow.row, MessageFate::Lost(reason));
                self.external.on_datagram_ended(now, row, datagram.number, fate);
            }
            Body::Tcp(segment) => {
                if segment.len > 0 && !packet.is_reverse() {
                    self.counters.on_segment_lost(flow.row, packet.flow(), segment, cause);
                    if self.counters.loss_causes.needs_reports() {
                        self.report_to_sender(packet, LinkEvent::Lost(cause));
                    }
                }
            }
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
    }
}
