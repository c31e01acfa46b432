//! The end of a router leaves the system as it was before.

use std::net::UdpSocket;

use crate::network::{Network, SIDES, Side, is_possible, wait_until};

const SHAPER: &str = "link.gprs.shaper.rate = \"60 kbit/s\"\n\
                      link.gprs.shaper.share.user = { guarantee = \"9 kbit/s\", \
                      packets = { to = [\"10.9.0.1\"], protocol = \"icmp\" } }\n";

/// Port of the probes.
const PROBES: u16 = 4_784;

/// Everything that a router changes.
fn snapshot(network: &Network, side: Side) -> String {
    let commands = [
        "ip -4 rule",
        "ip -6 rule",
        "ip route show table all",
        "ip -6 route show table all",
        "nft list ruleset",
        "tc qdisc",
        "tc class show dev gprs0",
        "tc filter show dev gprs0",
        "ip -d link",
        "sysctl net/ipv4/conf/gprs0 net/ipv4/conf/dvbt0",
    ];
    commands.map(|command| network.run(side, command)).join("\n")
}

#[test]
fn routes_rules_filters_and_shapers_are_those_of_before() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new([SHAPER, ""]);
    // Settings of others stay.
    network.run(Side::Terminal, "nft add table inet gridhaul_other");
    network.run(Side::Terminal, "ip rule add pref 500 fwmark 7 lookup 500");
    network.run(Side::Terminal, "ip route add 192.0.2.0/24 dev gprs0 table 500");
    let before = SIDES.map(|side| snapshot(&network, side));
    network.start_both();
    assert_ne!(snapshot(&network, Side::Terminal), before[0]);
    network.stop(Side::Terminal, "-TERM");
    assert_eq!(snapshot(&network, Side::Terminal), before[0], "after SIGTERM");

    network.start(Side::Terminal);
    network.stop(Side::Terminal, "-KILL");
    assert_ne!(snapshot(&network, Side::Terminal), before[0]);
    let done = network.relay(Side::Terminal, &["--remove"]);
    assert_eq!(String::from_utf8_lossy(&done.stdout), "all changes are undone\n");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    assert_eq!(snapshot(&network, Side::Terminal), before[0], "after --remove");
    let done = network.relay(Side::Terminal, &["--remove"]);
    assert_eq!(String::from_utf8_lossy(&done.stdout), "there is nothing to undo\n");

    // A router that was killed and starts again continues with its own record.
    network.stop(Side::Centre, "-KILL");
    network.start(Side::Centre);
    network.stop(Side::Centre, "-TERM");
    assert_eq!(snapshot(&network, Side::Centre), before[1], "after kill, start and SIGTERM");
}

#[test]
fn a_second_process_changes_nothing_while_the_router_runs() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new([SHAPER, ""]);
    let before = snapshot(&network, Side::Terminal);
    // Both, so that no link changes meanwhile.
    network.start_both();
    let running = snapshot(&network, Side::Terminal);
    // Without the address of the running one.
    let file = network.config(Side::Terminal);
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("management"));
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    for options in [&[][..], &["--remove"]] {
        let refused = network.relay(Side::Terminal, options);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(error.contains("this hybrid router is running"), "{options:?}: {error}");
        assert!(!refused.status.success(), "{options:?}");
        assert_eq!(snapshot(&network, Side::Terminal), running, "{options:?}");
    }
    network.stop(Side::Terminal, "-TERM");
    assert_eq!(snapshot(&network, Side::Terminal), before);
}

#[test]
fn a_router_whose_record_was_deleted_undoes_its_changes() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new([SHAPER, ""]);
    let before = snapshot(&network, Side::Terminal);
    network.start_both();
    let record = network.config(Side::Terminal).with_file_name("state/terminal.router.json");
    std::fs::remove_file(&record).unwrap();
    let refused = network.relay(Side::Terminal, &["--remove"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("this hybrid router is running"), "{error}");
    network.stop(Side::Terminal, "-TERM");
    assert_eq!(snapshot(&network, Side::Terminal), before, "after SIGTERM");

    // A killed router cannot: a removal that has nothing to read says so.
    network.start(Side::Terminal);
    network.stop(Side::Terminal, "-KILL");
    std::fs::remove_file(&record).unwrap();
    let refused = network.relay(Side::Terminal, &["--remove"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("there is no record"), "{error}");
    assert!(!refused.status.success());
}

#[test]
fn a_start_that_fails_changes_nothing() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new([SHAPER, ""]);
    let before = snapshot(&network, Side::Terminal);
    let occupy = || UdpSocket::bind((Side::Terminal.address(), PROBES)).unwrap();
    let refuse = |network: &Network| {
        let other = network.enter(Side::Terminal, occupy);
        let refused = network.relay(Side::Terminal, &[]);
        drop(other);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(error.contains("opening the probes of link dvbt"), "{error}");
        snapshot(network, Side::Terminal)
    };
    assert_eq!(refuse(&network), before);
    // The changes of a router that was killed stay as well: packets use them.
    network.start(Side::Terminal);
    network.stop(Side::Terminal, "-KILL");
    let killed = snapshot(&network, Side::Terminal);
    assert_ne!(killed, before);
    assert_eq!(refuse(&network), killed);
}

