//! Errors of a capture file.

use thiserror::Error;

/// An error in a capture file: what was found at which byte, and the remedy.
#[derive(Debug, Error)]
#[error("{file}: byte {offset}: {message}\n  help: {help}")]
pub struct CaptureError {
    /// Name of the file.
    pub file: String,
    /// Offset of the block or record in the file.
    pub offset: u64,
    /// The error, and the expected contents.
    pub message: String,
    /// The remedy.
    pub help: &'static str,
}

impl CaptureError {
    /// The remedy for a file that ends within a block.
    pub(crate) const TRUNCATED: &'static str =
        "copy the file again, or cut the incomplete packet off with `editcap FILE NEW`";
    /// The remedy for another format.
    pub(crate) const FORMAT: &'static str =
        "give a capture of tcpdump, dumpcap or Wireshark (pcap or pcapng, not compressed)";
    /// The remedy for a file whose bytes the system cannot read.
    pub(crate) const UNREADABLE: &'static str =
        "copy the file to another disk, or check the disk or the program that writes the pipe";
    /// The remedy for a damaged file.
    pub(crate) const DAMAGED: &'static str =
        "capture again, or repair the file with `pcapfix` or `editcap`";
    /// The remedy for times in a unit whose number in a second exceeds 64 bits.
    pub(crate) const UNIT: &'static str =
        "write the file in another unit, such as with `editcap -F nsecpcap FILE NEW`";
}
