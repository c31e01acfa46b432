//! IP versions and the sizes of their headers.

use std::fmt;
use std::net::IpAddr;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::Bytes;

/// A version of the Internet Protocol. In files: the number 4 or 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    #[default]
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

impl IpVersion {
    /// Both versions.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The number, as written in files.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }

    /// Bytes of the IP header without options (RFC 791, section 3.1) or extension headers
    /// (RFC 8200, section 3).
    #[must_use]
    pub const fn header(self) -> Bytes {
        match self {
            Self::V4 => Bytes::new(20),
            Self::V6 => Bytes::new(40),
        }
    }

    /// Bytes of the IP and TCP headers without options (RFC 9293, section 3.1).
    #[must_use]
    pub const fn tcp_headers(self) -> Bytes {
        Bytes::new(self.header().get() + 20)
    }

    /// Bytes of the IP and UDP headers of a datagram (RFC 768), or of the IP and ICMP echo headers.
    #[must_use]
    pub const fn datagram_headers(self) -> Bytes {
        Bytes::new(self.header().get() + 8)
    }

    /// Largest payload of a datagram in one packet of 1,500 B, the MTU of Ethernet (RFC 894): 1,472
    /// B with IPv4, 1,452 B with IPv6. A larger datagram consists of fragments, whose losses add up
    /// (RFC 791, section 3.2).
    #[must_use]
    pub const fn datagram_payload_max(self) -> Bytes {
        Bytes::new(MTU - self.datagram_headers().get())
    }

    /// The version whose IP and TCP headers have this size.
    #[must_use]
    pub fn of_tcp_headers(size: Bytes) -> Option<Self> {
        Self::ALL.into_iter().find(|ip| ip.tcp_headers() == size)
    }

    /// The version of an address.
    #[must_use]
    pub const fn of_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Whether this is the default version, which files leave out.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Largest IP packet that links carry without fragmentation.
const MTU: u64 = 1500;

impl fmt::Display for IpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IPv{}", self.number())
    }
}

impl Serialize for IpVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

impl<'de> Deserialize<'de> for IpVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Number)
    }
}

/// Deserialises the number of a version.
struct Number;

impl Visitor<'_> for Number {
    type Value = IpVersion;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the IP version, 4 or 6")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<IpVersion, E> {
        let found = IpVersion::ALL.into_iter().find(|ip| u64::from(ip.number()) == number);
        found.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<IpVersion, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }
}

#[cfg(any(test, feature = "schema"))]
impl schemars::JsonSchema for IpVersion {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IpVersion".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "enum": [4, 6] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_sizes_match_the_rfcs() {
        let sizes = |ip: IpVersion| [ip.header(), ip.tcp_headers(), ip.datagram_headers()];
        assert_eq!(sizes(IpVersion::V4), [20, 40, 28].map(Bytes::new));
        assert_eq!(sizes(IpVersion::V6), [40, 60, 48].map(Bytes::new));
        for ip in IpVersion::ALL {
            assert_eq!(IpVersion::of_tcp_headers(ip.tcp_headers()), Some(ip));
        }
        assert_eq!(IpVersion::of_tcp_headers(Bytes::new(52)), None);
    }
}
