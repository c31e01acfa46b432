//! Settings of TCP in user space, and causes of dropped packets.

use std::net::SocketAddr;

/// Settings of TCP in user space.
#[derive(Debug, Clone)]
pub struct UserTcpSettings {
    /// Addresses at which connections are accepted.
    pub listeners: Vec<SocketAddr>,
    /// Largest packet of the device in bytes.
    pub mtu: u32,
    /// Receive window of each connection in bytes.
    pub receive_window: u32,
    /// Largest number of connections, including those whose handshake is not complete.
    pub connections_max: usize,
    /// Largest number of connections whose handshake is not complete.
    pub half_open_max: usize,
    /// Whether no data is sent to meters: their connections need less memory then.
    pub receive_only: bool,
    /// Secret of the initial sequence numbers (RFC 6528): random, and different in each run.
    pub secret: [u64; 2],
}

/// Why a packet was dropped without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropCause {
    /// The packet's destination is not an address of a listener.
    Address,
    /// A checksum is wrong.
    Checksum,
    /// A fragment: those of packets for other hosts are not reassembled by the kernel.
    Fragment,
    /// SYN while the table of connections is full, or while no connection is accepted.
    Full,
    /// A header is malformed.
    Malformed,
    /// Another protocol than TCP.
    Protocol,
    /// A source address that is none of a host.
    Source,
}

impl DropCause {
    /// All causes.
    pub const ALL: [Self; 7] = [
        Self::Address,
        Self::Checksum,
        Self::Fragment,
        Self::Full,
        Self::Malformed,
        Self::Protocol,
        Self::Source,
    ];

    /// Name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Checksum => "checksum",
            Self::Fragment => "fragment",
            Self::Full => "full",
            Self::Malformed => "malformed",
            Self::Protocol => "protocol",
            Self::Source => "source",
        }
    }
}
