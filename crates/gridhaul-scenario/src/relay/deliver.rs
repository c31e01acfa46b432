//! Destinations of a head: a file, or a TCP server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scenario::Diagnostic;

/// Destination of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Deliver {
    /// A file with one JSON object per line and record, each exactly once. A relative path begins at the folder of the
    /// configuration file.
    File(String),
    /// A TCP server, with one connection per meter.
    Tcp(TcpDelivery),
}

/// Delivery to a TCP server: the head restores the connection of each meter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpDelivery {
    /// Address of the server, such as `"headend.example:4059"`.
    pub server: String,
    /// How the server recognises a meter.
    #[serde(default)]
    pub identity: ServerIdentity,
}

/// How a TCP server recognises the meter of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerIdentity {
    /// Each connection begins with a header of the PROXY protocol, version 2: addresses of the meter's connection, its
    /// number, and the position of the first byte in the meter's stream.
    #[default]
    ProxyV2,
    /// Connections come from the address of the meter. The head needs the capability `CAP_NET_ADMIN` (`IP_TRANSPARENT`),
    /// and packets of the server to meters must be routed to the head.
    SourceAddress,
    /// Not at all: the connections carry only the data of the meters.
    None,
}

impl Deliver {
    /// Whether data can return to the meters.
    #[must_use]
    pub const fn has_replies(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

pub(super) fn check(deliver: &Deliver, has_port: impl Fn(&str) -> bool) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut at = |key: &str, message: String, remedy: &str| {
        found.push(Diagnostic::new(format!("head.deliver.{key}"), message, remedy));
    };
    let port = |address: &str| format!("expected an address with a port, found {address:?}");
    match deliver {
        Deliver::File(file) => {
            if file.is_empty() {
                at("file", "the file has no name".to_owned(), "");
            }
        }
        Deliver::Tcp(tcp) => {
            if !has_port(&tcp.server) {
                at("tcp.server", port(&tcp.server), "write for example \"headend.example:4059\"");
            }
        }
    }
    found
}
