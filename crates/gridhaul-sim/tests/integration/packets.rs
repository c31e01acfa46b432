//! Packet sizes, and the count of segments with data.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

use crate::support;

/// Two nodes, a link with these keys in its forward direction, and flows.
fn run(forward: &str, rest: &str) -> Answer {
    let text = format!(
        "title = 'packets'\nduration = '10 s'\n[node]\na = {{}}\nb = {{}}\n\
         [link.line]\nfrom = 'a'\nto = 'b'\n\
         forward = {{ rate = '1 Mbit/s', delay = '10 ms'{forward} }}\n\
         reverse = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n{rest}"
    );
    let scenario = Scenario::from_toml(&text, "packets.toml").unwrap();
    Sim::default().run(&scenario, &NoProgress).unwrap()
}

fn mean(answer: &Answer, row: &str, metric: Metric) -> f64 {
    let point = &answer.points[0];
    let found = point.flows.iter().chain(&point.links).find(|found| found.name == row);
    found.and_then(|row| row.mean(metric)).unwrap_or_else(|| panic!("{row} has no {metric}"))
}

const FILE: &str = "[flow.file]\nfrom = 'a'\nto = 'b'\nload.transfer.size = '14600 B'\n";

/// 14,600 B are ten segments of 1460 B; SYN, pure FIN and acknowledgements are not segments with
/// data.
#[test]
fn segments_sent_are_segments_with_data() {
    for profile in ["rfc", "linux", "ns2"] {
        let stack =
            format!("stack = 's'\n[stack.s]\nprofile = '{profile}'\ncongestion_control = 'reno'\n");
        let flow = FILE.to_owned() + &stack;
        let answer = run("", &flow);
        assert_eq!(mean(&answer, "file", Metric::SegmentsSent), 10.0, "{profile}");
        assert_eq!(mean(&answer, "file", Metric::Retransmissions), 0.0, "{profile}");
        // The SYN is lost and retransmitted. It is not a segment with data.
        let answer = run(", loss.packets = [1]", &flow);
        assert!(mean(&answer, "file", Metric::CompletionTime) > 1.0, "{profile}: SYN was lost");
        assert_eq!(mean(&answer, "file", Metric::SegmentsSent), 10.0, "{profile}");
        assert_eq!(mean(&answer, "file", Metric::Retransmissions), 0.0, "{profile}");
        assert_eq!(mean(&answer, "file", Metric::RetransmissionRatio), 0.0, "{profile}");
        assert_eq!(mean(&answer, "file", Metric::Timeouts), 1.0, "{profile}");
        // The first segment with data is lost. It follows the SYN and, except in ns-2, the
        // acknowledgement of the SYN-ACK.
        let first = if profile == "ns2" { 2 } else { 3 };
        let answer = run(&format!(", loss.packets = [{first}]"), &flow);
        // In `linux`, the first acknowledgement is that of the second segment, after 2 · 12 + 20
        // ms. The tail loss probe, after two round-trip times of the handshake (42 ms), repeats
        // FIN, which carries no data.
        let retransmitted = 1.0;
        let sent = 10.0 + retransmitted;
        assert_eq!(mean(&answer, "file", Metric::Retransmissions), retransmitted, "{profile}");
        assert_eq!(mean(&answer, "file", Metric::SegmentsSent), sent, "{profile}");
        let ratio = mean(&answer, "file", Metric::RetransmissionRatio);
        assert_eq!(ratio, retransmitted / sent, "{profile}");
    }
}

/// Mean size of the packets that a direction delivers in a run of 10 s.
fn packet_bytes(answer: &Answer, direction: &str) -> f64 {
    let bytes = mean(answer, direction, Metric::LinkThroughput) * 10.0 / 8.0;
    (bytes / mean(answer, direction, Metric::PacketsOut)).round()
}

#[test]
fn the_ip_version_determines_the_header_size() {
    let load = "load.periodic = { size = '200 B', every = '1 s', synchronised = true }";
    let sizes = |ip: &str| {
        let flow = |transport: &str| {
            format!("[flow.up]\nfrom = 'a'\nto = 'b'\n{load}\n{ip}\n{transport}\n")
        };
        let datagrams = run("", &flow("transport = 'datagram'"));
        let stack = "stack = 's'\n[stack.s]\nhandshake = false\ntimestamps = false";
        let segments = run("", &flow(stack));
        let ends = ["line.forward", "line.reverse"];
        let [data, acknowledgement] = ends.map(|end| packet_bytes(&segments, end));
        [packet_bytes(&datagrams, "line.forward"), data, acknowledgement]
    };
    assert_eq!(sizes(""), [228.0, 240.0, 40.0]);
    assert_eq!(sizes("ip = 4"), [228.0, 240.0, 40.0]);
    assert_eq!(sizes("ip = 6"), [248.0, 260.0, 60.0]);
}

