//! Configuration of a bridge with proxies (RFC 3135) between two network interfaces.

use std::ops::RangeInclusive;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::PortRange;
use super::prefix::prefix_error;
use crate::scenario::{CongestionControlAlgorithm, Diagnostic, NAME_RULE, ProxyMode, Scenario};
use crate::units::{Bytes, Duration};

/// A bridge between two network interfaces, which passes the TCP connections that a rule selects
/// through a proxy and forwards all other frames unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "Bridge"))]
pub struct BridgeConfig {
    /// The two interfaces, such as `["eth0", "eth1"]`.
    pub interfaces: Vec<String>,
    /// Whether the kernel's bridge forwards the frames while the relay does not run or does not
    /// answer, within one second. Both interfaces must be ports of one bridge of the kernel.
    /// `false`: without the relay, the interfaces are not connected.
    #[serde(default = "yes")]
    pub fail_open: bool,
    /// Largest number of connections through proxies at the same time. Further connections are
    /// forwarded unchanged.
    #[serde(default = "one_hundred_thousand")]
    pub connections: u32,
    /// Memory for the payload of all connections. At the limit, segments with data for a proxy are
    /// dropped and new connections are forwarded unchanged.
    #[serde(default = "two_hundred_fifty_six_megabytes")]
    pub memory: Bytes,
    /// Longest time without segments of a connection; then its state is discarded. If bytes are at
    /// risk, both hosts are reset.
    #[serde(default = "two_hours")]
    pub idle_timeout: Duration,
    /// Rules by name. The first rule that matches SYN decides; connections without a rule are
    /// forwarded unchanged.
    #[serde(default)]
    pub rule: IndexMap<String, BridgeRule>,
}

/// Connections that pass a bridge through a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BridgeRule {
    /// Mode of the proxy.
    pub mode: ProxyMode,
    /// Interface at which SYN arrives. Absent: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_from: Option<String>,
    /// IP prefixes, such as `"10.0.0.0/8"`, of the hosts that open the connection. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
    /// IP prefixes of the hosts that accept the connection. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Ports of the hosts that accept the connection: `4059`, or `"7000-7010"`. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRange>,
    /// `split`, `reflect`, `spoof`, `snoop`: buffer for the payload of each connection in each
    /// direction.
    #[serde(default = "sixty_four_kibibytes")]
    pub buffer: Bytes,
    /// `snoop`, `ack`: interface of the hop that the proxy serves. `snoop` retransmits segments
    /// that are lost behind this interface, `ack` thins the acknowledgements that are sent over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toward: Option<String>,
    /// `ack`: longest time for which an acknowledgement waits for a newer one that supersedes it.
    #[serde(default = "ten_milliseconds")]
    pub max_ack_delay: Duration,
    /// `ack`: whether the goodput is compared with that without the filter, for some seconds of
    /// each minute. A connection that is faster without the filter is left alone.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub compare_goodput: bool,
    /// `split`, `reflect`: congestion control of the proxy. Absent: CUBIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<CongestionControlAlgorithm>,
    /// `split`, `reflect`: whether acknowledgements are delayed as in Linux. Otherwise every
    /// segment with data is acknowledged at once (paper `plc`, section III).
    #[serde(default)]
    pub delayed_ack: bool,
}

impl BridgeConfig {
    /// The default of `memory`.
    pub const MEMORY_DEFAULT: Bytes = Bytes::new(256_000_000);
}

impl BridgeRule {
    /// Buffers in bytes: at least two segments of the smallest MTU of IPv6, at most the largest
    /// window (RFC 7323, section 2.3).
    pub const BUFFERS: RangeInclusive<u64> = 2_560..=1 << 30;

    /// Largest useful `max_ack_delay`: the smallest retransmission timeout of Linux.
    pub const ACK_DELAY_MAX: Duration = Duration::from_millis(200);

    /// The same rule without the keys that have no effect in its mode.
    #[must_use]
    pub fn without_ineffective_keys(mut self) -> Self {
        for key in ineffective_keys(&self) {
            match key {
                "buffer" => self.buffer = sixty_four_kibibytes(),
                "toward" => self.toward = None,
                "max_ack_delay" => self.max_ack_delay = ten_milliseconds(),
                "compare_goodput" => self.compare_goodput = true,
                "congestion_control" => self.congestion_control = None,
                _ => self.delayed_ack = false,
            }
        }
        self
    }
}

/// Longest name of an interface (`IFNAMSIZ` with its final zero).
const INTERFACE_NAME_MAX: usize = 15;

