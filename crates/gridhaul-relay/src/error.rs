//! Errors of forwarding.

use std::io;

use gridhaul_core::pep::Side;
use gridhaul_core::wire::WireError;
use thiserror::Error;

/// A failure that ends the forwarding of packets.
#[derive(Debug, Error)]
pub enum Error {
    /// A call into the kernel.
    #[error(transparent)]
    Linux(#[from] gridhaul_linux::Error),
    /// An interface does not receive or send frames.
    #[error("the interface towards the {side:?} host: {source}")]
    Interface {
        /// Host to which the interface leads.
        side: Side,
        /// The kernel's error.
        source: io::Error,
    },
    /// A packet of the proxy cannot be written.
    #[error("writing a packet of the proxy: {0}")]
    Wire(#[from] WireError),
    /// The proxy sends payload that is not in the store, which is a fault of gridhaul.
    #[error("the proxy sends {len} bytes from sequence number {seq}, which are not in the store")]
    PayloadMissing {
        /// Sequence number of the first byte.
        seq: u32,
        /// Number of bytes.
        len: u32,
    },
    /// The proxy rewrites a packet that has not just arrived, which is a fault of gridhaul.
    #[error("the proxy rewrites a packet, and none has just arrived from that side")]
    PacketMissing,
}
