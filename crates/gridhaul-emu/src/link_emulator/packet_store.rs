//! Storage of the packets in the emulator; links carry their indices.

use gridhaul_core::link::{EcnCodePoint, LinkPayload};
use gridhaul_scenario::scenario::Dscp;

use super::packet_header::Header;

/// A packet as links carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredPacket {
    /// Index in the [`PacketStore`].
    pub index: u32,
    /// Flow, member and end, for fair queueing.
    flow: u64,
    dscp: Dscp,
    pub ecn: EcnCodePoint,
}

impl LinkPayload for StoredPacket {
    fn flow(&self) -> u64 {
        self.flow
    }

    /// A program that sets no code point sends 0; then that of the flow applies.
    fn code_point(&self) -> Option<Dscp> {
        (self.dscp != Dscp::default()).then_some(self.dscp)
    }

    fn ecn(&self) -> EcnCodePoint {
        self.ecn
    }

    /// The emulator writes the mark to the packet when it leaves the link.
    fn mark(&mut self) {
        self.ecn = EcnCodePoint::Ce;
    }
}

/// The packets in the emulator. Slots are reused with their memory.
#[derive(Debug, Default)]
pub(crate) struct PacketStore {
    packets: Vec<(Header, Vec<u8>)>,
    free: Vec<u32>,
}

impl PacketStore {
    /// Stores a copy of a packet.
    pub(crate) fn insert(&mut self, header: Header, bytes: &[u8]) -> StoredPacket {
        let index = self.free.pop().unwrap_or_else(|| {
            self.packets.push((header, Vec::new()));
            self.packets.len() as u32 - 1
        });
        let slot = &mut self.packets[index as usize];
        slot.0 = header;
        slot.1.clear();
        slot.1.extend_from_slice(bytes);
        let Header { dscp, ecn, .. } = header;
        StoredPacket { index, flow: header.flow_key(), dscp, ecn }
    }

    /// Header and bytes of a packet.
    pub(crate) fn get_mut(&mut self, index: u32) -> (&Header, &mut [u8]) {
        let (header, bytes) = &mut self.packets[index as usize];
        (header, bytes)
    }

    /// Header of a packet.
    pub(crate) fn header(&self, index: u32) -> &Header {
        &self.packets[index as usize].0
    }

    /// Releases the slot of a packet.
    pub(crate) fn release(&mut self, index: u32) {
        self.free.push(index);
    }
}
