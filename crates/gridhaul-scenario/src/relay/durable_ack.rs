//! Checks of listeners whose data is acknowledged when it is durable.

use std::net::SocketAddr;

use super::{CollectorConfig, DurabilityTier, MeterFraming, MeterListener};
use crate::scenario::Diagnostic;
use crate::units::Duration;

/// Longest pause that may end a message: the retransmission timeout of Linux is at least 200 ms.
const IDLE_GAP_MAX: Duration = Duration::from_millis(100);

/// Longest name of a network device (`IFNAMSIZ`, without the final zero).
const DEVICE_NAME: usize = 15;

/// Smallest window with which two segments of Ethernet can be in transit.
const RECEIVE_BUFFER_MIN: u64 = 3_000;

/// Inconsistent values of listeners with `ack = "durable"`.
pub(super) fn check(collector: &CollectorConfig, found: &mut Vec<Diagnostic>) {
    let durable = || collector.listener.iter().filter(|(_, listener)| listener.is_durable());
    let Some((first, _)) = durable().next() else {
        if collector.tun.is_some() {
            let remedy = "add ack = \"durable\" to a listener, or remove tun";
            found.push(Diagnostic::new("collector.tun", "no listener uses the device", remedy));
        }
        return;
    };
    let key = format!("collector.listener.{first}.ack");
    if collector.tier != DurabilityTier::Local {
        let message = "only with the tier \"local\", the collector knows what is durable";
        found.push(Diagnostic::new(&key, message, "use tier = \"local\" and [log]"));
    }
    match &collector.tun {
        None => found.push(Diagnostic::new(
            &key,
            "packets of the meters need a TUN device",
            "add for example collector.tun = \"gridhaul0\"",
        )),
        Some(name) => check_device(name, found),
    }
    if collector.receive_buffer.get() < RECEIVE_BUFFER_MIN {
        found.push(Diagnostic::new(
            "collector.receive_buffer",
            format!(
                "{} is less than two segments, which ack = \"durable\" needs",
                collector.receive_buffer
            ),
            "a usual value is \"16 kB\"",
        ));
    }
    for (name, listener) in durable() {
        check_listener(&format!("collector.listener.{name}"), listener, found);
    }
}

fn check_device(name: &str, found: &mut Vec<Diagnostic>) {
    let is_name = !name.is_empty()
        && name.len() <= DEVICE_NAME
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'%'))
        && name != "."
        && name != "..";
    if !is_name {
        found.push(Diagnostic::new(
            "collector.tun",
            format!("expected the name of a network device, found {name:?}"),
            "a name has at most 15 characters, such as \"gridhaul0\"",
        ));
    }
}

fn check_listener(key: &str, listener: &MeterListener, found: &mut Vec<Diagnostic>) {
    let mut at = |name: &str, message: &str, remedy: &str| {
        found.push(Diagnostic::new(format!("{key}.{name}"), message, remedy));
    };
    if let Ok(address) = listener.address.parse::<SocketAddr>() {
        let ip = address.ip();
        if ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() {
            at(
                "address",
                "with ack = \"durable\", expected an address that is routed to the TUN device",
                "use an address that no machine has, such as \"192.0.2.10:4059\", and route it",
            );
        }
    }
    if listener.tls.is_some() {
        at(
            "tls",
            "with ack = \"durable\", TLS is not possible: TCP acknowledges encrypted bytes",
            "remove tls and protect the path, for example by IPsec; or remove ack",
        );
    }
    if listener.proxy_protocol {
        at(
            "proxy_protocol",
            "with ack = \"durable\", the meters connect to the relay itself",
            "remove proxy_protocol, or remove ack",
        );
    }
    if let MeterFraming::IdleGap(gap) = listener.framing
        && gap > IDLE_GAP_MAX
    {
        at(
            "framing.idle_gap",
            &format!(
                "with ack = \"durable\", {gap} is longer than {IDLE_GAP_MAX}: data is \
                 acknowledged when its message has ended, and the meter would retransmit it before"
            ),
            "use a shorter gap, another framing, or remove ack",
        );
    }
}
