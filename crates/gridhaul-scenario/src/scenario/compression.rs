//! Compression and encapsulation of packets on a link.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Compression and encapsulation of the packets of a direction, such as header compression (RFC
/// 1144, RFC 5795), the compression of a VPN (paper `hybrid`, section 4), or the headers of a
/// tunnel (RFC 4303). Queue, transmission, load-dependent latency and the metrics of the link count
/// the size on the link; the far end restores the original packet. The size does not depend on the
/// content of a packet, and neither compression nor encryption takes time.
///
/// Size on the link: `header` for the first bytes of a packet, as many as `compressible` says,
/// `payload_ratio` times the other bytes, rounded up, and `overhead`. A packet that is shorter than
/// `header` keeps its size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Compression {
    /// Size of the `compressible` bytes of a packet on the link, such as `"22 B"` for an
    /// acknowledgement, or `"4 B"` for IPv6 and UDP with ROHC (RFC 5795) or 6LoWPAN (RFC 6282).
    #[serde(default = "uncompressed_header")]
    pub header: Bytes,
    /// Number of bytes at the beginning of each packet that are headers. Absent: 40 B. It does not
    /// follow the flows: write `"60 B"` for IPv6 and TCP, `"28 B"` for datagrams over IPv4 and
    /// `"48 B"` over IPv6. The headers of a packet are not distinguished: bytes beyond its own
    /// headers are compressed as well.
    #[serde(default = "uncompressed_header", skip_serializing_if = "is_usual")]
    pub compressible: Bytes,
    /// Size of the other bytes on the link, relative to their original size: above 0, at most 1.
    /// Encrypted or compressed data has 1.
    #[serde(default = "incompressible")]
    pub payload_ratio: f64,
    /// Bytes added to each packet: headers and padding of a tunnel.
    #[serde(default)]
    pub overhead: Bytes,
}

/// Size of an IPv4 header and a TCP header without options (RFC 791, section 3.1; RFC 9293, section
/// 3.1).
pub const COMPRESSIBLE_HEADER: Bytes = Bytes::new(40);

const fn uncompressed_header() -> Bytes {
    COMPRESSIBLE_HEADER
}
const fn incompressible() -> f64 {
    1.0
}
fn is_usual(size: &Bytes) -> bool {
    *size == COMPRESSIBLE_HEADER
}

impl Compression {
    /// Size on the link of a packet of `bytes`.
    #[must_use]
    pub fn link_bytes(&self, bytes: u32) -> u32 {
        let first = u64::from(bytes).min(self.compressible.get());
        let rest = u64::from(bytes) - first;
        let rest = (rest as f64 * self.payload_ratio).ceil() as u64;
        let header = self.header.get().min(u64::from(bytes));
        u32::try_from(header + rest + self.overhead.get()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_byte_model() {
        let keys = |header, payload_ratio, overhead| Compression {
            header: Bytes::new(header),
            compressible: COMPRESSIBLE_HEADER,
            payload_ratio,
            overhead: Bytes::new(overhead),
        };
        // IPv6 and UDP: 48 B of headers and a reading of 60 B.
        let datagram = Compression { compressible: Bytes::new(48), ..keys(4, 1.0, 0) };
        assert_eq!(datagram.link_bytes(108), 64);
        // An acknowledgement of 40 B with a header of 22 B; a full segment of 1500 B.
        assert_eq!(keys(22, 1.0, 0).link_bytes(40), 22);
        assert_eq!(keys(22, 1.0, 0).link_bytes(1500), 1482);
        // Half of 1460 B; half of 1 B is rounded up.
        assert_eq!(keys(40, 0.5, 0).link_bytes(1500), 40 + 730);
        assert_eq!(keys(40, 0.5, 0).link_bytes(41), 41);
        // A tunnel adds to compressed packets as well.
        assert_eq!(keys(22, 1.0, 37).link_bytes(40), 59);
        // A datagram shorter than the compressed header keeps its size.
        assert_eq!(keys(22, 1.0, 0).link_bytes(9), 9);
        assert_eq!(keys(22, 0.5, 0).link_bytes(30), 22);
    }
}
