//! Destinations of a head: a file, a TCP server, or an MQTT broker.

use serde::{Deserialize, Serialize};

use super::check::{has_port, is_local};
use super::tls::BrokerTls;
use crate::scenario::Diagnostic;
use crate::units::Bytes;

/// Destination of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Deliver {
    /// A file with one JSON object per line and record, each exactly once. If the file is renamed,
    /// or removed, another one is begun, at the latest after SIGHUP. A relative path begins at the
    /// folder of the configuration file.
    File(String),
    /// A TCP server, with one connection per meter.
    Tcp(TcpDelivery),
    /// A broker of MQTT 3.1.1, with a message per record (QoS 1).
    Mqtt(MqttDelivery),
}

/// Delivery to a TCP server: the head restores the connection of each meter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TcpDelivery {
    /// Address of the server, such as `"headend.example:4059"`.
    pub server: String,
    /// How the server recognises a meter.
    #[serde(default)]
    pub identity: ServerIdentity,
    /// When the data of a meter counts as delivered.
    #[serde(default)]
    pub confirmation: Confirmation,
}

/// When data counts as delivered to a TCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// When the meter has ended its stream, the head has sent FIN, and the server has closed the
    /// connection without a reset; with `replies`, also when the meter has received an answer to
    /// it. Until then, the data stays in the log, and is resent after a failure of the connection.
    /// Data of a connection that stays open is kept for a minute after the server's TCP has
    /// acknowledged it, and in at most half of `log.limit`.
    #[default]
    Close,
    /// When the server's TCP has acknowledged it. A server that is stopped loses what it has not
    /// read.
    Acknowledgement,
}

/// How a TCP server recognises the meter of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerIdentity {
    /// Each connection begins with a header of the PROXY protocol, version 2: addresses of the
    /// meter's connection, its identity (type 0x05: epoch and number), and the position of the
    /// first byte in the meter's stream (type 0xE0, 8 bytes).
    #[default]
    ProxyV2,
    /// Connections come from the address of the meter. The head needs the capability
    /// `CAP_NET_ADMIN` (`IP_TRANSPARENT`), and packets of the server to meters must be routed to
    /// the head.
    SourceAddress,
    /// Not at all: the connections carry only the data of the meters.
    None,
}

/// Delivery to an MQTT broker. A record is delivered when the broker has acknowledged its message
/// (PUBACK).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MqttDelivery {
    /// Address of the broker, such as `"127.0.0.1:1883"`. A broker on another machine needs `tls`,
    /// or `insecure = true` and a protected path.
    pub broker: String,
    /// TLS with the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<BrokerTls>,
    /// Topic of the messages. `{collector}`, `{listener}`, `{meter}`, `{certificate}` and `{peer}`
    /// are replaced by the names of collector and listener, the number of the meter's connection
    /// with the epoch of the collector, the name in the meter's certificate, and its IP address. A
    /// value that is not known is replaced by `unknown`.
    #[serde(default = "meters_topic")]
    pub topic: String,
    /// Content of the messages.
    #[serde(default)]
    pub payload: MqttPayload,
    /// Name of the relay at the broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// File with the password, with `user_name`. A relative path begins at the folder of the
    /// configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<String>,
    /// Largest number of messages that the broker has not acknowledged. They are kept in memory.
    #[serde(default = "one_hundred")]
    pub in_flight: u16,
}

/// Content of MQTT messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MqttPayload {
    /// A record as a JSON object, as in the file of `deliver.file`. Collector, epoch, shard and
    /// sequence number identify duplicates.
    #[default]
    Json,
    /// The bytes of a meter. Other records are not published.
    Data,
}

