//! Packets of datagrams that are larger than the MTU of a link.

use gridhaul_scenario::units::Instant;

use super::World;
use crate::fragmentation::Reassembled;
use crate::packet::{Body, Datagram, Packet};

impl World {
    /// Forwards the fragments of a packet, or drops a segment that is too large; false if the
    /// packet fits into the MTU of its next link.
    #[cold]
    pub(super) fn forward_oversized(&mut self, now: Instant, packet: &Packet) -> bool {
        if let Body::Tcp(segment) = &packet.body {
            return self.drop_oversized(now, packet, segment);
        }
        let fragments = self.fragments(packet);
        for fragment in &fragments {
            self.forward(now, Packet { body: Body::Datagram(*fragment), ..*packet });
        }
        !fragments.is_empty()
    }

    /// The fragments of a packet for its next link; none if the packet fits.
    pub(super) fn fragments(&self, packet: &Packet) -> Vec<Datagram> {
        let route = &self.net.routes[packet.next as usize..];
        match (&self.fragmentation, &packet.body) {
            (Some(links), Body::Datagram(datagram)) => links.fragments(datagram, route),
            _ => Vec::new(),
        }
    }

    /// The datagram of a packet that has arrived at its destination, unless other fragments are
    /// missing.
    pub(super) fn reassemble(&mut self, packet: &Packet, datagram: Datagram) -> Option<Datagram> {
        let Some(links) = &mut self.fragmentation else { return Some(datagram) };
        match links.on_arrived(packet, &datagram) {
            Reassembled::Complete(whole) => Some(whole),
            Reassembled::Waiting => None,
        }
    }
}
