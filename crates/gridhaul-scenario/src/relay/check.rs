//! Inconsistent values of a relay configuration.

use std::net::{IpAddr, SocketAddr};

use super::prefix::prefix_error;
use super::{CollectorConfig, DurabilityTier, HeadConfig, RelayConfig, RelayLog};
use crate::scenario::{Diagnostic, NAME_RULE, Scenario};
use crate::units::{Bytes, Duration};

/// Largest number of shards.
const SHARDS_MAX: u16 = 64;

/// Largest frame that the relay writes: smaller windows or limits would never admit it.
const FRAME: u64 = 1 << 20;

/// Smallest port that any user may use (ip(7): the first port that needs no capability).
const FREE_PORTS: u16 = 1_024;

/// Largest data record.
const MESSAGE_MAX: Bytes = Bytes::new(256 << 10);

/// Bytes that a collector reads from a meter at once.
const READ: u64 = 16_000;

pub(super) fn diagnostics(config: &RelayConfig) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if !Scenario::is_name(&config.name) {
        let message = format!("{:?} is not a name", config.name);
        found.push(Diagnostic::new("name", message, NAME_RULE));
    }
    check_task(config, &mut found);
    if let Some(log) = &config.log {
        check_log(log, &mut found);
    }
    if let Some(collector) = &config.collector {
        check_collector(collector, config, &mut found);
    }
    if let Some(head) = &config.head {
        check_head(head, config, &mut found);
    }
    if let Some(split) = &config.split {
        super::split::check(split, &mut found);
    }
    if let Some(bridge) = &config.bridge {
        super::bridge::check(bridge, config.user.is_some(), &mut found);
    }
    if config.group.is_some() && config.user.is_none() {
        let remedy = "add user, or remove group";
        found.push(Diagnostic::new("group", "a group needs a user", remedy));
    }
    if let Some(split) = config.split.as_ref().filter(|_| config.user.is_some()) {
        for (name, listener) in split.listener.iter().filter(|(_, listener)| listener.connect_first)
        {
            let address: Option<SocketAddr> = listener.address.parse().ok();
            if address.is_some_and(|address| address.port() < FREE_PORTS) {
                found.push(Diagnostic::new(
                    format!("split.listener.{name}.connect_first"),
                    "the listener is opened when the relay runs as `user`, which may not use \
                     ports below 1024",
                    "remove connect_first, or use another port",
                ));
            }
        }
    }
    found.extend(super::own_addresses::check(config, &|_| false));
    if let Some(management) = &config.management {
        if let Some(tls) = &management.tls {
            address("management.tls.address", &tls.address, &mut found);
        }
        let key = "management.address";
        if let Some(address) = address(key, &management.address, &mut found)
            && !address.ip().is_loopback()
        {
            found.push(Diagnostic::new(
                key,
                format!("{} is not a loopback address", address.ip()),
                "the status page has no authentication there: use 127.0.0.1, and [management.tls] \
                 for other machines",
            ));
        }
    }
    found
}

/// A relay has exactly one task.
fn check_task(config: &RelayConfig, found: &mut Vec<Diagnostic>) {
    let tasks = [
        config.collector.is_some(),
        config.head.is_some(),
        config.split.is_some(),
        config.router.is_some(),
        config.bridge.is_some(),
    ];
    match tasks.into_iter().filter(|is_present| *is_present).count() {
        0 => found.push(Diagnostic::new(
            "",
            "the relay has no task",
            "add [collector] for a collector, [head] for a head, [split] for a split proxy, \
             [router] for a hybrid router, or [bridge] for proxies between two interfaces",
        )),
        1 => {}
        _ => found.push(Diagnostic::new(
            last_task(config),
            "a relay has one task: a collector, a head, a split proxy, a hybrid router or a bridge",
            "start a relay with a configuration of its own for each task",
        )),
    }
}

/// The key of the last task of several.
const fn last_task(config: &RelayConfig) -> &'static str {
    if config.bridge.is_some() {
        "bridge"
    } else if config.router.is_some() {
        "router"
    } else if config.split.is_some() {
        "split"
    } else {
        "head"
    }
}

