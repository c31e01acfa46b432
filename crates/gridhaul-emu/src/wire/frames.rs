//! Packets inside the emulator: their bytes stand in one place, links carry their numbers.

use gridhaul_core::link::LinkPayload;

use super::packet::Header;

/// A packet as links carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its place among the frames.
    pub place: u32,
    /// Flow, member and end, for queues that take flows in turn.
    flow: u64,
}

impl LinkPayload for Frame {
    fn flow(&self) -> u64 {
        self.flow
    }
}

/// The packets that are inside. Places are used again, with their memory.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    kept: Vec<(Header, Vec<u8>)>,
    free: Vec<u32>,
}

impl Frames {
    /// Keeps a packet.
    pub(crate) fn keep(&mut self, header: Header, bytes: &[u8]) -> Frame {
        let place = self.free.pop().unwrap_or_else(|| {
            self.kept.push((header, Vec::new()));
            self.kept.len() as u32 - 1
        });
        let slot = &mut self.kept[place as usize];
        slot.0 = header;
        slot.1.clear();
        slot.1.extend_from_slice(bytes);
        Frame { place, flow: header.flow_key() }
    }

    /// What is known of a packet, and its bytes.
    pub(crate) fn get_mut(&mut self, place: u32) -> (&Header, &mut [u8]) {
        let (header, bytes) = &mut self.kept[place as usize];
        (header, bytes)
    }

    /// What is known of a packet.
    pub(crate) fn header(&self, place: u32) -> &Header {
        &self.kept[place as usize].0
    }

    /// Lets go of a packet.
    pub(crate) fn release(&mut self, place: u32) {
        self.free.push(place);
    }
}
