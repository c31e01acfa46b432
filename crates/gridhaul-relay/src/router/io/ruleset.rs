//! The packet filter of a hybrid router (nft(8)): marks each packet to the peer with its link, by
//! which a rule selects the routing table, and gives packets of a share the priority of its class.

use std::net::IpAddr;

use gridhaul_linux::{Htb, MarkRule};
use gridhaul_scenario::relay::{PacketMatch, RouterConfig, TransportProtocol, network_prefixes};
use gridhaul_scenario::scenario::{IpVersion, OpeningSide};

/// The table, of which a network namespace has one.
pub(super) const TABLE: &str = "inet gridhaul_router";
pub(super) const TABLE_NAME: &str = "gridhaul_router";

/// Bits of the mark of a packet that have the link, and bit of a pure acknowledgement. Other bits
/// are left to other programs.
pub(super) const LINK_MASK: u32 = 0x00ff_0000;
const ACKNOWLEDGEMENT: u32 = 0x0100_0000;

/// The link of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selection {
    pub class: usize,
    pub link: usize,
}

/// Mark of packets of a link.
pub(super) const fn link_mark(link: usize) -> u32 {
    (link as u32 + 1) << 16
}

/// A transaction that creates the table, in which each class uses its link. A former table of the
/// same name is replaced. The last class has all packets that no other class has.
pub(super) fn table(router: &RouterConfig, selected: &[usize]) -> String {
    let mut text = format!("table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{\n");
    let devices: Vec<_> = router.link.values().map(|link| format!("{:?}", link.device)).collect();
    let devices = devices.join(", ");
    append_chain(
        &mut text,
        "prerouting",
        &[
            "type filter hook prerouting priority mangle; policy accept;".to_owned(),
            // Packets of the peer are not sent back.
            format!("iifname {{ {devices} }} return"),
            "fib daddr type != unicast return".to_owned(),
            "jump select".to_owned(),
        ],
    );
    append_chain(
        &mut text,
        "output",
        &[
            "type route hook output priority mangle; policy accept;".to_owned(),
            "fib daddr type != unicast return".to_owned(),
            "jump select".to_owned(),
        ],
    );
    append_chain(&mut text, "postrouting", &priorities(router));
    append_chain(&mut text, "select", &destinations(router));
    append_chain(&mut text, "classes", &classes(router));
    if matches(router).any(|packets| packets.acknowledgements) {
        append_chain(&mut text, "acknowledgement", &acknowledgements());
    }
    for (class, link) in selected.iter().enumerate() {
        append_chain(&mut text, &chain(class), &[marking(*link)]);
    }
    text + "}\n"
}

/// The rules that let classes use other links.
pub(super) fn selection(changes: &[Selection]) -> Vec<MarkRule> {
    let rule = |Selection { class, link }: &Selection| MarkRule {
        chain: chain(*class),
        keep: !LINK_MASK,
        set: link_mark(*link),
    };
    changes.iter().map(rule).collect()
}

/// A transaction that removes the table.
pub(super) fn removal() -> String {
    format!("delete table {TABLE}\n")
}

fn append_chain(text: &mut String, name: &str, rules: &[String]) {
    let rules: String = rules.iter().map(|rule| format!("    {rule}\n")).collect();
    *text += &format!("  chain {name} {{\n{rules}  }}\n");
}

/// The chain of a class, which has one rule.
fn chain(class: usize) -> String {
    format!("class_{class}")
}

fn marking(link: usize) -> String {
    format!("meta mark set meta mark & {:#010x} | {:#010x}", !LINK_MASK, link_mark(link))
}

/// Packets to the destinations that have no link yet: probes choose theirs.
fn destinations(router: &RouterConfig) -> Vec<String> {
    let mut rules = vec![format!("meta mark & {LINK_MASK:#010x} != 0 return")];
    let except = network_prefixes(&router.except);
    rules.extend(except.into_iter().map(|(ip, length)| format!("{}return", to((ip, length)))));
    let destinations = network_prefixes(&router.destinations);
    let classes = destinations.into_iter();
    rules.extend(classes.map(|(ip, length)| format!("{}goto classes", to((ip, length)))));
    rules
}

