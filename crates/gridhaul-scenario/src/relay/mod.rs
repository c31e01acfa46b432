//! Configuration of the relay daemon: a TOML file with the quality of a scenario.

mod allow_list;
mod bridge;
mod check;
mod deliver;
mod durable_ack;
mod framing;
mod own_addresses;
mod port_range;
mod prefix;
mod router;
mod split;
mod tls;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use std::net::IpAddr;
use std::path::Path;

use crate::scenario::{Diagnostic, ScenarioError, read_file, read_text};
use crate::units::{Bytes, Duration};

pub use bridge::{BridgeConfig, BridgeRule};
pub use deliver::{
    Confirmation, Deliver, FileRotation, MqttDelivery, MqttPayload, ServerIdentity, TcpDelivery,
};
pub use framing::{
    DelimiterFraming, FieldOrder, LengthFieldFraming, LengthPrefixFraming, MeterFraming,
};
pub use port_range::PortRange;
pub use prefix::AddressPrefix;
pub use router::{
    PacketMatch, RouterClass, RouterConfig, RouterLink, RouterShaper, RouterShare,
    TransportProtocol, network_prefixes,
};
pub use split::{SplitConfig, SplitLeg, SplitListener};
pub use tls::{BrokerTls, HeadTls, ManagementTls, MeterTls, UpstreamTls};

/// Configuration of a relay: a collector (`collector`), a head (`head`), a split proxy (`split`), a
/// hybrid router (`router`) or a bridge with proxies (`bridge`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RelayConfig {
    /// Name of this relay. A head accepts records of a collector under this name.
    pub name: String,
    /// Log of records that are durable. Required for a head, and for `tier = "local"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<RelayLog>,
    /// Accepts connections of meters and forwards their data to a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collector: Option<CollectorConfig>,
    /// Accepts records of collectors and delivers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadConfig>,
    /// Forwards each connection over a connection of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitConfig>,
    /// Sends packets to a peer over one of several links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterConfig>,
    /// Connects two network interfaces, and passes selected connections through proxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<BridgeConfig>,
    /// Permits connections between collector and head that leave this machine without TLS: the path
    /// must be protected by other means, such as IPsec or WireGuard.
    #[serde(default)]
    pub insecure: bool,
    /// Status page, metrics and JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management: Option<Management>,
    /// User, by name or number, as which the relay continues when its addresses are open. It must
    /// be started as root, and the log and other files must belong to this user. Absent: the relay
    /// does not change its user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Group, by name or number, with `user`. Absent: the group of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Longest time for which an upgrade (SIGUSR2) waits until open connections have ended.
    /// Connections that remain are reset.
    #[serde(default = "five_seconds")]
    pub drain_limit: Duration,
}

/// The record log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RelayLog {
    /// Folder of the log, for one relay. A relative path begins at the folder of the configuration
    /// file.
    pub folder: String,
    /// Largest size of undelivered records. At the limit, the relay stops reading from meters
    /// (collector) or grants no credit to collectors (head).
    #[serde(default = "one_gigabyte")]
    pub limit: Bytes,
    /// Size of a segment file, from 1 MiB to 1 GiB; the limit has space for two. Delivered segments
    /// are removed as a whole.
    #[serde(default = "segment_size")]
    pub segment: Bytes,
}