fn check_log(log: &RelayLog, found: &mut Vec<Diagnostic>) {
    if log.folder.is_empty() {
        found.push(Diagnostic::new("log.folder", "the folder has no name", ""));
    }
    let segment = log.segment.get();
    if !(FRAME..=1 << 30).contains(&segment) {
        found.push(Diagnostic::new(
            "log.segment",
            format!("{} is not between 1 MiB and 1 GiB", log.segment),
            "a usual value is \"16 MB\"",
        ));
    }
    if log.limit.get() < segment.saturating_mul(2) {
        found.push(Diagnostic::new(
            "log.limit",
            format!("{} has no space for two segments of {}", log.limit, log.segment),
            "increase `log.limit`, or decrease `log.segment`",
        ));
    }
}

fn check_collector(collector: &CollectorConfig, config: &RelayConfig, found: &mut Vec<Diagnostic>) {
    let mut at = |key: &str, message: String, remedy: &str| {
        found.push(Diagnostic::new(format!("collector.{key}"), message, remedy));
    };
    if collector.tier == DurabilityTier::Local && config.log.is_none() {
        at("tier", "the tier \"local\" needs a log".to_owned(), "add [log] with folder");
    }
    if collector.tier != DurabilityTier::Local && config.log.is_some() {
        let tier = if collector.tier == DurabilityTier::Memory { "memory" } else { "server" };
        at(
            "tier",
            format!("the tier {tier:?} uses no log"),
            "remove [log], or use tier = \"local\"",
        );
    }
    if collector.shards == 0 || collector.shards > SHARDS_MAX {
        at("shards", format!("{} is not between 1 and {SHARDS_MAX}", collector.shards), "");
    }
    check_sizes(collector, found);
    let mut at = |key: &str, message: String, remedy: &str| {
        found.push(Diagnostic::new(format!("collector.{key}"), message, remedy));
    };
    if !has_port(&collector.upstream) {
        at(
            "upstream",
            format!("expected an address with a port, found {:?}", collector.upstream),
            "write for example \"head.example:7070\"",
        );
    }
    if let Some(source) = &collector.source
        && source.parse::<IpAddr>().is_err()
    {
        at("source", format!("expected an IP address, found {source:?}"), "");
    }
    if collector.tls.is_none() && !is_secure(config, is_local(&collector.upstream)) {
        at(
            "upstream",
            "the connection to the head leaves this machine, and there is no [collector.tls]"
                .to_owned(),
            "add [collector.tls]; or protect the path, for example by IPsec, and set \
             insecure = true",
        );
    }
    if collector.handshakes_per_second == 0 {
        at("handshakes_per_second", "no handshake could begin".to_owned(), "a usual value is 500");
    }
    if collector.handshake_limit.is_zero() {
        at("handshake_limit", "the limit has no length".to_owned(), "a usual value is \"10 s\"");
    }
    for (key, limit) in
        [("meters", collector.meters), ("connections_per_source", collector.connections_per_source)]
    {
        if limit == Some(0) {
            at(key, "no meter could connect".to_owned(), "remove the key for no limit");
        }
    }
    if collector.listener.is_empty() {
        at("listener", "there is no listener".to_owned(), "add [collector.listener.meters]");
    }
    check_listeners(collector, found);
    super::durable_ack::check(collector, found);
}

/// Limits of memory and buffers.
fn check_sizes(collector: &CollectorConfig, found: &mut Vec<Diagnostic>) {
    let mut at = |key: &str, message: String, remedy: &str| {
        found.push(Diagnostic::new(format!("collector.{key}"), message, remedy));
    };
    let limits = [
        ("bytes_at_risk_per_meter", collector.bytes_at_risk_per_meter, 1_000),
        ("bytes_at_risk", collector.bytes_at_risk, collector.bytes_at_risk_per_meter.get()),
        ("receive_buffer", collector.receive_buffer, 2_000),
        ("memory", collector.memory, READ),
    ];
    if let Some(limit) = collector.message_limit {
        let largest = collector.bytes_at_risk_per_meter.min(MESSAGE_MAX);
        if limit.get() == 0 || limit > largest {
            let message = format!("{limit} is not between 1 B and {largest}");
            at(
                "message_limit",
                message,
                "a larger one needs more bytes_at_risk_per_meter; the largest is 256 KiB",
            );
        }
    }
    if collector.idle_timeout.is_some_and(Duration::is_zero) {
        at("idle_timeout", "the time is zero".to_owned(), "remove the key for no limit");
    }
    if collector.message_wait.is_zero() {
        at("message_wait", "the time is zero".to_owned(), "a usual value is \"30 s\"");
    }
    // The kernel's option has 31 bits.
    if collector.receive_buffer.get() > 1 << 30 {
        let message = format!("{} is more than 1 GiB", collector.receive_buffer);
        at("receive_buffer", message, "a usual value is \"16 kB\"");
    }
    for (key, value, minimum) in limits {
        if value.get() < minimum {
            at(key, format!("{value} is less than {}", Bytes::new(minimum)), "");
        }
    }
}

