//! Connections of a flow: when they open and close, TLS, and what a device and its server do when
//! many devices connect.

use serde::{Deserialize, Serialize};

use super::acknowledgement::ACKNOWLEDGEMENT;
use super::{Flow, Scenario};
use crate::units::{Bytes, Duration, Probability};

/// When the connections of a flow open and close. The `from` end opens and closes them; it keeps
/// the port of a closed connection in TIME-WAIT for 60 s, as Linux does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConnectionPolicy {
    /// One connection for all messages, which stays open.
    #[default]
    Persistent,
    /// A connection for each message, or for each request with its response. A message that is
    /// ready before the server has closed the previous connection waits.
    PerMessage,
    /// The connection opens with a message, and closes when it has carried no message for this
    /// time.
    IdleTimeout(Duration),
}

/// TLS on the connections of a flow. Its messages are bytes on the connection, with the sizes of
/// RFC 8446 and RFC 5246; nothing is encrypted. Certificates and signatures are those of ECDSA with
/// the curve P-256, keys are exchanged with X25519, and records are protected with AES-128-GCM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Version of the protocol: a full handshake takes one round trip with 1.3, two with 1.2.
    #[serde(default)]
    pub version: TlsVersion,
    /// Size of the ClientHello with its record header, which depends on the extensions of the
    /// client. A resumption adds the ticket to it.
    #[serde(default = "default_client_hello")]
    pub client_hello: Bytes,
    /// Size of the certificates of the server: its own and the intermediate ones, in DER.
    #[serde(default = "default_certificate")]
    pub certificate: Bytes,
    /// Size of the certificates of the client in DER. Absent: the client sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<Bytes>,
    /// Which connections resume a session with a ticket, without certificates.
    #[serde(default)]
    pub resumption: TlsResumption,
    /// Size of a session ticket, which the server sends after a full handshake and, with 1.3, after
    /// a resumption, unless `resumption` is `never`.
    #[serde(default = "default_ticket")]
    pub ticket: Bytes,
    /// Whether a device that resumes a session of TLS 1.3 sends its message together with the
    /// ClientHello (early data, 0-RTT: RFC 8446, section 2.3), which saves a round trip. A message
    /// of more than 16,384 B on the connection waits for the handshake.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub early_data: bool,
    /// Bytes of each flight of a full handshake, in place of those computed from the other keys:
    /// the first is sent by the client, the second by the server, and so on. After a last flight of
    /// the client, its messages follow at once; for a last flight of the server, the client waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flights: Option<Vec<Bytes>>,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub enum TlsVersion {
    /// RFC 5246, with the cipher suites of RFC 5289.
    #[serde(rename = "1.2")]
    V1_2,
    /// RFC 8446.
    #[default]
    #[serde(rename = "1.3")]
    V1_3,
}

/// Which connections resume a TLS session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TlsResumption {
    /// None.
    #[default]
    Never,
    /// All after the first full handshake of a device.
    AfterFirst,
    /// All: devices have tickets from before the run.
    Always,
}

/// Behaviour of a device whose connection attempt fails.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reconnect {
    /// Time after which the device gives an attempt up, if the connection, with TLS, is not ready.
    /// Absent: TCP gives up after its retransmissions of the SYN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Pause after the first failed attempt.
    #[serde(default = "default_pause")]
    pub pause: Duration,
    /// Factor of the pause after each further failed attempt in a row.
    #[serde(default = "default_factor")]
    pub factor: u32,
    /// Largest pause.
    #[serde(default = "default_pause_max")]
    pub pause_max: Duration,
    /// Random part of a pause: with `"50 %"`, a pause is uniformly distributed between half and all
    /// of its length.
    #[serde(default)]
    pub jitter: Probability,
}

