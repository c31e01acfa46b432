//! Confirmable messages of CoAP, and DTLS below them.

use serde::{Deserialize, Serialize};

use super::{Flow, Scenario, Transport};
use crate::units::{Bytes, Duration};

/// Parameters of confirmable messages (RFC 7252, section 4.8). A device has one message at a time
/// in progress (NSTART = 1); the others wait. It retransmits a message that is not answered, each
/// time after twice the time, and gives it up at last. The response is part of the acknowledgement.
/// The server delivers a message once, and answers each of its copies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Coap {
    /// Bytes that CoAP adds to a message. The default is a header of 4 B, a token of 2 B, Uri-Path
    /// with 5 characters (6 B), Content-Format (2 B) and the payload marker (1 B).
    #[serde(default = "default_header")]
    pub header: Bytes,
    /// Size of a response, as a CoAP message. The default is an acknowledgement with code 2.04 and
    /// a token of 2 B, without payload.
    #[serde(default = "default_response")]
    pub response: Bytes,
    /// Smallest time from a message to its first retransmission (ACK_TIMEOUT).
    #[serde(default = "default_ack_timeout")]
    pub ack_timeout: Duration,
    /// The time to the first retransmission is uniformly distributed between `ack_timeout` and this
    /// multiple of it (ACK_RANDOM_FACTOR).
    #[serde(default = "default_ack_random_factor")]
    pub ack_random_factor: f64,
    /// Retransmissions before the device gives a message up (MAX_RETRANSMIT).
    #[serde(default = "default_max_retransmit")]
    pub max_retransmit: u32,
}

/// DTLS below CoAP. Its flights are datagrams with these sizes; nothing is encrypted. The default
/// sizes are those of a pre-shared key with AES-128-CCM-8 (RFC 7925, section 4.2).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dtls {
    /// Version of the protocol: with 1.3, a message follows the last flight of the client at once;
    /// with 1.2, it waits for the last flight of the server.
    #[serde(default)]
    pub version: DtlsVersion,
    /// For which messages a handshake is necessary.
    #[serde(default)]
    pub session: DtlsSession,
    /// Bytes of each flight, which is one datagram: the first is sent by the client, the second by
    /// the server, and so on. With 6 flights, the second one asks the client to return a cookie;
    /// with 4, the server sends no cookie. The last flight of 1.3 is an acknowledgement. Absent:
    /// 6 flights of 1.2 (73 B, 60 B, 105 B, 126 B, 102 B, 67 B), or 4 of 1.3 (130 B, 146 B, 55 B,
    /// 29 B).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flights: Option<Vec<Bytes>>,
    /// Bytes that DTLS adds to each CoAP message. Absent: 29 B with 1.2, 11 B with 1.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Bytes>,
}

/// A version of DTLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub enum DtlsVersion {
    /// RFC 6347.
    #[serde(rename = "1.2")]
    V1_2,
    /// RFC 9147.
    #[default]
    #[serde(rename = "1.3")]
    V1_3,
}

/// The lifetime of a DTLS session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DtlsSession {
    /// A handshake before the first message of a device.
    #[default]
    Persistent,
    /// A handshake before each message.
    PerMessage,
}

/// MAX_LATENCY: the longest time that a datagram is assumed to take (RFC 7252, section 4.8.2).
const MAX_LATENCY: Duration = Duration::from_secs(100);

impl Coap {
    /// EXCHANGE_LIFETIME: the time for which the server recognises copies of a message (RFC 7252,
    /// section 4.8.2). Its processing delay is one `ack_timeout`.
    #[must_use]
    pub fn exchange_lifetime(&self) -> Duration {
        let timeouts = ((1_u64 << self.max_retransmit.min(32)) - 1) as f64;
        let span = self.ack_timeout.as_secs_f64() * timeouts * self.ack_random_factor;
        Duration::from_secs_f64(span) + MAX_LATENCY + MAX_LATENCY + self.ack_timeout
    }
}

impl Default for Coap {
    fn default() -> Self {
        Self {
            header: default_header(),
            response: default_response(),
            ack_timeout: default_ack_timeout(),
            ack_random_factor: default_ack_random_factor(),
            max_retransmit: default_max_retransmit(),
        }
    }
}

impl Dtls {
    /// Bytes of each flight.
    #[must_use]
    pub fn flight_sizes(&self) -> Vec<Bytes> {
        // The records of RFC 6347 have 13 B, and the headers of handshake messages 12 B; a cookie
        // and a session identifier have 32 B, the identity of the key 8 B. ClientHello 73 B;
        // HelloVerifyRequest 60 B; ClientHello 105 B; ServerHello 101 B and ServerHelloDone 25 B;
        // ClientKeyExchange 35 B, ChangeCipherSpec 14 B and Finished 53 B; the latter two again.
        const V1_2: [u64; 6] = [73, 60, 105, 126, 102, 67];
        // The first three are those of draft-ietf-iotops-security-protocol-comparison-07, section
        // 3.1 (PSK without connection identifier); ACK has one record number (RFC 9147, section 7).
        const V1_3: [u64; 4] = [130, 146, 55, 29];
        let default = match self.version {
            DtlsVersion::V1_2 => V1_2.as_slice(),
            DtlsVersion::V1_3 => V1_3.as_slice(),
        };
        let default = || default.iter().copied().map(Bytes::new).collect();
        self.flights.clone().unwrap_or_else(default)
    }

    /// Bytes that a record adds to a CoAP message: header, explicit nonce and tag of 8 B (RFC 6655,
    /// section 3), or the shortest header, content type and tag (RFC 9147, section 4).
    #[must_use]
    pub fn record_overhead(&self) -> Bytes {
        let default = match self.version {
            DtlsVersion::V1_2 => 13 + 8 + 8,
            DtlsVersion::V1_3 => 2 + 1 + 8,
        };
        self.record.unwrap_or(Bytes::new(default))
    }
}

impl Scenario {
    /// Whether a flow has the transport `coap`, or may have it at a point of the sweep.
    #[must_use]
    pub fn may_use_coap(&self) -> bool {
        let is_transport = |key: &String| key.starts_with("flow.") && key.ends_with(".transport");
        self.flow.values().any(|flow| flow.transport == Transport::Coap)
            || self.sweep.iter().any(|entry| entry.vary.keys().any(is_transport))
    }
}

impl Flow {
    /// Parameters of the confirmable messages of the flow; `None` with another transport.
    #[must_use]
    pub fn confirmable(&self) -> Option<Coap> {
        (self.transport == Transport::Coap).then(|| self.coap.unwrap_or_default())
    }

    /// Bytes that the transport adds to a message within its datagram.
    #[must_use]
    pub fn datagram_overhead(&self) -> u64 {
        let coap = self.confirmable().map_or(0, |keys| keys.header.get());
        let dtls = self.dtls.as_ref().map_or(0, |keys| keys.record_overhead().get());
        coap.saturating_add(dtls)
    }
}

const fn default_header() -> Bytes {
    Bytes::new(4 + 2 + 6 + 2 + 1)
}
const fn default_response() -> Bytes {
    Bytes::new(4 + 2)
}
const fn default_ack_timeout() -> Duration {
    Duration::from_secs(2)
}
const fn default_ack_random_factor() -> f64 {
    1.5
}
const fn default_max_retransmit() -> u32 {
    4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7252, section 4.8.2.
    #[test]
    fn the_default_exchange_lifetime_is_that_of_the_rfc() {
        assert_eq!(Coap::default().exchange_lifetime(), Duration::from_secs(247));
    }
}
