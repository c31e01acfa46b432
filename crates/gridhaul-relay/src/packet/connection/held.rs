//! The packet of an acknowledgement that waits for a newer one.

use gridhaul_core::tcp::Segment;
use gridhaul_core::wire::EthernetHeader;

use super::super::content::TcpFrame;

/// An acknowledgement that waits: it is sent with all its options.
#[derive(Debug)]
pub(super) struct HeldAcknowledgement {
    pub(super) segment: Segment,
    ethernet: EthernetHeader,
    packet: Vec<u8>,
}

impl HeldAcknowledgement {
    pub(super) fn of(segment: &Segment, frame: &TcpFrame<'_>) -> Self {
        Self { segment: *segment, ethernet: frame.ethernet, packet: frame.packet.to_vec() }
    }

    /// The packet as it has arrived.
    pub(super) fn frame(&self) -> Option<TcpFrame<'_>> {
        TcpFrame::with_packet(self.ethernet, &self.packet)
    }
}