pub(super) fn check(bridge: &BridgeConfig, has_user: bool, found: &mut Vec<Diagnostic>) {
    if has_user {
        found.push(Diagnostic::new(
            "user",
            "a bridge needs its rights while it runs",
            "remove user, and limit the capabilities of the service to CAP_NET_RAW, CAP_NET_ADMIN \
             and CAP_BPF",
        ));
    }
    let mut at = |key: &str, message: String, remedy: &str| {
        found.push(Diagnostic::new(format!("bridge.{key}"), message, remedy));
    };
    let usual = "write for example interfaces = [\"eth0\", \"eth1\"]";
    match &bridge.interfaces[..] {
        [first, second] if first == second => {
            at("interfaces", format!("{first:?} cannot be connected with itself"), usual);
        }
        [_, _] => {}
        others => at("interfaces", format!("expected two, found {}", others.len()), usual),
    }
    for name in &bridge.interfaces {
        let is_name = !name.is_empty()
            && name.len() <= INTERFACE_NAME_MAX
            && !name.contains(|letter: char| letter == '/' || letter.is_whitespace());
        if !is_name {
            at("interfaces", format!("{name:?} is not a name of an interface"), usual);
        }
    }
    if bridge.connections == 0 {
        at("connections", "no connection could pass a proxy".to_owned(), "a usual value is 100000");
    }
    if bridge.idle_timeout.is_zero() {
        at("idle_timeout", "the time is zero".to_owned(), "a usual value is \"2 h\"");
    }
    for (name, rule) in &bridge.rule {
        let key = format!("bridge.rule.{name}");
        if !Scenario::is_name(name) {
            found.push(Diagnostic::new(&key, format!("{name:?} is not a name"), NAME_RULE));
        }
        check_rule(&key, rule, bridge, found);
    }
}

fn check_rule(key: &str, rule: &BridgeRule, bridge: &BridgeConfig, found: &mut Vec<Diagnostic>) {
    let mut at = |name: &str, message: String, remedy: &str| {
        found.push(Diagnostic::new(format!("{key}.{name}"), message, remedy));
    };
    for (name, interface) in [("opened_from", &rule.opened_from), ("toward", &rule.toward)] {
        if let Some(interface) = interface.as_ref().filter(|name| !bridge.interfaces.contains(name))
        {
            let names = bridge.interfaces.join("\", \"");
            at(
                name,
                format!("{interface:?} is not an interface of the bridge"),
                &format!("write one of \"{names}\""),
            );
        }
    }
    for (name, prefixes) in [("clients", &rule.clients), ("servers", &rule.servers)] {
        for prefix in prefixes {
            if let Some(reason) = prefix_error(prefix) {
                let remedy = "write for example \"10.0.0.0/8\", or \"2001:db8::/32\"";
                at(name, format!("{reason}, found {prefix:?}"), remedy);
            }
        }
    }
    let serves_a_hop = matches!(rule.mode, ProxyMode::Snoop | ProxyMode::Ack);
    if serves_a_hop && rule.toward.is_none() {
        let remedy = match rule.mode {
            ProxyMode::Snoop => "add toward with the interface of the lossy hop",
            _ => "add toward with the interface over which acknowledgements are thinned",
        };
        at("toward", format!("the mode \"{}\" serves one hop", rule.mode), remedy);
    }
    if !BridgeRule::BUFFERS.contains(&rule.buffer.get()) {
        let message = format!("{} is not between 2560 B and 1 GiB", rule.buffer);
        at("buffer", message, "a usual value is \"256 KiB\": the rate times the round-trip time");
    }
    if rule.buffer.get().saturating_mul(2) > bridge.memory.get() {
        let message = format!("two directions of {} exceed bridge.memory", rule.buffer);
        at("buffer", message, "decrease buffer, or increase bridge.memory");
    }
    let ack_delay_max = BridgeRule::ACK_DELAY_MAX;
    if rule.mode == ProxyMode::Ack && rule.max_ack_delay > ack_delay_max {
        let message = format!("{} is more than {ack_delay_max}", rule.max_ack_delay);
        at("max_ack_delay", message, "a usual value is \"10 ms\"");
    }
    for name in ineffective_keys(rule) {
        let message = format!("the key has no effect in the mode \"{}\"", rule.mode);
        at(name, message, "remove the key");
    }
}

/// Keys that are set and have no effect in the mode of the rule.
fn ineffective_keys(rule: &BridgeRule) -> Vec<&'static str> {
    use ProxyMode::{Ack, Reflect, Snoop, Split, Spoof};
    let mode = rule.mode;
    let terminates = matches!(mode, Split | Reflect);
    let keys = [
        (
            "buffer",
            rule.buffer != sixty_four_kibibytes(),
            terminates || matches!(mode, Spoof | Snoop),
        ),
        ("toward", rule.toward.is_some(), matches!(mode, Snoop | Ack)),
        ("max_ack_delay", rule.max_ack_delay != ten_milliseconds(), mode == Ack),
        ("compare_goodput", !rule.compare_goodput, mode == Ack),
        ("congestion_control", rule.congestion_control.is_some(), terminates),
        ("delayed_ack", rule.delayed_ack, terminates),
    ];
    keys.iter().filter(|(_, is_set, is_used)| *is_set && !is_used).map(|(key, ..)| *key).collect()
}

const fn yes() -> bool {
    true
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_true(value: &bool) -> bool {
    *value
}
const fn one_hundred_thousand() -> u32 {
    100_000
}
const fn two_hundred_fifty_six_megabytes() -> Bytes {
    BridgeConfig::MEMORY_DEFAULT
}
const fn sixty_four_kibibytes() -> Bytes {
    Bytes::new(65_536)
}
const fn ten_milliseconds() -> Duration {
    Duration::from_millis(10)
}
const fn two_hours() -> Duration {
    Duration::from_secs(7_200)
}
