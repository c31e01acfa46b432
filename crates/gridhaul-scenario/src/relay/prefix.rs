//! Prefixes of IP addresses.

use std::net::IpAddr;

/// A prefix of IP addresses in CIDR notation (RFC 4632; RFC 4291, section 2.3). A prefix of IPv4
/// addresses that are mapped to IPv6 (RFC 4291, section 2.5.5.2) is one of IPv4 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressPrefix {
    address: IpAddr,
    length: u8,
}

impl AddressPrefix {
    /// Reads a prefix such as `10.0.0.0/8`; an address alone is a prefix of its full length.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse_prefix(text).map(|(address, length)| Self { address, length })
    }

    /// Whether the prefix contains an address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let differing = match (self.address, address) {
            (IpAddr::V4(prefix), IpAddr::V4(address)) => {
                u128::from(prefix.to_bits() ^ address.to_bits()) << 96
            }
            (IpAddr::V6(prefix), IpAddr::V6(address)) => prefix.to_bits() ^ address.to_bits(),
            _ => return false,
        };
        self.length == 0 || differing >> (128 - u32::from(self.length)) == 0
    }
}

/// Error of an IP prefix.
pub(super) fn prefix_error(text: &str) -> Option<&'static str> {
    match parse_prefix(text) {
        None => Some("expected an IP prefix"),
        // Meters with IPv4 are known by their IPv4 address.
        Some((IpAddr::V6(ip), _)) if ip.to_ipv4_mapped().is_some() => {
            Some("expected an IPv4 prefix in the place of IPv6 addresses that are mapped")
        }
        Some(_) => None,
    }
}

/// Address and length of an IP prefix; an address alone is a prefix of its full length. A prefix of
/// IPv4 addresses that are mapped to IPv6 (RFC 4291, section 2.5.5.2) is one of IPv4 addresses.
pub(super) fn parse_prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let full = if address.is_ipv6() { 128 } else { 32 };
    let length: u8 = length.unwrap_or(full);
    match address {
        IpAddr::V6(ip) if (MAPPED..=full).contains(&length) && ip.to_ipv4_mapped().is_some() => {
            Some((address.to_canonical(), length - MAPPED))
        }
        _ => (length <= full).then_some((address, length)),
    }
}

/// Length of the prefix `::ffff:0:0/96` of mapped addresses.
const MAPPED: u8 = 96;