/// Condition on the destination address.
fn to(prefix: (IpAddr, u8)) -> String {
    address("daddr", prefix)
}

fn address(field: &str, (ip, length): (IpAddr, u8)) -> String {
    match (ip, length) {
        (IpAddr::V4(_), 0) => "meta nfproto ipv4 ".to_owned(),
        (IpAddr::V6(_), 0) => "meta nfproto ipv6 ".to_owned(),
        (IpAddr::V4(ip), _) => format!("ip {field} {ip}/{length} "),
        (IpAddr::V6(ip), _) => format!("ip6 {field} {ip}/{length} "),
    }
}

fn classes(router: &RouterConfig) -> Vec<String> {
    let mut rules = Vec::new();
    if matches(router).any(|packets| packets.acknowledgements) {
        rules.push("jump acknowledgement".to_owned());
    }
    for (number, class) in router.class.values().enumerate() {
        let conditions = conditions(&class.packets).into_iter();
        rules.extend(conditions.map(|condition| format!("{condition}goto class_{number}")));
    }
    rules.push(format!("goto class_{}", router.class.len()));
    rules
}

fn matches(router: &RouterConfig) -> impl Iterator<Item = &PacketMatch> {
    let shapers = router.link.values().filter_map(|link| link.shaper.as_ref());
    let shares = shapers.flat_map(|shaper| shaper.share.values().map(|share| &share.packets));
    router.class.values().map(|class| &class.packets).chain(shares)
}

/// TCP segments without data: their length is that of the headers. Nothing in nft(8) computes it,
/// so that there is a rule for each length of the TCP header, without options of IP.
fn acknowledgements() -> Vec<String> {
    let flags = "tcp flags & (fin | syn | rst | psh | urg | ack) != ack return".to_owned();
    let mark = format!("meta mark set meta mark | {ACKNOWLEDGEMENT:#010x} return");
    // Words of 32 bits in the TCP header (RFC 9293, section 3.1); that of IPv4 has five, and the
    // length of IPv6 does not include its own header (RFC 8200, section 3).
    let lengths = 5..=15;
    let v4 = lengths.clone().map(|words| {
        let length = (words + 5) * 4;
        format!("ip hdrlength 5 ip length {length} tcp doff {words} {mark}")
    });
    let v6 = lengths.map(|words| {
        let length = words * 4;
        format!("ip6 nexthdr tcp ip6 length {length} tcp doff {words} {mark}")
    });
    [flags].into_iter().chain(v4).chain(v6).collect()
}

/// Classes of the shapers, by device. Probes of a link have the first class.
fn priorities(router: &RouterConfig) -> Vec<String> {
    let mut rules = vec!["type filter hook postrouting priority mangle; policy accept;".to_owned()];
    let peer = router.peer.parse::<IpAddr>().ok();
    for link in router.link.values() {
        let Some(shaper) = &link.shaper else { continue };
        let mut rule = |condition: &str, class: usize| {
            let class = Htb::class_id(class);
            let device = &link.device;
            rules.push(format!("oifname {device:?} {condition}meta priority set {class} accept"));
        };
        if let Some(peer) = peer {
            let length = if peer.is_ipv6() { 128 } else { 32 };
            rule(&format!("{}udp dport {} ", to((peer, length)), router.port), 0);
        }
        for (number, share) in shaper.share.values().enumerate() {
            for condition in conditions(&share.packets) {
                rule(&condition, number + 1);
            }
        }
    }
    rules
}