/// A collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "Collector"))]
pub struct CollectorConfig {
    /// Address of the head, such as `"head.example:7070"`.
    pub upstream: String,
    /// Mutual TLS with the head. Required unless the head is on this machine, or `insecure` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<UpstreamTls>,
    /// Local IP address of the upstream connections. Absent: the kernel selects one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether servers behind the head send data to meters: FIN of a meter is then answered when
    /// the server has closed its direction as well. The head must deliver to a TCP server.
    #[serde(default)]
    pub replies: bool,
    /// When the data of a meter counts as stored: only then is its FIN answered.
    #[serde(default)]
    pub tier: DurabilityTier,
    /// Number of upstream connections. Meters are assigned to them evenly.
    #[serde(default = "one_shard")]
    pub shards: u16,
    /// Compression of records on the upstream connections.
    #[serde(default)]
    pub compression: Compression,
    /// Congestion control of the upstream connections, by its name in the kernel. Absent: the
    /// default of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Largest number of bytes of all meters that are accepted and not stored.
    #[serde(default = "eight_megabytes")]
    pub bytes_at_risk: Bytes,
    /// The same for one meter.
    #[serde(default = "sixty_four_kilobytes")]
    pub bytes_at_risk_per_meter: Bytes,
    /// Largest message that is one record, and one message of a broker. A longer one is recorded in
    /// parts, of which only the last ends a message. Absent: `bytes_at_risk_per_meter`, and at most
    /// 64 kB. At most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_limit: Option<Bytes>,
    /// Longest time for which a message that is not complete waits for its next byte; then the part
    /// that has arrived is recorded.
    #[serde(default = "thirty_seconds")]
    pub message_wait: Duration,
    /// Longest time without data of a meter, or for it; then the meter is reset. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    /// Receive buffer of each meter's socket: bytes that the kernel acknowledges although the relay
    /// has not read them.
    #[serde(default = "sixteen_kilobytes")]
    pub receive_buffer: Bytes,
    /// TUN device of listeners with `ack = "durable"`. It must be persistent, and their addresses
    /// must be routed to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tun: Option<String>,
    /// Memory for records that the head has not confirmed, with tiers other than `local`.
    #[serde(default = "sixty_four_megabytes")]
    pub memory: Bytes,
    /// Longest time for which records wait for others to share a batch; with tier `local`, shortest
    /// time between writes to the log.
    #[serde(default = "two_milliseconds")]
    pub batch_delay: Duration,
    /// Largest number of meters that are connected at the same time. Absent: as many as the limit
    /// of open files permits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meters: Option<u32>,
    /// Treatment of new connections when less than a tenth of the space for records is free.
    #[serde(default)]
    pub when_full: WhenFull,
    /// Largest number of connections of one IP address. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_per_source: Option<u32>,
    /// Largest number of TLS handshakes with meters that begin in a second; others wait in the
    /// queue of the listener.
    #[serde(default = "five_hundred")]
    pub handshakes_per_second: u32,
    /// Time within which a meter must complete its TLS handshake and its PROXY header.
    #[serde(default = "ten_seconds")]
    pub handshake_limit: Duration,
    /// Addresses at which meters connect, by name.
    pub listener: IndexMap<String, MeterListener>,
}

/// Treatment of new connections when the space for records is full. Connected meters wait in any
/// case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// They are accepted, and wait.
    #[default]
    Block,
    /// They are reset, so that the meter can try another collector.
    RefuseNew,
}

/// Compression of records between collector and head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// None.
    #[default]
    None,
    /// LZ4: much of the redundancy of text, for little computation. Each batch is compressed by
    /// itself.
    Lz4,
}

/// Tier of durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DurabilityTier {
    /// Stored when the collector has the data in memory. A crash of the collector loses it.
    Memory,
    /// Stored when the data is durable in the collector's log.
    #[default]
    Local,
    /// Stored when the data is durable in the head's log.
    Server,
}

/// An address at which meters connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MeterListener {
    /// Address and port, such as `"0.0.0.0:4059"`.
    pub address: String,
    /// Ends of messages in the stream of a meter.
    #[serde(default)]
    pub framing: MeterFraming,
    /// TLS with the meters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<MeterTls>,
    /// Whether each connection begins with a header of the PROXY protocol, version 2, with the
    /// address of the meter.
    #[serde(default)]
    pub proxy_protocol: bool,
    /// IP prefixes, such as `"10.0.0.0/8"`, from which connections are accepted. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// When TCP acknowledges the data of a meter.
    #[serde(default)]
    pub ack: Acknowledgement,
}

/// When TCP acknowledges the data of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Acknowledgement {
    /// When the kernel has received it: a crash loses acknowledged data.
    #[default]
    Received,
    /// When it is durable in the record log. The connections are terminated by the relay, on the
    /// TUN device of `tun`.
    Durable,
}

impl MeterListener {
    /// Whether the relay terminates the connections, instead of the kernel.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.ack == Acknowledgement::Durable
    }
}

