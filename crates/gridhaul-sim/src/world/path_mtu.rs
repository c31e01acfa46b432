//! Segments that exceed the MTU of their next link.

use gridhaul_core::link::LossCause;
use gridhaul_core::tcp::{LinkEvent, Segment};
use gridhaul_scenario::units::Instant;

use super::World;
use crate::end_id::EndId;
use crate::flow::Ends;
use crate::packet::{Body, Packet, PacketTooBigReport};

impl World {
    /// Drops a segment that exceeds the MTU of its next link, and reports the MTU to its sender,
    /// unless the link is a black hole. Returns false if the segment fits.
    pub(super) fn drop_oversized(
        &mut self,
        now: Instant,
        packet: &Packet,
        segment: &Segment,
    ) -> bool {
        let link = self.net.routes[packet.next as usize];
        let Some(links) = &self.fragmentation else { return false };
        let Some(mtu) = links.mtu_exceeded_by(segment, link) else { return false };
        let to = packet.to;
        let flow = &self.flows[to.flow() as usize];
        let (row, reverse) = (flow.row, flow.routes[to.side()]);
        let joins = links.return_path(link, &self.net.routes[reverse as usize..]);
        if segment.len > 0 && !packet.is_reverse() {
            let cause = LossCause::Error;
            self.counters.on_segment_lost(row, to.flow(), segment, cause);
            if self.counters.loss_causes.needs_reports() {
                self.report_to_sender(packet, LinkEvent::Lost(cause));
            }
        }
        if let (Some(joins), Some(links)) = (joins, &self.fragmentation) {
            let bytes = links.path_mtu.report_bytes(segment.wire_bytes(), row);
            let report = PacketTooBigReport { seq: segment.seq, mtu, bytes };
            let (body, next) = (Body::PacketTooBig(report), reverse + joins as u32);
            self.forward(now, Packet { to: to.peer(), next, sent: now, body });
        }
        true
    }

    /// A report has reached the sender of a segment.
    #[cold]
    pub(super) fn on_packet_too_big(
        &mut self,
        now: Instant,
        to: EndId,
        report: PacketTooBigReport,
    ) {
        if let Ends::Tcp(ends) = &mut self.flows[to.flow() as usize].ends {
            ends[to.side()].handle_packet_too_big(now, report.seq, report.mtu);
            self.transmit_ready::<false>(now, to);
        }
    }
}
