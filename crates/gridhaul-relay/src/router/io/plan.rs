//! Changes to the system that a hybrid router needs, and those that undo them.

use std::net::IpAddr;

use gridhaul_core::router::Probe;
use gridhaul_linux::{Htb, HtbClass, IpPrefix};
use gridhaul_scenario::relay::{RouterConfig, RouterLink, RouterShaper, network_prefixes};
use gridhaul_scenario::scenario::IpVersion;
use gridhaul_scenario::units::BitRate;

use super::ruleset;
use super::ruleset::{LINK_MASK, link_mark};
use super::step::{Iproute2, Step};

/// All changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// Of each link: settings and shaper of its device.
    pub devices: Vec<Vec<Step>>,
    /// Of each link: its routes, which the kernel removes when the device goes down.
    pub routes: Vec<Vec<Step>>,
    /// Rules that select routing tables, and the packet filter.
    pub rules: Vec<Step>,
}

/// Values of a device before the router has changed them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeviceBefore {
    pub reverse_path_filter: String,
    /// `None` if the device is not shaped.
    pub gso_max_segments: Option<String>,
}

/// Distance of two rules of a link: the second one follows that of table `main`, whose preference
/// is 32766.
pub(super) const AFTER_MAIN: u32 = 32_768;

/// Bytes of a probe without reports, with the larger headers.
const PROBE: u64 = IpVersion::V6.datagram_headers().get() + Probe::HEADER_BYTES as u64;

impl Plan {
    /// `reverse_path_filter` is the value for the devices of links; `link_headers` are the bytes of
    /// their packets below IP.
    pub(super) fn new(
        router: &RouterConfig,
        selected: &[usize],
        reverse_path_filter: &str,
        link_headers: &[u32],
    ) -> Self {
        let devices = router.link.values().zip(link_headers).map(|(link, link_header)| {
            let mut steps = vec![Step::Sysctl {
                name: reverse_path_filter_of(&link.device),
                value: reverse_path_filter.to_owned(),
            }];
            if let Some(shaper) = &link.shaper {
                steps.extend(shaper_steps(router, link, shaper, *link_header));
            }
            steps
        });
        let devices = devices.collect();
        let routes = router.link.values().enumerate();
        let routes = routes.map(|(number, link)| routes_of(router, number, link)).collect();
        let links = 0..router.link.len();
        let mut rules: Vec<_> = links.flat_map(|link| rules(router, "add", link)).collect();
        rules.push(Step::Ruleset(ruleset::table(router, selected)));
        Self { devices, routes, rules }
    }

    /// All steps in their order: a packet is marked only when its table is complete.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        let links = self.devices.iter().chain(&self.routes);
        links.flatten().chain(&self.rules)
    }
}

/// The steps that undo a plan, in their order. Each of them may have been undone already.
pub(super) fn undo(router: &RouterConfig, before: &[DeviceBefore]) -> Vec<Step> {
    let mut steps = vec![Step::Ruleset(ruleset::removal())];
    for (number, (link, before)) in router.link.values().zip(before).enumerate() {
        steps.extend(rules(router, "del", number));
        for version in versions(router) {
            let table = table(router, number);
            let arguments = format!("{} route flush table {table}", option(version));
            steps.push(Step::command(Iproute2::Ip, &arguments));
        }
        let device = &link.device;
        if let Some(segments) = &before.gso_max_segments {
            steps.push(Step::command(Iproute2::Tc, &format!("qdisc del dev {device} root")));
            steps.push(gso_step(device, segments));
        }
        steps.push(Step::Sysctl {
            name: reverse_path_filter_of(device),
            value: before.reverse_path_filter.clone(),
        });
    }
    steps
}

/// Whether there are destinations of IPv4, and of IPv6.
pub(super) fn versions(router: &RouterConfig) -> Vec<IpVersion> {
    let networks = network_prefixes(&router.destinations);
    let peer = router.peer.parse::<IpAddr>().ok();
    let addresses = || networks.iter().map(|(ip, _)| *ip).chain(peer);
    let is_used = |version: &IpVersion| addresses().any(|ip| IpVersion::of_address(ip) == *version);
    IpVersion::ALL.into_iter().filter(is_used).collect()
}

/// Whether routes use a gateway: those of its version of IP.
pub(super) fn is_used(router: &RouterConfig, gateway: &str) -> bool {
    let version = gateway.parse().map(IpVersion::of_address);
    version.is_ok_and(|version| versions(router).contains(&version))
}

