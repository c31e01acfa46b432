//! Configuration of a split proxy (RFC 3135, section 2.4).

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::check::{address, has_port};
use crate::scenario::{Diagnostic, NAME_RULE, Scenario};
use crate::units::{Bytes, Duration};

/// A split proxy: each connection of a client is forwarded over a connection of its own to a
/// server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "SplitProxy"))]
pub struct SplitConfig {
    /// Connections between clients and the proxy.
    #[serde(default)]
    pub client: SplitLeg,
    /// Connections between the proxy and servers.
    #[serde(default)]
    pub server: SplitLeg,
    /// Largest number of clients that are connected at the same time. Absent: as many as the limit
    /// of open files permits; a client uses two files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Memory for data that was read and that the other leg has not accepted. At the limit, data is
    /// left in the receive buffers of the kernel until the other leg accepts it.
    #[serde(default = "sixteen_megabytes")]
    pub memory: Bytes,
    /// Number of pipes for bulk data, which is moved in the kernel (splice(2)). A direction uses
    /// one pipe, which has two files. 0: bulk data is copied.
    #[serde(default = "sixty_four")]
    pub pipes: u32,
    /// Size of a pipe. The kernel rounds to a power of two, and limits it (`fs.pipe-max-size`).
    #[serde(default = "one_mebibyte")]
    pub pipe_size: Bytes,
    /// Longest time until a server accepts a connection; then the client is reset.
    #[serde(default = "ten_seconds")]
    pub connect_timeout: Duration,
    /// Longest time without data after one end has closed its direction; then both ends are reset.
    #[serde(default = "two_minutes")]
    pub half_close_timeout: Duration,
    /// Longest time without data; then both ends are reset. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    /// Addresses at which clients connect, by name.
    pub listener: IndexMap<String, SplitListener>,
}

/// An address at which clients of a split proxy connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SplitListener {
    /// Address and port, such as `"0.0.0.0:4059"`.
    pub address: String,
    /// Address of the server, such as `"server.example:4059"`. Absent with `transparent = true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Accept connections to any address that a TPROXY rule redirects here, and connect to this
    /// address from the address of the client. The relay needs the capability `CAP_NET_ADMIN`.
    #[serde(default)]
    pub transparent: bool,
    /// Listen only while the server accepts connections: otherwise clients are refused instead of
    /// accepted and reset.
    #[serde(default)]
    pub connect_first: bool,
}

/// Parameters of TCP on one side of a split proxy. Absent values are those of the system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SplitLeg {
    /// Congestion control, by its name in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Longest delay of an acknowledgement. `"0 s"` requests immediate acknowledgements after each
    /// read (`TCP_QUICKACK`); other values need Linux 6.15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Duration>,
    /// Longest time for which sent data stays unacknowledged, or the peer's window closed; then the
    /// connection fails (`TCP_USER_TIMEOUT`, RFC 5482).
    #[serde(default = "three_minutes")]
    pub user_timeout: Duration,
    /// Interval of probes on an idle connection. `"0 s"`: no probes.
    #[serde(default = "one_minute")]
    pub keepalive: Duration,
    /// Largest segment that is sent and announced, in bytes (`TCP_MAXSEG`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<u16>,
    /// Send buffer. Linux doubles the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Bytes>,
    /// Receive buffer: bytes that the kernel acknowledges although the relay has not read them.
    /// Linux doubles the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<Bytes>,
    /// Unsent bytes in the send buffer above which no data is added (`TCP_NOTSENT_LOWAT`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_sent_limit: Option<Bytes>,
    /// Nagle's algorithm (RFC 9293, section 3.7.4): delays small segments while data is
    /// unacknowledged.
    #[serde(default)]
    pub nagle: bool,
}

impl Default for SplitLeg {
    fn default() -> Self {
        Self {
            congestion_control: None,
            delayed_ack: None,
            user_timeout: three_minutes(),
            keepalive: one_minute(),
            mss: None,
            send_buffer: None,
            receive_buffer: None,
            not_sent_limit: None,
            nagle: false,
        }
    }
}

/// Smallest memory: one read.
const MEMORY_MIN: u64 = 64 << 10;

/// Limits of `TCP_MAXSEG` in Linux: `TCP_MIN_MSS` (`<net/tcp.h>`) to `MAX_TCP_WINDOW`.
const MSS: std::ops::RangeInclusive<u16> = 88..=32_767;