/// Conditions of which a packet meets at least one, each with a space at its end.
fn conditions(packets: &PacketMatch) -> Vec<String> {
    let mut common = String::new();
    if packets.acknowledgements {
        common += &format!("meta mark & {ACKNOWLEDGEMENT:#010x} != 0 ");
    }
    match packets.protocol {
        Some(TransportProtocol::Tcp) => common += "meta l4proto tcp ",
        Some(TransportProtocol::Udp) => common += "meta l4proto udp ",
        Some(TransportProtocol::Icmp) => common += "meta l4proto { icmp, ipv6-icmp } ",
        None => {}
    }
    match packets.opened_by {
        // The packet is on its way to the peer.
        Some(OpeningSide::ThisSide) => common += "ct direction original ",
        Some(OpeningSide::Peer) => common += "ct direction reply ",
        None => {}
    }
    let ports: Vec<_> = packets.ports.iter().map(u16::to_string).collect();
    let ports = ports.join(", ");
    let by_port = if packets.ports.is_empty() {
        vec![common]
    } else {
        ["sport", "dport"].map(|field| format!("{common}th {field} {{ {ports} }} ")).to_vec()
    };
    let (from, to) = (network_prefixes(&packets.from), network_prefixes(&packets.to));
    let mut found = Vec::new();
    for condition in by_port {
        for addresses in address_pairs(&from, &to) {
            found.push(format!("{addresses}{condition}"));
        }
    }
    found
}

/// Conditions on source and destination, for all pairs of the same version of IP.
fn address_pairs(from: &[(IpAddr, u8)], to: &[(IpAddr, u8)]) -> Vec<String> {
    let texts = |field: &str, prefixes: &[(IpAddr, u8)]| -> Vec<(Option<IpVersion>, String)> {
        if prefixes.is_empty() {
            return vec![(None, String::new())];
        }
        let conditions = prefixes
            .iter()
            .map(|prefix| (Some(IpVersion::of_address(prefix.0)), address(field, *prefix)));
        conditions.collect()
    };
    let (sources, destinations) = (texts("saddr", from), texts("daddr", to));
    let mut pairs = Vec::new();
    for (source_version, source) in &sources {
        for (version, destination) in &destinations {
            if source_version.is_none() || version.is_none() || source_version == version {
                pairs.push(format!("{source}{destination}"));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(keys: &str) -> PacketMatch {
        let text = format!(
            "name = \"r\"\n[router]\naddress = \"10.9.0.2\"\npeer = \"10.9.0.1\"\n\
             destinations = [\"0.0.0.0/0\"]\nlink.a.device = \"a\"\nlink.b.device = \"b\"\n\
             [router.class.c]\nlinks = [\"b\"]\npackets = {{ {keys} }}\n"
        );
        let config = gridhaul_scenario::RelayConfig::from_toml(&text, "r.toml").unwrap();
        config.router.unwrap().class["c"].packets.clone()
    }

    #[test]
    fn a_rule_has_all_conditions_and_there_is_one_for_each_pair_of_addresses() {
        let keys = "protocol = \"tcp\", ports = [80, 443], opened_by = \"peer\", \
                    from = [\"10.1.2.3/16\", \"fd00::/8\"], to = [\"10.9.0.0/24\"]";
        let expected = ["sport", "dport"].map(|field| {
            format!(
                "ip saddr 10.1.0.0/16 ip daddr 10.9.0.0/24 meta l4proto tcp ct direction reply \
                 th {field} {{ 80, 443 }} "
            )
        });
        assert_eq!(conditions(&packets(keys)), expected);
        let keys = "acknowledgements = true, from = [\"0.0.0.0/0\", \"::/0\"]";
        let expected = ["ipv4", "ipv6"]
            .map(|version| format!("meta nfproto {version} meta mark & 0x01000000 != 0 "));
        assert_eq!(conditions(&packets(keys)), expected);
    }

    #[test]
    fn marks_leave_the_bits_of_other_programs() {
        let rule = MarkRule { chain: "class_3".to_owned(), keep: 0xff00_ffff, set: 0x0002_0000 };
        assert_eq!(selection(&[Selection { class: 3, link: 1 }]), [rule]);
        assert_eq!(marking(1), "meta mark set meta mark & 0xff00ffff | 0x00020000");
    }
}
