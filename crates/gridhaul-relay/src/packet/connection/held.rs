//! The packet of an acknowledgement that `ack` delays, because a newer one may replace it.

use gridhaul_core::tcp::Segment;
use gridhaul_core::wire::EthernetHeader;

use super::Arrival;

/// An acknowledgement that waits: it is sent with all its options.
#[derive(Debug)]
pub(super) struct HeldAcknowledgement {
    pub(super) segment: Segment,
    pub(super) ethernet: EthernetHeader,
    /// The packet, complete with its checksum.
    pub(super) packet: Vec<u8>,
}

impl HeldAcknowledgement {
    pub(super) fn of(segment: &Segment, arrival: &Arrival<'_>) -> Self {
        let mut packet = Vec::new();
        match &arrival.part {
            Some(part) => part.segmenter.write(part.index, &mut packet),
            None => packet.extend_from_slice(arrival.frame.packet),
        }
        Self { segment: *segment, ethernet: arrival.frame.ethernet, packet }
    }
}