/// Option of the program `ip`.
pub(super) const fn option(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "-4",
        IpVersion::V6 => "-6",
    }
}

/// Routing table of a link, which is also the preference of its rule.
pub(super) fn table(router: &RouterConfig, link: usize) -> u32 {
    router.table + link as u32
}

/// The setting of a device that drops packets whose source is reached over another device.
pub(super) fn reverse_path_filter_of(device: &str) -> String {
    format!("ipv4/conf/{device}/rp_filter")
}

/// Rules that select the table of a link: one for marked packets, and one for connections of this
/// machine, which need a route before they have a mark. The latter is used if no table before it
/// has a route, `main` included.
fn rules(router: &RouterConfig, action: &str, link: usize) -> Vec<Step> {
    let (table, mark) = (table(router, link), link_mark(link));
    let last = table + AFTER_MAIN;
    let selectors =
        [format!("pref {table} fwmark {mark:#x}/{LINK_MASK:#x}"), format!("pref {last} iif lo")];
    let of_version = |version: IpVersion| {
        let option = option(version);
        selectors.each_ref().map(|selector| {
            let arguments = format!("{option} rule {action} {selector} lookup {table}");
            Step::command(Iproute2::Ip, &arguments)
        })
    };
    versions(router).into_iter().flat_map(of_version).collect()
}

/// Routes to the destinations, and to the peer, which probes need.
fn routes_of(router: &RouterConfig, number: usize, link: &RouterLink) -> Vec<Step> {
    let mut networks = network_prefixes(&router.destinations);
    networks.extend(router.peer.parse::<IpAddr>().ok().map(|ip| {
        let host = IpPrefix::host(ip);
        (host.address, host.length)
    }));
    networks.sort_unstable();
    networks.dedup();
    let own = router.address.parse::<IpAddr>().ok();
    let gateways: Vec<IpAddr> = link.gateway.iter().filter_map(|ip| ip.parse().ok()).collect();
    let route = |(ip, length): (IpAddr, u8)| {
        let version = IpVersion::of_address(ip);
        let is_same = |other: &IpAddr| IpVersion::of_address(*other) == version;
        let next_hop = gateways.iter().find(|gateway| is_same(gateway));
        // The next hop need not be in the network of an address of the device.
        let via = next_hop.map_or(String::new(), |ip| format!(" via {ip} onlink"));
        let source = own.filter(is_same);
        let source = source.map_or(String::new(), |own| format!(" src {own}"));
        let (option, table) = (option(version), table(router, number));
        let device = &link.device;
        let arguments =
            format!("{option} route replace {ip}/{length}{via} dev {device}{source} table {table}");
        Step::command(Iproute2::Ip, &arguments)
    };
    networks.into_iter().map(route).collect()
}

/// The shaper of a device. Packets of segmentation offload would be bursts: HTB does not divide
/// them.
fn shaper_steps(
    router: &RouterConfig,
    link: &RouterLink,
    shaper: &RouterShaper,
    link_header: u32,
) -> Vec<Step> {
    let shares = shaper.share.values().map(|share| HtbClass {
        rate: share.guarantee,
        ceil: share.limit.unwrap_or(shaper.rate),
        destinations: Vec::new(),
    });
    let probes = HtbClass {
        rate: probe_rate(router, link).min(shaper.rate),
        ceil: shaper.rate,
        destinations: Vec::new(),
    };
    let htb = Htb {
        rate: shaper.rate,
        burst: shaper.burst,
        queue: shaper.queue,
        link_header,
        classes: std::iter::once(probes).chain(shares).collect(),
    };
    let commands = htb.commands(&link.device);
    let commands = commands.lines().map(|line| Step::command(Iproute2::Tc, line));
    let offload = gso_step(&link.device, "1");
    std::iter::once(offload).chain(commands).collect()
}

/// Twice the rate of the probes: they must not wait for other packets.
pub(super) fn probe_rate(router: &RouterConfig, link: &RouterLink) -> BitRate {
    // The peer reports large and small probes, and a large one is sent with every second small one.
    let large = link.probe_size.map_or(0, |size| size.get() / 2);
    let reports = if large > 0 { 2 } else { 1 } * router.link.len() as u64;
    let bits = 8 * (PROBE + Probe::REPORT_BYTES as u64 * reports + large);
    let interval = link.probe_interval.as_nanos().max(1);
    BitRate::from_bits_per_sec(2 * bits * 1_000_000_000 / interval)
}

