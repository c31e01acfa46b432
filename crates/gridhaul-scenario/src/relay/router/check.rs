//! Inconsistent values of a hybrid router.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{PacketMatch, RouterConfig, RouterLink, RouterShaper, TransportProtocol};
use crate::relay::prefix::{parse_prefix, prefix_error};
use crate::scenario::router_times::{
    detection_time_error, hold_time_error, probe_interval_error, probe_interval_max,
};
use crate::scenario::{Diagnostic, IpVersion, NAME_RULE, Scenario};
use crate::units::QueueLimit;

/// Each probe has up to two reports about each link: 228 bytes with eight links, which still fit a
/// probe on a narrow link. (Marks of packets have one byte for the link, which permits more.)
const LINKS_MAX: usize = 8;

/// Longest name of a device (`IFNAMSIZ` without the final zero).
const DEVICE_NAME_MAX: usize = 15;

/// Tables above those of the kernel (`rt_tables`), and preferences of rules before those of table
/// `main` (32766).
const TABLES: std::ops::RangeInclusive<u32> = 256..=32_000;

pub(in crate::relay) fn check(
    router: &RouterConfig,
    user: Option<&str>,
    found: &mut Vec<Diagnostic>,
) {
    if user.is_some() {
        let message = "a hybrid router changes routes and filters as long as it runs";
        found.push(Diagnostic::new("user", message, "remove user: run the relay as root"));
    }
    check_addresses(router, found);
    check_times(router, found);
    if !TABLES.contains(&router.table) {
        let message =
            format!("{} is not between {} and {}", router.table, TABLES.start(), TABLES.end());
        found.push(Diagnostic::new("router.table", message, "a usual value is 7100"));
    }
    if router.state.is_empty() {
        let remedy = "a usual value is \"/run/gridhaul\"";
        found.push(Diagnostic::new("router.state", "the folder has no name", remedy));
    }
    if !(2..=LINKS_MAX).contains(&router.link.len()) {
        let message = format!("expected 2 to {LINKS_MAX} links, found {}", router.link.len());
        found.push(Diagnostic::new("router.link", message, "add [router.link.<name>] with device"));
    }
    let mut devices = BTreeSet::new();
    for (name, link) in &router.link {
        let key = format!("router.link.{name}");
        check_name(&key, name, found);
        if !devices.insert(&link.device) {
            let message = format!("{:?} is the device of another link as well", link.device);
            found.push(Diagnostic::new(format!("{key}.device"), message, ""));
        }
        check_link(&key, link, found);
    }
    for (name, class) in &router.class {
        let key = format!("router.class.{name}");
        check_name(&key, name, found);
        check_packets(&format!("{key}.packets"), &class.packets, found);
        let links = format!("{key}.links");
        if class.links.is_empty() {
            found.push(Diagnostic::new(&links, "there is no link", "name links of the router"));
        }
        for (index, link) in class.links.iter().enumerate() {
            if !router.link.contains_key(link) {
                let names: Vec<_> = router.link.keys().map(String::as_str).collect();
                let message = format!("there is no link {link:?}");
                let remedy = format!("the links are {}", names.join(", "));
                found.push(Diagnostic::new(&links, message, remedy));
            } else if class.links[..index].contains(link) {
                let message = format!("{link:?} is named twice");
                found.push(Diagnostic::new(&links, message, "name each link once"));
            }
        }
    }
}

fn check_name(key: &str, name: &str, found: &mut Vec<Diagnostic>) {
    if !Scenario::is_name(name) {
        found.push(Diagnostic::new(key, format!("{name:?} is not a name"), NAME_RULE));
    }
}

