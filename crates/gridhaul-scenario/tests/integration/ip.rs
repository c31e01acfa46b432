//! The IP version in scenario files: accepted values, rejected values, and locations of errors.

use gridhaul_scenario::scenario::{IpVersion, Scenario};

fn read(flow: &str, rest: &str) -> Result<Scenario, String> {
    let text = format!(
        "title = 'ip'\nduration = '10 s'\n[node]\na = {{}}\nb = {{}}\n\
         [link.wire]\nfrom = 'a'\nto = 'b'\nboth = {{ rate = '1 Mbit/s' }}\n\
         [flow.up]\nfrom = 'a'\nto = 'b'\n{flow}\n{rest}"
    );
    Scenario::from_toml(&text, "ip.toml").map_err(|error| error.to_string())
}

const BULK: &str = "load = 'bulk'\nstack = 's'";

#[test]
fn the_ip_version_is_4_or_6_and_4_by_default() {
    for (key, ip) in [("", IpVersion::V4), ("\nip = 4", IpVersion::V4), ("\nip = 6", IpVersion::V6)]
    {
        let scenario = read(&format!("{BULK}{key}"), "[stack.s]\n").unwrap();
        assert_eq!(scenario.flow["up"].ip, ip);
        // The merged scenario equals the original.
        let text = toml::to_string(&scenario).unwrap();
        assert_eq!(Scenario::from_toml(&text, "again.toml").unwrap(), scenario);
        assert_eq!(text.contains("ip = 6"), ip == IpVersion::V6);
    }
}

#[test]
fn other_ip_versions_are_rejected_with_the_expected_values() {
    for wrong in ["5", "\"6\"", "-4", "6.0", "true"] {
        let error = read(&format!("{BULK}\nip = {wrong}"), "[stack.s]\n").unwrap_err();
        assert!(error.contains("flow.up.ip: expected the IP version, 4 or 6"), "{error}");
        assert!(error.contains(&format!("ip = {wrong}\n")) && error.contains('^'), "{error}");
    }
}

#[test]
fn a_header_size_of_the_other_ip_version_is_rejected_with_a_remedy() {
    let error = read(BULK, "[stack.s]\nheader = '60 B'\n").unwrap_err();
    assert!(error.contains("stack.s.header: flow.up.ip is 4"), "{error}");
    assert!(error.contains("header = '60 B'") && error.contains("^"), "{error}");
    assert!(error.contains("help: write flow.up.ip = 6 for IPv6, and remove `header`"), "{error}");
    let error = read(&format!("{BULK}\nip = 6"), "[stack.s]\nheader = '40 B'\n").unwrap_err();
    assert!(error.contains("flow.up.ip: flow.up.ip is 6, whose headers take 60 B"), "{error}");
    assert!(error.contains("help: write flow.up.ip = 4 for IPv4, and remove `header`"), "{error}");
    // The other end, proxies and aggregators also send packets of the flow.
    let other_end = "load = 'bulk'\nto_stack = 's'\nip = 6";
    assert!(read(other_end, "[stack.s]\nheader = '40 B'\n").is_err());
    let middle = |node: &str, ip: &str| {
        let text = format!(
            "title = 'ip'\nduration = '10 s'\n[node]\na = {{}}\nb = {{}}\nm = {{ {node} }}\n\
             [link.one]\nfrom = 'a'\nto = 'm'\nboth = {{ rate = '1 Mbit/s' }}\n\
             [link.two]\nfrom = 'm'\nto = 'b'\nboth = {{ rate = '1 Mbit/s' }}\n\
             [stack.s]\nheader = '40 B'\n\
             [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n{ip}\n"
        );
        Scenario::from_toml(&text, "ip.toml").map_err(|error| error.to_string())
    };
    assert!(middle("proxy = { mode = 'split', stack = 's' }", "ip = 6").is_err());
    assert!(middle("proxy = { mode = 'split', stack = 's' }", "ip = 4").is_ok());
    assert!(middle("aggregator = { stack = 's' }", "ip = 6").is_err());
    assert!(middle("aggregator = { stack = 's', ip = 4 }", "ip = 6").is_ok());
    let error = middle("aggregator = { stack = 's', ip = 6 }", "").unwrap_err();
    assert!(error.contains("node.m.aggregator.ip: "), "{error}");
}

#[test]
fn other_header_sizes_are_accepted_for_compression_and_tunnels() {
    for ip in ["ip = 4", "ip = 6"] {
        for header in ["20 B", "41 B", "84 B", "215 B"] {
            let stack = format!("[stack.s]\nheader = '{header}'\n");
            assert!(read(&format!("{BULK}\n{ip}"), &stack).is_ok(), "{ip} {header}");
        }
    }
    // The default header size of the IP version is redundant but valid.
    assert!(read(&format!("{BULK}\nip = 6"), "[stack.s]\nheader = '60 B'\n").is_ok());
    assert!(read(BULK, "[stack.s]\nheader = '40 B'\n").is_ok());
}

#[test]
fn longer_headers_leave_less_for_data() {
    let datagram = |size: &str, ip: &str| {
        let load = format!("load.periodic = {{ size = '{size}', every = '1 s' }}");
        read(&format!("transport = 'datagram'\n{load}\n{ip}"), "")
    };
    // Ethernet's MTU of 1,500 B without 28 B or 48 B.
    assert!(datagram("1472 B", "").is_ok() && datagram("1452 B", "ip = 6").is_ok());
    for (size, ip, largest) in [("1473 B", "", "1472 B"), ("1453 B", "ip = 6", "1452 B")] {
        let error = datagram(size, ip).unwrap_err();
        assert!(error.contains(&format!("at most {largest} in one packet, not {size}")), "{error}");
    }
    assert!(read(BULK, "[stack.s]\nmss = '65495 B'\n").is_ok());
    let error = read(&format!("{BULK}\nip = 6"), "[stack.s]\nmss = '65476 B'\n").unwrap_err();
    assert!(error.contains("stack.s.mss") && error.contains("65475 B"), "{error}");
}

#[test]
fn a_sweep_may_vary_the_ip_version() {
    let sweep = "[stack.s]\n[[sweep]]\nvary.'flow.up.ip' = [4, 6]\n";
    let points = read(BULK, sweep).unwrap().points().unwrap();
    let versions: Vec<_> = points.iter().map(|point| point.scenario.flow["up"].ip).collect();
    assert_eq!(versions, IpVersion::ALL);
    assert_eq!(points[1].parameters["flow.up.ip"], "6");
}