fn gso_step(device: &str, segments: &str) -> Step {
    let arguments = format!("link set dev {device} gso_max_segs {segments}");
    Step::command(Iproute2::Ip, &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"
name = "terminal"
[router]
address = "10.9.0.2"
peer = "10.9.0.1"
destinations = ["10.9.0.0/24", "fd09::/64"]
[router.link.gprs]
device = "gprs0.7"
gateway = ["192.0.2.1", "fe80::1"]
[router.link.gprs.shaper]
rate = "60 kbit/s"
[router.link.dvbt]
device = "dvbt0"
"#;

    fn router() -> RouterConfig {
        let config = gridhaul_scenario::RelayConfig::from_toml(CONFIG, "r.toml").unwrap();
        config.router.unwrap()
    }

    #[test]
    fn a_link_has_a_table_with_a_rule_for_both_versions_of_ip() {
        let router = router();
        let text: Vec<_> =
            Plan::new(&router, &[0], "2", &[14, 0]).steps().map(|step| step.to_string()).collect();
        for line in [
            "sysctl -w net/ipv4/conf/gprs0.7/rp_filter=2",
            "ip -4 route replace 10.9.0.1/32 via 192.0.2.1 onlink dev gprs0.7 src 10.9.0.2 table \
             7100",
            "ip -4 route replace 10.9.0.0/24 via 192.0.2.1 onlink dev gprs0.7 src 10.9.0.2 table \
             7100",
            "ip -6 route replace fd09::/64 via fe80::1 onlink dev gprs0.7 table 7100",
            "ip -4 route replace 10.9.0.0/24 dev dvbt0 src 10.9.0.2 table 7101",
            "ip -4 rule add pref 7100 fwmark 0x10000/0xff0000 lookup 7100",
            "ip -6 rule add pref 7101 fwmark 0x20000/0xff0000 lookup 7101",
            "ip -6 rule add pref 39869 iif lo lookup 7101",
            "ip link set dev gprs0.7 gso_max_segs 1",
            "tc qdisc add dev gprs0.7 root handle 1: stab overhead -14 htb default 2",
        ] {
            assert!(text.iter().any(|found| found == line), "{line}\n{}", text.join("\n"));
        }
        assert!(text.last().unwrap().starts_with("nft -f - <<'END'\n"), "marks come last");
    }

    #[test]
    fn a_gateway_is_used_for_destinations_of_its_version() {
        let mut router = router();
        assert!(is_used(&router, "192.0.2.1") && is_used(&router, "fe80::1"));
        router.destinations.pop();
        assert!(is_used(&router, "192.0.2.1") && !is_used(&router, "fe80::1"));
    }

    #[test]
    fn the_removal_has_a_step_for_each_change() {
        let router = router();
        let before = [Some("65535".to_owned()), None].map(|gso_max_segments| DeviceBefore {
            reverse_path_filter: "1".to_owned(),
            gso_max_segments,
        });
        let text: Vec<_> = undo(&router, &before).iter().map(Step::to_string).collect();
        assert_eq!(
            text,
            [
                "nft -f - <<'END'\ndelete table inet gridhaul_router\nEND",
                "ip -4 rule del pref 7100 fwmark 0x10000/0xff0000 lookup 7100",
                "ip -4 rule del pref 39868 iif lo lookup 7100",
                "ip -6 rule del pref 7100 fwmark 0x10000/0xff0000 lookup 7100",
                "ip -6 rule del pref 39868 iif lo lookup 7100",
                "ip -4 route flush table 7100",
                "ip -6 route flush table 7100",
                "tc qdisc del dev gprs0.7 root",
                "ip link set dev gprs0.7 gso_max_segs 65535",
                "sysctl -w net/ipv4/conf/gprs0.7/rp_filter=1",
                "ip -4 rule del pref 7101 fwmark 0x20000/0xff0000 lookup 7101",
                "ip -4 rule del pref 39869 iif lo lookup 7101",
                "ip -6 rule del pref 7101 fwmark 0x20000/0xff0000 lookup 7101",
                "ip -6 rule del pref 39869 iif lo lookup 7101",
                "ip -4 route flush table 7101",
                "ip -6 route flush table 7101",
                "sysctl -w net/ipv4/conf/dvbt0/rp_filter=1",
            ]
        );
    }
}
