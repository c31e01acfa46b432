//! Addresses at which a relay listens, and connections of a relay to itself.

use std::net::{IpAddr, SocketAddr};

use super::{Deliver, RelayConfig};
use crate::scenario::Diagnostic;

/// An address at which the relay listens.
#[derive(Debug)]
struct Listening {
    key: String,
    address: SocketAddr,
    /// Server to which a split proxy forwards the connections.
    upstream: Option<String>,
}

/// Addresses that are used twice, and connections that would return to the relay. `is_local` states
/// whether the machine has an address.
pub(super) fn check(config: &RelayConfig, is_local: &dyn Fn(IpAddr) -> bool) -> Vec<Diagnostic> {
    let listening = listening(config);
    let mut found = Vec::new();
    for (index, one) in listening.iter().enumerate() {
        let earlier = &listening[..index];
        if let Some(other) = earlier.iter().find(|other| overlap(one.address, other.address)) {
            let message = format!("{} is in use by {} as well", one.address, other.key);
            found.push(Diagnostic::new(&one.key, message, "choose another port"));
        }
    }
    for (key, target) in targets(config) {
        if let Some(own) = listening.iter().find(|own| accepts(own.address, &target, is_local)) {
            let message = format!(
                "the relay would connect to itself: {target} reaches {} ({})",
                own.key, own.address
            );
            found.push(Diagnostic::new(key, message, REMEDY));
        }
    }
    for own in listening.iter().filter(|own| own.upstream.is_some()) {
        if let Some(target) = returns_to(own, &listening, is_local) {
            let message = format!(
                "connections would return to this relay without end: {target} leads to {} ({})",
                own.key, own.address
            );
            let key = own.key.replace(".address", ".upstream");
            found.push(Diagnostic::new(key, message, REMEDY));
        }
    }
    found
}

const REMEDY: &str = "write the address of another program";

/// All addresses that are valid.
fn listening(config: &RelayConfig) -> Vec<Listening> {
    let mut found = Vec::new();
    let mut add = |key: String, address: &str, upstream: Option<String>| {
        if let Ok(address) = address.parse() {
            found.push(Listening { key, address, upstream });
        }
    };
    for (name, listener) in config.collector.iter().flat_map(|collector| &collector.listener) {
        add(format!("collector.listener.{name}.address"), &listener.address, None);
    }
    if let Some(head) = &config.head {
        add("head.address".to_owned(), &head.address, None);
    }
    for (name, listener) in config.split.iter().flat_map(|split| &split.listener) {
        let upstream = listener.upstream.clone();
        add(format!("split.listener.{name}.address"), &listener.address, upstream);
    }
    if let Some(management) = &config.management {
        add("management.address".to_owned(), &management.address, None);
        if let Some(tls) = &management.tls {
            add("management.tls.address".to_owned(), &tls.address, None);
        }
    }
    found
}

/// Peers to which the relay connects, by key, without the servers of a split proxy.
fn targets(config: &RelayConfig) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let Some(collector) = &config.collector {
        found.push(("collector.upstream", collector.upstream.clone()));
    }
    match config.head.as_ref().map(|head| &head.deliver) {
        Some(Deliver::Tcp(tcp)) => found.push(("head.deliver.tcp.server", tcp.server.clone())),
        Some(Deliver::Mqtt(mqtt)) => found.push(("head.deliver.mqtt.broker", mqtt.broker.clone())),
        Some(Deliver::File(_)) | None => {}
    }
    found
}

/// The server of a listener from which connections come back to this listener, perhaps through
/// other listeners.
fn returns_to(
    own: &Listening,
    listening: &[Listening],
    is_local: &dyn Fn(IpAddr) -> bool,
) -> Option<String> {
    let mut target = own.upstream.clone()?;
    for _ in 0..listening.len() {
        let next =
            listening.iter().find(|listener| accepts(listener.address, &target, is_local))?;
        if next.key == own.key {
            return own.upstream.clone();
        }
        target = next.upstream.clone()?;
    }
    None
}

/// Whether two sockets cannot listen at the same time.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    // `::` accepts connections to IPv4 addresses as well (ipv6(7)).
    let covers = |wide: IpAddr, narrow: IpAddr| {
        wide.is_unspecified() && (wide.is_ipv6() || narrow.is_ipv4())
    };
    one.port() == other.port() && one.port() != 0 && (a == b || covers(a, b) || covers(b, a))
}

/// Whether a connection to a target reaches a socket that listens at an address.
fn accepts(own: SocketAddr, target: &str, is_local: &dyn Fn(IpAddr) -> bool) -> bool {
    let Some((host, port)) = target.rsplit_once(':') else { return false };
    if port.parse() != Ok(own.port()) {
        return false;
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let (own, loopbacks) = (own.ip().to_canonical(), ["127.0.0.1", "::1"]);
    let texts = if host == "localhost" { &loopbacks[..] } else { &[host] };
    texts.iter().filter_map(|text| text.parse::<IpAddr>().ok()).any(|target| {
        let target = match target.to_canonical() {
            // A connection to the unspecified address reaches this machine.
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        let is_covered = own.is_unspecified() && (own.is_ipv6() || target.is_ipv4());
        own == target || is_covered && (target.is_loopback() || is_local(target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_reached(own: &str, target: &str) -> bool {
        let machine: IpAddr = "192.0.2.9".parse().unwrap();
        accepts(own.parse().unwrap(), target, &|ip| ip == machine)
    }

    #[test]
    fn a_listener_is_reached_at_each_of_its_addresses() {
        let reached = [
            ("127.0.0.1:4059", "127.0.0.1:4059"),
            ("127.0.0.1:4059", "localhost:4059"),
            ("[::1]:4059", "localhost:4059"),
            ("0.0.0.0:4059", "127.0.0.7:4059"),
            ("0.0.0.0:4059", "0.0.0.0:4059"),
            ("0.0.0.0:4059", "192.0.2.9:4059"),
            ("[::]:4059", "192.0.2.9:4059"),
            ("[::]:4059", "[::1]:4059"),
            ("127.0.0.1:4059", "[::ffff:127.0.0.1]:4059"),
        ];
        for (own, target) in reached {
            assert!(is_reached(own, target), "{own} {target}");
        }
        let others = [
            ("127.0.0.1:4059", "127.0.0.1:4060"),
            ("127.0.0.1:4059", "127.0.0.2:4059"),
            ("0.0.0.0:4059", "192.0.2.8:4059"),
            ("0.0.0.0:4059", "[::1]:4059"),
            ("0.0.0.0:4059", "server.example:4059"),
        ];
        for (own, target) in others {
            assert!(!is_reached(own, target), "{own} {target}");
        }
    }

    #[test]
    fn sockets_of_one_port_overlap_unless_their_addresses_differ() {
        let overlaps =
            |one: &str, other: &str| overlap(one.parse().unwrap(), other.parse().unwrap());
        assert!(overlaps("127.0.0.1:1", "127.0.0.1:1") && overlaps("0.0.0.0:1", "127.0.0.1:1"));
        assert!(overlaps("[::]:1", "10.0.0.1:1") && overlaps("10.0.0.1:1", "[::]:1"));
        assert!(!overlaps("127.0.0.1:1", "127.0.0.2:1") && !overlaps("0.0.0.0:1", "[::1]:1"));
        assert!(!overlaps("127.0.0.1:0", "127.0.0.1:0") && !overlaps("0.0.0.0:1", "0.0.0.0:2"));
    }
}