/// Limits of the server, the `to` end, on new connections of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AcceptLimits {
    /// Connections that the application of the server accepts per second, evenly spaced, with the
    /// processor time of their handshakes.
    pub per_second: u32,
    /// Connections that it accepts at once after an idle time. The relay daemon accepts those of a
    /// second (`handshakes_per_second`).
    #[serde(default = "default_accept_burst")]
    pub burst: u32,
    /// Connections that may wait to be accepted (backlog of listen(2)): while more wait, the server
    /// drops SYN segments. A connection that its device has given up still waits for its turn.
    #[serde(default = "default_backlog")]
    pub backlog: u32,
}

/// Local ports of a host: `net.ipv4.ip_local_port_range` of Linux, from 32,768 to 60,999.
pub const LOCAL_PORTS: u32 = 28_232;

/// Keys of a flow for which its connections are managed.
const MANAGING: [&str; 8] = [
    "connection",
    "tls",
    "reconnect",
    "accept",
    ACKNOWLEDGEMENT,
    "nat",
    "keep_alive",
    "user_timeout",
];

impl Scenario {
    /// Whether a flow manages its connections ([`Flow::manages_connections`]), or may do so at a
    /// point of the sweep.
    #[must_use]
    pub fn may_manage_connections(&self) -> bool {
        let is_managing = |key: &String| {
            let mut steps = key.split('.');
            steps.next() == Some("flow") && steps.nth(1).is_some_and(|key| MANAGING.contains(&key))
        };
        self.flow.values().any(Flow::manages_connections)
            || self.sweep.iter().any(|entry| entry.vary.keys().any(is_managing))
            || self.may_start_transfer()
    }
}

impl Flow {
    /// Whether connections of the flow open and close during the run, or carry TLS.
    #[must_use]
    pub const fn manages_connections(&self) -> bool {
        !matches!(self.connection, ConnectionPolicy::Persistent)
            || self.tls.is_some()
            || self.reconnect.is_some()
            || self.accept.is_some()
            || self.acknowledges()
            || self.watches_idle_connections()
            || self.load.starts_transfer()
    }

    /// Whether idle connections may be forgotten, or are watched.
    #[must_use]
    pub const fn watches_idle_connections(&self) -> bool {
        self.nat.is_some() || self.keep_alive.is_some() || self.user_timeout.is_some()
    }

    /// The key of the flow for which its connections are managed.
    #[must_use]
    pub const fn connection_key(&self) -> Option<&'static str> {
        let [connection, tls, reconnect, accept, acknowledgement, nat, keep_alive, user_timeout] =
            MANAGING;
        if !matches!(self.connection, ConnectionPolicy::Persistent) {
            Some(connection)
        } else if self.tls.is_some() {
            Some(tls)
        } else if self.reconnect.is_some() {
            Some(reconnect)
        } else if self.accept.is_some() {
            Some(accept)
        } else if self.acknowledgement.is_some() {
            Some(acknowledgement)
        } else if self.load.is_mqtt() {
            Some("load")
        } else if self.nat.is_some() {
            Some(nat)
        } else if self.keep_alive.is_some() {
            Some(keep_alive)
        } else if self.user_timeout.is_some() {
            Some(user_timeout)
        } else {
            self.load.connection_key()
        }
    }
}

impl ConnectionPolicy {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            timeout: None,
            pause: default_pause(),
            factor: default_factor(),
            pause_max: default_pause_max(),
            jitter: Probability::ZERO,
        }
    }
}

const fn default_client_hello() -> Bytes {
    Bytes::new(220)
}
const fn default_certificate() -> Bytes {
    Bytes::new(1_000)
}
const fn default_ticket() -> Bytes {
    Bytes::new(200)
}
const fn default_pause() -> Duration {
    Duration::from_secs(1)
}
const fn default_factor() -> u32 {
    2
}
const fn default_pause_max() -> Duration {
    Duration::from_secs(60)
}
const fn default_accept_burst() -> u32 {
    1
}
const fn default_backlog() -> u32 {
    4_096
}
