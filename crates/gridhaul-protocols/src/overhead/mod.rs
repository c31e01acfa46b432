//! Bytes of a message by layer, by formula.
//!
//! Each protocol has a function for the bytes that it adds to the payload, derived from its
//! specification. [`LowerLayers`] adds the headers below. The sum is compared with captures and
//! with Table 5 of RESERVE D4.6 (crate `gridhaul-measure`).
//!
//! ```
//! use gridhaul_protocols::overhead::mqtt::Publish;
//!
//! let publish = Publish { topic: 10, version_5: false, identified: false };
//! // Fixed header of 3 bytes, length of the topic in 2 bytes, topic.
//! assert_eq!(publish.overhead(296), 15);
//! ```

pub mod amqp_0_9_1;
pub mod amqp_1_0;
pub mod direct;
pub mod mqtt;
pub mod sampled_values;
pub mod tls;
pub mod xmpp;

/// Headers below the protocol, in bytes for each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowerLayers {
    /// Ethernet header, without frame check sequence.
    pub ethernet: u64,
    /// IP header without options.
    pub ip: u64,
    /// UDP header, or TCP header with options.
    pub transport: u64,
}

impl LowerLayers {
    /// Destination, source and EtherType (IEEE 802.3, section 3.2).
    pub const ETHERNET: Self = Self { ethernet: 14, ip: 0, transport: 0 };

    /// UDP (RFC 768) over IPv4 (RFC 791, section 3.1).
    pub const UDP_IPV4: Self = Self { ethernet: 14, ip: 20, transport: 8 };

    /// TCP over IPv4: 20 bytes (RFC 9293, section 3.1), and 12 bytes for the timestamps option with
    /// two bytes of padding (RFC 7323, appendix A).
    pub const TCP_IPV4: Self = Self { ethernet: 14, ip: 20, transport: 32 };
}

/// Bytes of a message by layer. Means over many messages have fractions.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct LayerBytes {
    /// Ethernet headers.
    pub ethernet: f64,
    /// IP headers.
    pub ip: f64,
    /// TCP or UDP headers.
    pub transport: f64,
    /// Bytes that the protocol adds to the payload.
    pub protocol: f64,
    /// Payload.
    pub payload: f64,
}

impl LayerBytes {
    /// Bytes of one message that takes `packets` packets, pure acknowledgements included.
    #[must_use]
    pub fn new(lower: LowerLayers, packets: f64, protocol: f64, payload: f64) -> Self {
        Self {
            ethernet: lower.ethernet as f64 * packets,
            ip: lower.ip as f64 * packets,
            transport: lower.transport as f64 * packets,
            protocol,
            payload,
        }
    }

    /// Sum of all layers.
    #[must_use]
    pub const fn total(&self) -> f64 {
        self.ethernet + self.ip + self.transport + self.protocol + self.payload
    }
}