/// An aggregator opens connections with its own IP version, or else with that of the flow.
#[test]
fn upstream_connections_have_their_own_ip_version() {
    let upstream = |flow: &str, aggregator: &str| {
        let text = format!(
            "title = 'upstream'\nduration = '10 s'\n[node]\na = {{}}\nb = {{}}\n\
             [node.c.aggregator]\n{aggregator}\n\
             [link.one]\nfrom = 'a'\nto = 'c'\nboth = {{ rate = '1 Mbit/s', delay = '1 ms' }}\n\
             [link.two]\nfrom = 'c'\nto = 'b'\nboth = {{ rate = '1 Mbit/s', delay = '1 ms' }}\n\
             [stack.s]\nhandshake = false\ntimestamps = false\n\
             [flow.up]\nfrom = 'a'\nto = 'b'\nstack = 's'\n{flow}\n\
             load.periodic = {{ size = '200 B', every = '1 s', synchronised = true }}\n"
        );
        let scenario = Scenario::from_toml(&text, "upstream.toml").unwrap();
        let answer = Sim::default().run(&scenario, &NoProgress).unwrap();
        ["one.forward", "two.forward"].map(|direction| packet_bytes(&answer, direction))
    };
    assert_eq!(upstream("", ""), [240.0, 240.0]);
    assert_eq!(upstream("ip = 6", ""), [260.0, 260.0]);
    assert_eq!(upstream("ip = 6", "ip = 4"), [260.0, 240.0]);
    assert_eq!(upstream("", "ip = 6"), [240.0, 260.0]);
}

/// 20 datagrams at 0 wait for at most 10 s at 20 kbit/s. From 20 s on, each datagram finds an idle
/// link.
#[test]
fn the_queue_of_the_warm_up_is_not_measured() {
    let answer = |warmup: &str| {
        let keys = format!("duration = '30 s'\nwarmup = '{warmup}'");
        let flows = "[flow.f]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\n\
                     load.burst = { size = '1222 B', at = '0 s', count = 20, gap = '0 s' }\n\
                     [flow.g]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\nstart = '20 s'\n\
                     load.periodic = { size = '100 B', every = '1 s', synchronised = true }";
        let link = "rate = '20 kbit/s', delay = '0 ms', queue = '100 packets'";
        support::run(&support::two_nodes(&keys, link, flows))
    };
    // A datagram takes 0.5 s: 19, 18, ... 1 datagrams wait for half a second each.
    let whole = answer("0 s");
    assert_eq!(mean(&whole, "line.forward", Metric::QueueMax), 19.0);
    assert_eq!(mean(&whole, "line.forward", Metric::QueueMean), 190.0 * 0.5 / 30.0);
    // From 5 s on, 9 datagrams wait.
    let rest = answer("5 s");
    assert_eq!(mean(&rest, "line.forward", Metric::QueueMax), 9.0);
    assert_eq!(mean(&rest, "line.forward", Metric::QueueMean), 45.0 * 0.5 / 25.0);
    let late = answer("20 s");
    assert_eq!(mean(&late, "line.forward", Metric::QueueMax), 0.0);
    assert_eq!(mean(&late, "line.forward", Metric::QueueMean), 0.0);
}

/// 100 datagrams of 0.5 s each at 0: 99 - k wait in half-second k, and 39 when the run ends.
#[test]
fn the_mean_queue_includes_packets_that_still_wait_at_the_end() {
    let link = "rate = '20 kbit/s', delay = '0 ms', queue = '100 packets'";
    let flow = "[flow.f]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\n\
                load.burst = { size = '1222 B', at = '0 s', count = 100, gap = '0 s' }";
    for (warmup, expected) in [("0 s", 69.5), ("25 s", 44.5)] {
        let keys = format!("duration = '30 s'\nwarmup = '{warmup}'");
        let answer = support::run(&support::two_nodes(&keys, link, flow));
        assert_eq!(mean(&answer, "line.forward", Metric::QueueMean), expected);
    }
}

#[test]
fn captures_have_the_code_point_of_their_flow() {
    for (ip, at) in [("4", 1), ("6", 0)] {
        let flow = format!(
            "[flow.f]\nfrom = 'a'\nto = 'b'\nip = {ip}\ndscp = 'EF'\nload.transfer.size = '1 kB'"
        );
        let keys = "duration = '5 s'\nrecord.pcap = ['line']";
        let link = "rate = '1 Mbit/s', delay = '10 ms'";
        let packets = support::captured(&support::run(&support::two_nodes(keys, link, &flow)));
        assert!(packets.len() > 4);
        for packet in packets {
            let word = u16::from_be_bytes([packet.headers[0], packet.headers[1]]);
            // IPv4: the second octet; IPv6: the eight bits after the version. EF is 46.
            let octet = if at == 1 { word & 0xff } else { word >> 4 & 0xff };
            assert_eq!(octet >> 2, 46, "IPv{ip}");
        }
    }
}