#[test]
fn a_dry_run_changes_nothing_and_prints_commands_that_work() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new([SHAPER, ""]);
    let before = snapshot(&network, Side::Terminal);
    let done = network.relay(Side::Terminal, &["--dry-run"]);
    assert!(done.status.success());
    assert_eq!(snapshot(&network, Side::Terminal), before);
    let script = network.config(Side::Terminal).with_extension("sh");
    std::fs::write(&script, &done.stdout).unwrap();
    network.run(Side::Terminal, &format!("sh -e {}", script.display()));
    let by_hand = snapshot(&network, Side::Terminal);
    assert_ne!(by_hand, before);
    // The router refuses to replace what it has not made.
    let refused = network.relay(Side::Terminal, &[]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("the packet filter has a table inet gridhaul_router"), "{error}");
    network.run(Side::Terminal, "nft delete table inet gridhaul_router");
    let refused = network.relay(Side::Terminal, &[]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("router.table: table or preference 7100"), "{error}");
    for table in [7_100, 7_101] {
        for preference in [table, table + 32_768] {
            network.run(Side::Terminal, &format!("ip rule del pref {preference}"));
        }
        network.run(Side::Terminal, &format!("ip route flush table {table}"));
    }
    let refused = network.relay(Side::Terminal, &[]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("router.link.gprs.shaper: gprs0 has a queueing discipline"), "{error}");
    network.run(Side::Terminal, "tc qdisc del dev gprs0 root");
    network.run(Side::Terminal, "ip link set gprs0 gso_max_segs 65535");
    for device in ["gprs0", "dvbt0"] {
        network.run(Side::Terminal, &format!("sysctl -w net/ipv4/conf/{device}/rp_filter=0"));
    }
    // The same state as by hand, as the router makes it.
    network.start(Side::Terminal);
    wait_until("the same state", || snapshot(&network, Side::Terminal) == by_hand);
}

#[test]
fn a_device_that_does_not_exist_is_named_and_its_link_is_used_when_it_does() {
    if !is_possible() {
        return;
    }
    let keys = "link.lte.device = \"lte7\"\nlink.lte.shaper.rate = \"1 Mbit/s\"\n\
                class.lte = { packets = { protocol = \"udp\" }, links = [\"lte\"] }\n";
    let mut network = Network::new([keys, ""]);
    let before = snapshot(&network, Side::Terminal);
    let checked = network.check(Side::Terminal);
    let error = String::from_utf8_lossy(&checked.stderr);
    assert!(error.contains("router.link.lte.device: there is no network device \"lte7\""));
    network.start(Side::Terminal);
    assert_ne!(network.link(Side::Terminal, Some("lte")), "lte");
    network.run(Side::Terminal, "ip link add lte7 type veth peer name lte8");
    for device in ["lte8", "lte7"] {
        network.run(Side::Terminal, &format!("ip link set {device} up"));
    }
    let is_routed = |network: &Network| {
        let routes = network.run(Side::Terminal, "ip route show table all");
        routes.contains("dev lte7 table 7102")
    };
    wait_until("the link has its routes", || is_routed(&network));
    wait_until("the link has its shaper", || {
        network.run(Side::Terminal, "tc qdisc show dev lte7").contains("htb 1:")
    });
    wait_until("the class uses it", || network.link(Side::Terminal, Some("lte")) == "lte");

    // The device is created again while no router runs.
    network.stop(Side::Terminal, "-KILL");
    network.run(Side::Terminal, "ip link del lte7");
    network.start(Side::Terminal);
    network.stop(Side::Terminal, "-TERM");
    assert_eq!(snapshot(&network, Side::Terminal), before);
}

#[test]
fn a_router_starts_while_a_device_is_down_and_uses_its_link_later() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new([SHAPER, ""]);
    let is_routed = |network: &Network| {
        let routes = network.run(Side::Terminal, "ip route show table all");
        routes.contains("dev dvbt0 table 7100")
    };
    network.run(Side::Terminal, "ip link set dvbt0 down");
    network.start(Side::Terminal);
    wait_until("the other link", || network.link(Side::Terminal, None) == "gprs");
    assert!(!is_routed(&network));
    // A router that was killed starts as well, and continues.
    network.stop(Side::Terminal, "-KILL");
    network.start(Side::Terminal);
    wait_until("the other link", || network.link(Side::Terminal, None) == "gprs");
    network.run(Side::Terminal, "ip link set dvbt0 up");
    wait_until("the device has its routes", || is_routed(&network));
    wait_until("the link is used", || network.link(Side::Terminal, None) == "dvbt");
}

#[test]
fn an_ethernet_link_without_a_next_hop_is_noted() {
    if !is_possible() {
        return;
    }
    let network = Network::new(["link.dvbt.gateway = [\"10.9.0.1\"]\n", ""]);
    let noted = |network: &Network| {
        let checked = network.check(Side::Terminal);
        assert!(checked.status.success());
        String::from_utf8_lossy(&checked.stdout).into_owned()
    };
    assert!(!noted(&network).contains("note:"), "the peer answers for its own address");
    let file = network.config(Side::Terminal);
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace("[\"10.9.0.1\"]\nstate", "[\"192.168.1.0/24\"]\nstate");
    std::fs::write(&file, text).unwrap();
    let text = noted(&network);
    assert!(text.contains("note: router.link.gprs.gateway: gprs0 is an Ethernet device"), "{text}");
    assert!(!text.contains("router.link.dvbt"), "{text}");
}