/// A head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "Head"))]
pub struct HeadConfig {
    /// Address at which collectors connect, such as `"0.0.0.0:7070"`.
    pub address: String,
    /// Mutual TLS with the collectors. Required unless `address` is a loopback address, or
    /// `insecure` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<HeadTls>,
    /// Where records are delivered.
    pub deliver: Deliver,
    /// Rotation of the file of `deliver.file` by the relay. Absent: the file grows until another
    /// program, such as logrotate, renames it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotate: Option<FileRotation>,
    /// Names of the collectors that may connect. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<String>,
    /// Bytes that each upstream connection may have in transit before they are durable. Fewer when
    /// the free part of `log.limit` is smaller, but at least 1 MiB: undelivered records exceed the
    /// limit by at most this times the number of connections.
    #[serde(default = "four_megabytes")]
    pub window: Bytes,
    /// Time within which a collector must complete its TLS handshake and state its name.
    #[serde(default = "ten_seconds")]
    pub handshake_limit: Duration,
}

/// Status page and metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Management {
    /// Loopback address and port, such as `"127.0.0.1:9180"`.
    pub address: String,
    /// A further address with mutual TLS, for other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ManagementTls>,
}

impl CollectorConfig {
    /// Largest message that is one record.
    #[must_use]
    pub fn largest_message(&self) -> Bytes {
        let default = self.bytes_at_risk_per_meter.min(sixty_four_kilobytes());
        self.message_limit.unwrap_or(default)
    }
}

impl RelayConfig {
    /// Reads a configuration from the text of a TOML file; `file` is its name in errors.
    ///
    /// # Errors
    /// A text that is not TOML, unknown keys, wrong types or units, and inconsistent values, all
    /// with line and remedy.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        read_text(text, file, Self::diagnostics)
    }

    /// Reads a configuration file of at most 4 MB.
    ///
    /// # Errors
    /// A file that cannot be read, and the errors of [`Self::from_toml`].
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        read_file(path, Self::diagnostics)
    }

    /// The configuration as TOML, including every default value.
    #[must_use]
    pub fn to_toml(&self) -> String {
        #[expect(clippy::expect_used, reason = "every field is text, number, list or table")]
        toml::to_string(self).expect("a configuration can be written as TOML")
    }

    /// Inconsistent values.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut found = check::diagnostics(self);
        if let Some(router) = &self.router {
            router::check(router, self.user.as_deref(), &mut found);
        }
        found
    }

    /// Consequences of valid values that are not obvious.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(collector) = &self.collector {
            let limit = collector.largest_message();
            for (name, listener) in &collector.listener {
                if listener.framing.largest_message().is_some_and(|size| size > limit.get()) {
                    notes.push(format!(
                        "collector.listener.{name}: messages over {limit} are recorded in parts \
                         (collector.message_limit)"
                    ));
                }
            }
        }
        notes
    }

    /// Connections that would return to this relay on a machine whose addresses are known:
    /// `is_local` states whether it has an address. [`Self::diagnostics`] knows loopback addresses
    /// only.
    #[must_use]
    pub fn loops(&self, is_local: &dyn Fn(IpAddr) -> bool) -> Vec<Diagnostic> {
        own_addresses::check(self, is_local)
    }
}

const fn one_shard() -> u16 {
    1
}
const fn five_hundred() -> u32 {
    500
}
const fn thirty_seconds() -> Duration {
    Duration::from_secs(30)
}
const fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}
const fn five_seconds() -> Duration {
    Duration::from_secs(5)
}
const fn two_milliseconds() -> Duration {
    Duration::from_millis(2)
}
const fn sixteen_kilobytes() -> Bytes {
    Bytes::new(16_000)
}
const fn sixty_four_kilobytes() -> Bytes {
    Bytes::new(64_000)
}
const fn four_megabytes() -> Bytes {
    Bytes::new(4_000_000)
}
const fn eight_megabytes() -> Bytes {
    Bytes::new(8_000_000)
}
const fn sixty_four_megabytes() -> Bytes {
    Bytes::new(64_000_000)
}
const fn segment_size() -> Bytes {
    Bytes::new(16_000_000)
}
const fn one_gigabyte() -> Bytes {
    Bytes::new(1_000_000_000)
}
