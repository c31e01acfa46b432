//! Errors of the relay.

use std::io;

use gridhaul_core::pep::Side;
use gridhaul_core::wire::WireError;
use thiserror::Error;

/// A failure that ends the forwarding of packets.
#[derive(Debug, Error)]
pub enum Error {
    /// A system call has failed.
    #[error(transparent)]
    Linux(#[from] gridhaul_linux::Error),
    /// An interface cannot receive or send frames.
    #[error("network interface on the {side:?} side: {source}")]
    Interface {
        /// Side of the connection to which the interface leads.
        side: Side,
        /// The kernel's error.
        source: io::Error,
    },
    /// A packet of the proxy cannot be written.
    #[error("cannot write a packet of the proxy: {0}")]
    Wire(#[from] WireError),
    /// The proxy sends payload that is not in the store, which is a bug in gridhaul.
    #[error("the proxy sends {len} bytes from sequence number {seq}, which are not in the store")]
    PayloadMissing {
        /// Sequence number of the first byte.
        seq: u32,
        /// Number of bytes.
        len: u32,
    },
    /// The proxy rewrites a packet that has not just arrived, which is a bug in gridhaul.
    #[error("the proxy rewrites a packet although none has just arrived from that side")]
    PacketMissing,
}