fn check_listeners(collector: &CollectorConfig, found: &mut Vec<Diagnostic>) {
    for (name, listener) in &collector.listener {
        let key = format!("collector.listener.{name}");
        if !Scenario::is_name(name) {
            found.push(Diagnostic::new(&key, format!("{name:?} is not a name"), NAME_RULE));
        }
        address(&format!("{key}.address"), &listener.address, found);
        super::framing::check(&format!("{key}.framing"), &listener.framing, found);
        for (prefix, reason) in
            listener.allow.iter().filter_map(|prefix| Some((prefix, prefix_error(prefix)?)))
        {
            found.push(Diagnostic::new(
                format!("{key}.allow"),
                format!("{reason}, found {prefix:?}"),
                "write for example \"10.0.0.0/8\", or \"2001:db8::/32\"",
            ));
        }
        if let Some(tls) = &listener.tls
            && tls.client_certificate_optional
            && tls.client_authorities.is_none()
        {
            found.push(Diagnostic::new(
                format!("{key}.tls.client_certificate_optional"),
                "without client_authorities, meters send no certificate",
                "add client_authorities, or remove the key",
            ));
        }
    }
}

fn check_head(head: &HeadConfig, config: &RelayConfig, found: &mut Vec<Diagnostic>) {
    if config.log.is_none() {
        found.push(Diagnostic::new("head", "a head needs a log", "add [log] with folder"));
    }
    if let Some(address) = address("head.address", &head.address, found)
        && head.tls.is_none()
        && !is_secure(config, address.ip().is_loopback())
    {
        found.push(Diagnostic::new(
            "head.address",
            "collectors on other machines could connect, and there is no [head.tls]",
            "add [head.tls]; or protect the path, for example by IPsec, and set insecure = true",
        ));
    }
    if head.window.get() < 2 * FRAME {
        let message = format!("{} is less than {}", head.window, Bytes::new(2 * FRAME));
        found.push(Diagnostic::new("head.window", message, ""));
    }
    if head.handshake_limit.is_zero() {
        let remedy = "a usual value is \"10 s\"";
        found.push(Diagnostic::new("head.handshake_limit", "the limit has no length", remedy));
    }
    found.extend(super::deliver::check(&head.deliver, config.insecure));
    if let Some(rotation) = &head.rotate {
        found.extend(super::deliver::check_rotation(rotation, &head.deliver));
    }
}

/// Connections stay on this machine, or the configuration permits others.
const fn is_secure(config: &RelayConfig, is_local: bool) -> bool {
    config.insecure || is_local
}

pub(super) fn has_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

pub(super) fn is_local(text: &str) -> bool {
    let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

pub(super) fn address(key: &str, text: &str, found: &mut Vec<Diagnostic>) -> Option<SocketAddr> {
    let parsed: Option<SocketAddr> = text.parse().ok();
    let remedy = "write for example \"0.0.0.0:4059\", or \"[::]:4059\" for IPv6";
    match parsed {
        None => {
            let message = format!("expected an IP address with a port, found {text:?}");
            found.push(Diagnostic::new(key, message, remedy));
        }
        // The kernel would choose a port that nobody learns.
        Some(address) if address.port() == 0 => {
            found.push(Diagnostic::new(key, "the port cannot be 0", remedy));
        }
        Some(_) => {}
    }
    parsed
}
