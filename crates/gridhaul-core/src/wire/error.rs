//! Errors of parsing and writing packets.

use std::fmt;

/// The codec rejects a packet, because of the reported field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The packet ends before the header does, or before the end stated by a length field.
    #[error("{layer}: truncated, expected {expected} bytes, found {found}")]
    Truncated {
        /// The truncated layer.
        layer: Layer,
        /// Minimum number of bytes.
        expected: usize,
        /// Available bytes.
        found: usize,
    },
    /// The version field of the IP header.
    #[error("IP version field: expected 4 or 6, found {0}")]
    IpVersion(u8),
    /// A length field smaller than the header that it covers: IHL or total length of IPv4, the data
    /// offset of TCP, the length of UDP. In bytes.
    #[error("{layer}: length field states {stated} bytes, less than the header has")]
    Length {
        /// The layer of the length field.
        layer: Layer,
        /// Value of the length field, in bytes.
        stated: usize,
    },
    /// A wrong checksum.
    #[error("{0}: wrong checksum")]
    Checksum(Layer),
    /// A fragment of a packet (RFC 791, section 3.2; RFC 8200, section 4.5).
    #[error("fragment of an IP packet")]
    Fragment,
    /// The packet's protocol does not support the operation.
    #[error("IP protocol field: {0} is not supported here")]
    Protocol(u8),
    /// An option of TCP whose length field does not fit its kind, or points beyond the header.
    #[error("TCP option {kind}: wrong length {length}")]
    OptionLength {
        /// Kind of the option.
        kind: u8,
        /// Its length field; 0 where the header ends before it.
        length: u8,
    },
    /// TCP options of more than 40 bytes.
    #[error("TCP options: {0} bytes, at most 40 fit")]
    OptionsTooLong(usize),
    /// The TCP header has no option of this kind.
    #[error("TCP option {0}: not in the header")]
    OptionMissing(u8),
    /// A packet too long for its length field.
    #[error("{layer}: a length of {bytes} bytes does not fit the length field")]
    TooLong {
        /// The layer of the length field.
        layer: Layer,
        /// Length of the packet in bytes.
        bytes: usize,
    },
    /// Addresses of different versions of IP.
    #[error("IP addresses: source and destination differ in version")]
    MixedAddresses,
}

/// A header that the codec parses and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Ethernet II (IEEE 802.3).
    Ethernet,
    /// A tag of IEEE 802.1Q.
    Vlan,
    /// RFC 791.
    Ipv4,
    /// RFC 8200.
    Ipv6,
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ethernet => "Ethernet header",
            Self::Vlan => "VLAN tag",
            Self::Ipv4 => "IPv4 header",
            Self::Ipv6 => "IPv6 header",
            Self::Tcp => "TCP header",
            Self::Udp => "UDP header",
        })
    }
}
