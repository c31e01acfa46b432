//! Brokers: programs that can be started, their settings and addresses.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A broker program that this program can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BrokerProgram {
    /// mosquitto, for MQTT.
    Mosquitto,
    /// RabbitMQ, for AMQP 0-9-1, and for AMQP 1.0 by its plugin.
    RabbitMq,
    /// prosody, for XMPP.
    Prosody,
}

/// Settings of a broker that this program starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerSettings {
    /// Whether its sockets set `TCP_NODELAY`, which turns Nagle's algorithm (RFC 896) off.
    pub nodelay: bool,
    /// Whether its connections are encrypted, with a certificate that is made for this broker.
    pub tls: bool,
}

/// `TCP_NODELAY`, and no encryption.
impl Default for BrokerSettings {
    fn default() -> Self {
        Self { nodelay: true, tls: false }
    }
}

/// Name and password of a client.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// Name of the user.
    pub user: String,
    /// Password.
    pub password: String,
}

/// Passwords are not for logs.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Requirements of a TLS client for a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Name or IP address in the certificate of the broker.
    pub name: String,
    /// Certificates of the authorities that the client trusts, as PEM.
    pub authorities: String,
}

/// Address of a broker, and what its clients need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerAddress {
    /// Address and port.
    pub address: SocketAddr,
    /// Credentials; `None` for an anonymous client.
    pub credentials: Option<Credentials>,
    /// Encryption; `None` for plain TCP.
    pub tls: Option<Tls>,
}