impl MqttDelivery {
    /// Fields that a topic may have.
    pub const TOPIC_FIELDS: [&'static str; 5] =
        ["collector", "listener", "meter", "certificate", "peer"];
}

fn meters_topic() -> String {
    "meters/{collector}/{meter}".to_owned()
}

const fn one_hundred() -> u16 {
    100
}

/// Rotation of a file: at a size, the file is renamed to `<name>.1`, the older `<name>.1` to
/// `<name>.2` and so on, and a new file is begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileRotation {
    /// Size at which the file is renamed. The last records may exceed it by some megabytes.
    pub size: Bytes,
    /// Number of older files that are kept. Those with higher numbers are removed, whether or not
    /// somebody has read them.
    pub keep: u16,
}

impl Deliver {
    /// Whether data can return to the meters.
    #[must_use]
    pub const fn has_replies(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

/// Errors of a rotation.
pub(super) fn check_rotation(rotation: &FileRotation, deliver: &Deliver) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut at = |key: &str, message: &str, remedy: &str| {
        found.push(Diagnostic::new(format!("head.{key}"), message.to_owned(), remedy));
    };
    if !matches!(deliver, Deliver::File(_)) {
        at("rotate", "only the file of deliver.file can be rotated", "remove rotate");
    }
    if rotation.size < Bytes::new(MIN_ROTATION) {
        at("rotate.size", "expected at least 1 MB", "a usual value is \"100 MB\"");
    }
    if rotation.keep == 0 {
        at("rotate.keep", "expected at least 1", "a file that is read later must be kept");
    }
    found
}

/// Smallest size of a file that is rotated.
const MIN_ROTATION: u64 = 1_000_000;

pub(super) fn check(deliver: &Deliver, insecure: bool) -> Vec<Diagnostic> {
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
        Deliver::Mqtt(mqtt) => {
            if !has_port(&mqtt.broker) {
                at("mqtt.broker", port(&mqtt.broker), "write for example \"127.0.0.1:1883\"");
            } else if mqtt.tls.is_none() && !insecure && !is_local(&mqtt.broker) {
                at(
                    "mqtt.broker",
                    "the connection to the broker leaves this machine, and has no TLS".to_owned(),
                    "add head.deliver.mqtt.tls; or use a broker on this machine; or protect the \
                     path, for example by IPsec, and set insecure = true",
                );
            }
            if let Some(error) = topic_error(&mqtt.topic) {
                let remedy = "write for example \"meters/{collector}/{meter}\"; the fields are \
                    {collector}, {listener}, \
                              {meter}, {certificate} and {peer}";
                at("mqtt.topic", error, remedy);
            }
            let own = mqtt.tls.as_ref().map(|tls| (tls.certificate.is_some(), tls.key.is_some()));
            if own.is_some_and(|(certificate, key)| certificate != key) {
                let remedy = "write both keys, or none of them";
                at(
                    "mqtt.tls.certificate",
                    "certificate and key belong together".to_owned(),
                    remedy,
                );
            }
            if mqtt.in_flight == 0 {
                let remedy = "a usual value is 100";
                at("mqtt.in_flight", "no message could be sent".to_owned(), remedy);
            }
            // Fields of MQTT state their length in 16 bits (section 1.5.3).
            let longest = usize::from(u16::MAX);
            if mqtt.user_name.as_ref().is_some_and(|name| name.len() > longest) {
                at("mqtt.user_name", "the name is longer than 65,535 bytes".to_owned(), "");
            }
            if mqtt.password_file.is_some() && mqtt.user_name.is_none() {
                let remedy = "add user_name, or remove password_file";
                at("mqtt.password_file", "a password needs a user name".to_owned(), remedy);
            }
        }
    }
    found
}

/// Error in a template of a topic (MQTT 3.1.1, section 4.7).
fn topic_error(topic: &str) -> Option<String> {
    if topic.is_empty() || topic.starts_with('$') || topic.contains(['+', '#', '\0']) {
        return Some(format!("{topic:?} is not a topic to which a message can be published"));
    }
    let mut rest = topic;
    while let Some((_, field)) = rest.split_once('{') {
        let (name, after) = field.split_once('}').unwrap_or((field, ""));
        if !MqttDelivery::TOPIC_FIELDS.contains(&name) {
            return Some(format!("there is no field {{{name}}}"));
        }
        rest = after;
    }
    None
}