fn check_addresses(router: &RouterConfig, found: &mut Vec<Diagnostic>) {
    let own = ip_address("router.address", &router.address, found);
    let peer = ip_address("router.peer", &router.peer, found);
    if let (Some(own), Some(peer)) = (own, peer) {
        if own == peer {
            let remedy = "write the address of the other router";
            found.push(Diagnostic::new("router.peer", "the peer is this router", remedy));
        } else if own.is_ipv4() != peer.is_ipv4() {
            let message = "the addresses of both routers have different versions of IP";
            found.push(Diagnostic::new("router.peer", message, ""));
        }
    }
    if router.port == 0 {
        found.push(Diagnostic::new("router.port", "the port is zero", "a usual value is 4784"));
    }
    if router.destinations.is_empty() {
        let remedy = "write for example [\"10.9.0.0/24\"], or [\"0.0.0.0/0\"] for all addresses";
        found.push(Diagnostic::new("router.destinations", "there is no destination", remedy));
    }
    check_prefixes("router.destinations", &router.destinations, found);
    check_prefixes("router.except", &router.except, found);
}

fn check_times(router: &RouterConfig, found: &mut Vec<Diagnostic>) {
    let limited = [
        ("detection_time", detection_time_error(router.detection_time), "1 s"),
        ("hold_time", hold_time_error(router.hold_time), "6 s"),
    ];
    for (key, error, usual) in limited {
        if let Some(message) = error {
            let remedy = format!("a usual value is \"{usual}\"");
            found.push(Diagnostic::new(format!("router.{key}"), message, remedy));
        }
    }
    for (name, link) in &router.link {
        if let Some(message) = probe_interval_error(link.probe_interval, router.detection_time) {
            let remedy = format!(
                "write \"{}\"; for a link that carries fewer probes, increase \
                 router.detection_time",
                probe_interval_max(router.detection_time)
            );
            let key = format!("router.link.{name}.probe_interval");
            found.push(Diagnostic::new(key, message, remedy));
        }
    }
}

fn check_link(key: &str, link: &RouterLink, found: &mut Vec<Diagnostic>) {
    let is_device_character =
        |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    let device = &link.device;
    let is_plain = device.chars().all(is_device_character) && device != "." && device != "..";
    if device.is_empty() || device.len() > DEVICE_NAME_MAX || !is_plain {
        found.push(Diagnostic::new(
            format!("{key}.device"),
            format!("{device:?} is not the name of a network device"),
            "`ip link` lists the devices; names have at most 15 letters, digits, `_`, `.` and `-`",
        ));
    }
    let gateway = format!("{key}.gateway");
    let hops: Vec<_> =
        link.gateway.iter().filter_map(|text| ip_address(&gateway, text, found)).collect();
    let versions: BTreeSet<_> = hops.iter().copied().map(IpVersion::of_address).collect();
    if versions.len() < hops.len() {
        let message = "there is more than one next hop for a version of IP";
        found.push(Diagnostic::new(gateway, message, ""));
    }
    let sizes = RouterLink::PROBE_SIZE_MIN..=RouterLink::PROBE_SIZE_MAX;
    if let Some(size) = link.probe_size.filter(|size| !sizes.contains(&size.get())) {
        let message = format!("{size} is not between {} B and {} B", sizes.start(), sizes.end());
        let remedy = "write the MTU of the path, such as \"1500 B\"";
        found.push(Diagnostic::new(format!("{key}.probe_size"), message, remedy));
    }
    if let Some(shaper) = &link.shaper {
        check_shaper(&format!("{key}.shaper"), shaper, found);
    }
}

