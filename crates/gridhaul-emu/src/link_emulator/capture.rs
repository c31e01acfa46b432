//! Capture of the packets that are offered to one direction of a link (pcapng).

use std::io;

use gridhaul_data::pcapng::PcapngWriter;
use gridhaul_scenario::answer::Capture;
use gridhaul_scenario::units::Instant;

/// Captures packets as they enter a link.
#[derive(Debug)]
pub(crate) struct CaptureWriter {
    writer: PcapngWriter,
}

/// Snapshot length in bytes: sufficient for all headers.
const SNAPSHOT_LENGTH: usize = 128;

impl CaptureWriter {
    /// For a direction of this name. Packets are kept in memory, since writing to a disk may delay
    /// the emulation.
    pub(crate) fn new(name: &str) -> Self {
        Self { writer: PcapngWriter::new(name, None) }
    }

    pub(crate) fn on_offered(&mut self, now: Instant, packet: &[u8]) {
        if self.writer.offer() {
            self.writer.push(
                now,
                &packet[..packet.len().min(SNAPSHOT_LENGTH)],
                packet.len() as u32,
            );
        }
    }

    pub(crate) fn into_capture(self) -> io::Result<Capture> {
        self.writer.into_capture()
    }
}
