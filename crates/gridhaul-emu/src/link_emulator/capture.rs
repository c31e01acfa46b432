//! The packets that are offered to one direction, for Wireshark.

use gridhaul_data::pcapng::PcapngWriter;
use gridhaul_scenario::answer::Capture;
use gridhaul_scenario::units::Instant;

/// Writes packets down as they enter a link.
#[derive(Debug)]
pub(crate) struct CaptureWriter {
    writer: PcapngWriter,
    packets: usize,
}

/// Bytes of a packet that are kept: room for all headers.
const SNAP: usize = 128;

impl CaptureWriter {
    /// For a direction of this name.
    pub(crate) fn new(name: &str) -> Self {
        Self { writer: PcapngWriter::new(name), packets: 0 }
    }

    pub(crate) fn on_offered(&mut self, now: Instant, packet: &[u8]) {
        if self.packets < PcapngWriter::PACKETS_MAX {
            self.packets += 1;
            self.writer.push(now, &packet[..packet.len().min(SNAP)], packet.len() as u32);
        }
    }

    pub(crate) fn into_capture(self) -> Capture {
        self.writer.into_capture()
    }
}
