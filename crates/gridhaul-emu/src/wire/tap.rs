//! The packets that are offered to one direction, for Wireshark.

use gridhaul_scenario::answer::Capture;
use gridhaul_scenario::units::Instant;

/// Writes packets down as they enter a link.
#[derive(Debug)]
pub(crate) struct Tap {
    capture: Capture,
    packets: usize,
}

/// Bytes of a packet that are kept: room for all headers.
const SNAP: usize = 128;

impl Tap {
    /// For a direction of this name.
    pub(crate) fn new(name: &str) -> Self {
        Self { capture: Capture::new(name), packets: 0 }
    }

    pub(crate) fn on_offered(&mut self, now: Instant, packet: &[u8]) {
        if self.packets < Capture::PACKETS_MAX {
            self.packets += 1;
            self.capture.push(now, &packet[..packet.len().min(SNAP)], packet.len() as u32);
        }
    }

    pub(crate) fn into_capture(self) -> Capture {
        self.capture
    }
}
