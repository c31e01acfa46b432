//! Prefixes of IP addresses.

use std::fmt;
use std::net::IpAddr;

/// A prefix of IP addresses in CIDR notation (RFC 4632; RFC 4291, section 2.3), such as
/// `10.3.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpPrefix {
    /// The address; bits after the prefix are zero where the prefix is a destination.
    pub address: IpAddr,
    /// Length of the prefix in bits: up to 32 (IPv4) or 128 (IPv6).
    pub length: u8,
}

impl IpPrefix {
    /// The prefix that contains this address alone.
    #[must_use]
    pub const fn host(address: IpAddr) -> Self {
        let length = if address.is_ipv6() { 128 } else { 32 };
        Self { address, length }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}