fn check_shaper(key: &str, shaper: &RouterShaper, found: &mut Vec<Diagnostic>) {
    let mut at = |name: &str, message: String, remedy: &str| {
        found.push(Diagnostic::new(format!("{key}.{name}"), message, remedy));
    };
    // `sch_htb` rejects a rate of zero, and a queue without space drops each packet.
    let nothing = "no packet could be sent";
    if shaper.rate.as_bits_per_sec() == 0 {
        at("rate", nothing.to_owned(), "write the rate of the link, such as \"22 kbit/s\"");
    }
    if shaper.burst.get() == 0 {
        at("burst", nothing.to_owned(), "a usual value is \"1500 B\"");
    }
    let has_queue = match shaper.queue {
        QueueLimit::Packets(packets) => packets > 0,
        QueueLimit::Bytes(bytes) => bytes.get() > 0,
        QueueLimit::Unlimited => true,
    };
    if !has_queue {
        at("queue", nothing.to_owned(), "a usual value is \"100 packets\"");
    }
    let guaranteed: u64 =
        shaper.share.values().map(|share| share.guarantee.as_bits_per_sec()).sum();
    if guaranteed > shaper.rate.as_bits_per_sec() {
        let message = format!("the guarantees exceed the rate of {}", shaper.rate);
        at("share", message, "decrease a guarantee, or increase the rate");
    }
    for (name, share) in &shaper.share {
        if share.guarantee.as_bits_per_sec() == 0 {
            let remedy = "write a rate, or remove the share: other packets share what is left";
            at(&format!("share.{name}.guarantee"), "no rate is guaranteed".to_owned(), remedy);
        }
        if share.limit.is_some_and(|limit| limit < share.guarantee || limit > shaper.rate) {
            at(
                &format!("share.{name}.limit"),
                format!("expected a rate from {} to {}", share.guarantee, shaper.rate),
                "",
            );
        }
    }
    for (name, share) in &shaper.share {
        let key = format!("{key}.share.{name}");
        check_name(&key, name, found);
        check_packets(&format!("{key}.packets"), &share.packets, found);
    }
}

fn check_packets(key: &str, packets: &PacketMatch, found: &mut Vec<Diagnostic>) {
    check_prefixes(&format!("{key}.from"), &packets.from, found);
    check_prefixes(&format!("{key}.to"), &packets.to, found);
    let mut at = |name: &str, message: &str, remedy: &str| {
        found.push(Diagnostic::new(format!("{key}.{name}"), message, remedy));
    };
    let has_ports =
        matches!(packets.protocol, Some(TransportProtocol::Tcp | TransportProtocol::Udp));
    if !packets.ports.is_empty() && !has_ports {
        at("ports", "ports need a protocol that has ports", "add protocol = \"tcp\", or \"udp\"");
    }
    if packets.acknowledgements
        && packets.protocol.is_some_and(|protocol| protocol != TransportProtocol::Tcp)
    {
        at("acknowledgements", "only TCP has acknowledgements", "remove protocol");
    }
    let versions = |prefixes: &[String]| -> BTreeSet<IpVersion> {
        let parsed = prefixes.iter().filter_map(|text| parse_prefix(text));
        parsed.map(|(address, _)| IpVersion::of_address(address)).collect()
    };
    let (from, to) = (versions(&packets.from), versions(&packets.to));
    if !from.is_empty() && !to.is_empty() && from.is_disjoint(&to) {
        at("to", "no packet has a source and a destination of different versions of IP", "");
    }
    if *packets == PacketMatch::default() {
        let remedy = "add a condition, such as acknowledgements = true";
        found.push(Diagnostic::new(key, "all packets match", remedy));
    }
}

fn check_prefixes(key: &str, prefixes: &[String], found: &mut Vec<Diagnostic>) {
    for text in prefixes {
        if let Some(reason) = prefix_error(text) {
            found.push(Diagnostic::new(
                key,
                format!("{reason}, found {text:?}"),
                "write for example \"10.9.0.0/24\", or \"2001:db8::/32\"",
            ));
        }
    }
}

fn ip_address(key: &str, text: &str, found: &mut Vec<Diagnostic>) -> Option<IpAddr> {
    let parsed: Option<IpAddr> = text.parse().ok();
    if parsed.is_none() {
        let message = format!("expected an IP address, found {text:?}");
        found.push(Diagnostic::new(key, message, "write for example \"10.9.0.1\""));
    }
    parsed
}
