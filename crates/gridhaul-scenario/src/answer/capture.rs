//! Recorded packets.

use super::RecordedBytes;

/// Packets of one direction of a link, as a pcapng file.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// File name without its extension.
    pub name: String,
    /// The pcapng file.
    pub pcapng: RecordedBytes,
    /// Packets after the largest number that a capture holds.
    pub omitted_packets: u64,
}
