//! Recorded packets.

/// Packets of one direction of a link, as a pcapng file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// File name without its extension.
    pub name: String,
    /// The pcapng file.
    pub pcapng: Vec<u8>,
}