pub(super) fn check(split: &SplitConfig, found: &mut Vec<Diagnostic>) {
    let mut at = |key: &str, message: String, remedy: &str| {
        found.push(Diagnostic::new(format!("split.{key}"), message, remedy));
    };
    if split.memory.get() < MEMORY_MIN {
        at("memory", format!("{} is less than {}", split.memory, Bytes::new(MEMORY_MIN)), "");
    }
    // A pipe has at least one page (pipe(7)).
    if !(4_096..=1 << 30).contains(&split.pipe_size.get()) {
        at(
            "pipe_size",
            format!("{} is not between 4 KiB and 1 GiB", split.pipe_size),
            "a usual value is \"1 MiB\"",
        );
    }
    if split.connections == Some(0) {
        at("connections", "the relay would accept no client".to_owned(), "");
    }
    let times = [
        ("connect_timeout", Some(split.connect_timeout), "a usual value is \"10 s\""),
        ("half_close_timeout", Some(split.half_close_timeout), "a usual value is \"2 min\""),
        ("idle_timeout", split.idle_timeout, "remove the key for no limit"),
    ];
    for (key, time, remedy) in times {
        if time.is_some_and(Duration::is_zero) {
            at(key, "the time is zero".to_owned(), remedy);
        }
    }
    for (name, leg) in [("client", &split.client), ("server", &split.server)] {
        check_leg(&format!("split.{name}"), leg, found);
    }
    if split.listener.is_empty() {
        let remedy = "add [split.listener.meters]";
        found.push(Diagnostic::new("split.listener", "there is no listener", remedy));
    }
    for (name, listener) in &split.listener {
        let key = format!("split.listener.{name}");
        if !Scenario::is_name(name) {
            found.push(Diagnostic::new(&key, format!("{name:?} is not a name"), NAME_RULE));
        }
        check_listener(&key, listener, found);
    }
}

fn check_listener(key: &str, listener: &SplitListener, found: &mut Vec<Diagnostic>) {
    address(&format!("{key}.address"), &listener.address, found);
    let mut at = |name: &str, message: &str, remedy: &str| {
        found.push(Diagnostic::new(format!("{key}.{name}"), message, remedy));
    };
    match (&listener.upstream, listener.transparent) {
        (None, false) => {
            at("upstream", "there is no server", "add upstream, or use transparent = true");
        }
        (Some(_), true) => at(
            "upstream",
            "a transparent proxy connects to the address that the client has chosen",
            "remove upstream, or transparent",
        ),
        (Some(upstream), false) if !has_port(upstream) => at(
            "upstream",
            &format!("expected an address with a port, found {upstream:?}"),
            "write for example \"server.example:4059\"",
        ),
        _ => {}
    }
    if listener.transparent && listener.connect_first {
        at(
            "connect_first",
            "the servers of a transparent proxy are not known before clients connect",
            "remove connect_first",
        );
    }
}

fn check_leg(key: &str, leg: &SplitLeg, found: &mut Vec<Diagnostic>) {
    let mut at = |name: &str, message: String, remedy: &str| {
        found.push(Diagnostic::new(format!("{key}.{name}"), message, remedy));
    };
    if let Some(mss) = leg.mss.filter(|mss| !MSS.contains(mss)) {
        at("mss", format!("{mss} is not between {} and {}", MSS.start(), MSS.end()), "");
    }
    let sizes = [
        ("send_buffer", leg.send_buffer),
        ("receive_buffer", leg.receive_buffer),
        ("not_sent_limit", leg.not_sent_limit),
    ];
    for (name, size) in sizes {
        if let Some(size) = size.filter(|size| !(2_000..=1 << 30).contains(&size.get())) {
            at(name, format!("{size} is not between 2 kB and 1 GiB"), "");
        }
    }
    if leg.user_timeout.is_zero() {
        at("user_timeout", "the time is zero".to_owned(), "a usual value is \"3 min\"");
    }
    // The kernel counts these intervals in whole seconds (`TCP_KEEPIDLE`, tcp(7)).
    let second = Duration::from_secs(1);
    if !leg.keepalive.is_zero() && leg.keepalive < second {
        at("keepalive", format!("{} is less than 1 s", leg.keepalive), "a usual value is \"60 s\"");
    }
}

const fn sixty_four() -> u32 {
    64
}
const fn sixteen_megabytes() -> Bytes {
    Bytes::new(16_000_000)
}
const fn one_mebibyte() -> Bytes {
    Bytes::new(1 << 20)
}
const fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}
const fn one_minute() -> Duration {
    Duration::from_secs(60)
}
const fn two_minutes() -> Duration {
    Duration::from_secs(120)
}
const fn three_minutes() -> Duration {
    Duration::from_secs(180)
}
