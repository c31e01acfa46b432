//! Path-MTU discovery, black holes, and MSS clamping.

use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, Unsupported};
use gridhaul_sim::Sim;

use crate::schedulers::{close, mean, run};

const PATH_MTU: &str = include_str!("../../../../scenarios/path-mtu.toml");

/// Goodput of segments with this payload in packets of this size, over the tunnel.
fn goodput(payload: f64, packet: f64) -> f64 {
    10.0e6 * payload / packet
}

/// The scenario without its sweep: a tunnel whose gateway reports its MTU.
fn reported() -> String {
    PATH_MTU.split("[[sweep]]").next().unwrap().to_owned()
}

fn upload(answer: &Answer, point: usize, metric: Metric) -> f64 {
    let rows = &answer.points[point].flows;
    rows.iter().find(|row| row.name == "upload").and_then(|row| row.mean(metric)).unwrap()
}

/// The calculation is in the comment of the scenario.
#[test]
fn the_four_cases_have_the_calculated_goodput() {
    let answer = run(PATH_MTU);
    let of_flow = |point, metric| upload(&answer, point, metric);
    // Readings share the tunnel with the upload.
    close(of_flow(0, Metric::Goodput), goodput(1_348.0, 1_400.0), 0.002);
    assert_eq!(of_flow(1, Metric::Goodput), 0.0);
    close(of_flow(2, Metric::Goodput), goodput(1_024.0, 1_076.0), 0.002);
    close(of_flow(3, Metric::Goodput), goodput(1_348.0, 1_400.0), 0.002);
    assert!(of_flow(1, Metric::Timeouts) > 0.0);
    for point in &answer.points {
        let readings = point.flows.iter().find(|row| row.name == "readings").unwrap();
        // The last one may be under way at the end.
        assert!(readings.mean(Metric::Messages).unwrap() >= 19.0);
    }
}

/// RFC 1191, section 6.4: the report triggers retransmissions at once, of all data that was too
/// large, and only once.
#[test]
fn a_report_replaces_the_first_flight_without_a_timeout() {
    let text = reported().replace("warmup = \"6 s\"", "warmup = \"0 s\"");
    let answer = run(&text);
    // Ten segments of 1,448 B in parts of 1,348 B and 100 B.
    assert_eq!(mean(&answer, "upload", Metric::Retransmissions), 20.0);
    assert_eq!(mean(&answer, "upload", Metric::Timeouts), 0.0);
    // The report for the first segment arrives after 2 ms and the transmission times on the LAN;
    // slow start then takes seven round trips.
    let lost_time = 10.0 * 0.05;
    let sent = mean(&answer, "upload", Metric::Goodput);
    close(sent, goodput(1_348.0, 1_400.0), lost_time / 16.0);
    // Clamping prevents the loss.
    let clamped = run(&text.replace("1460 B", "1360 B"));
    assert_eq!(mean(&clamped, "upload", Metric::Retransmissions), 0.0);
}

#[test]
fn every_profile_and_algorithm_adapts_to_reports() {
    let stacks = [
        "profile = \"linux\"\nsack = false\n",
        "profile = \"linux\"\ncongestion_control = \"bbr\"\n",
        "profile = \"linux\"\ncongestion_control = \"vegas\"\n",
        "profile = \"rfc\"\n",
        "profile = \"rfc\"\ncongestion_control = \"sack\"\n",
        "profile = \"rfc\"\ncongestion_control = \"cubic\"\n",
        "profile = \"ns2\"\ntimestamps = true\n",
        "profile = \"ns2\"\ntimestamps = true\ncongestion_control = \"reno\"\n",
    ];
    for stack in stacks {
        let text = reported().replace("profile = \"linux\"\n", stack);
        let answer = run(&text.replace("warmup = \"6 s\"", "warmup = \"0 s\""));
        let sent = mean(&answer, "upload", Metric::Goodput);
        assert!(sent > 0.9 * goodput(1_348.0, 1_400.0), "{stack}: {sent}");
        assert_eq!(mean(&answer, "upload", Metric::Timeouts), 0.0, "{stack}");
        let retransmissions = mean(&answer, "upload", Metric::Retransmissions);
        assert!((2.0..=20.0).contains(&retransmissions), "{stack}: {retransmissions}");
    }
}

/// The segment size decreases until packets pass: 1,024 B are too large for an MTU of 600 B.
#[test]
fn probing_after_timeouts_halves_the_segment_size_until_packets_pass() {
    let text = reported()
        .replace("packet_too_big = \"icmp\"", "packet_too_big = \"black_hole\"")
        .replace("mtu_probing = false", "mtu_probing = true")
        .replace("1400 B", "600 B")
        .replace("warmup = \"6 s\"", "warmup = \"12 s\"")
        .replace("duration = \"16 s\"", "duration = \"22 s\"");
    close(mean(&run(&text), "upload", Metric::Goodput), goodput(512.0, 564.0), 0.003);
}

#[test]
fn reports_of_ipv6_and_of_the_reverse_direction_reach_their_sender() {
    let six = reported().replace("load = \"bulk\"", "load = \"bulk\"\nip = 6");
    // Headers of 60 B, and timestamps.
    close(mean(&run(&six), "upload", Metric::Goodput), goodput(1_328.0, 1_400.0), 0.002);
    let download = reported().replace(
        "from = \"substation\"\nto = \"centre\"\nstack = \"host\"\nload = \"bulk\"",
        "from = \"centre\"\nto = \"substation\"\nstack = \"host\"\nload = \"bulk\"",
    );
    close(mean(&run(&download), "upload", Metric::Goodput), goodput(1_348.0, 1_400.0), 0.002);
}

/// A host offers and sends no larger segments than its own link carries.
#[test]
fn a_host_knows_the_mtu_of_its_own_link() {
    for (link, other) in [("lan", "tunnel"), ("backbone", "tunnel")] {
        let text = reported()
            .replace(", mtu = \"1400 B\", packet_too_big = \"icmp\"", "")
            .replace("warmup = \"6 s\"", "warmup = \"0 s\"");
        let (before, after) = text.split_once(&format!("[link.{link}]")).unwrap();
        let after = after.replacen(
            "delay = \"1 ms\"",
            "delay = \"1 ms\", mtu = \"1400 B\", packet_too_big = \"black_hole\"",
            1,
        );
        let answer = run(&format!("{before}[link.{link}]{after}"));
        assert_eq!(mean(&answer, "upload", Metric::Retransmissions), 0.0, "{link}");
        let packets = mean(&answer, &format!("{other}.forward"), Metric::Utilisation);
        assert!(packets > 0.9);
    }
}

fn refused(text: &str) -> Vec<Unsupported> {
    let scenario = Scenario::from_toml(text, "test.toml").unwrap();
    Sim::default().supports(&scenario).unwrap_err()
}

#[test]
fn reports_without_a_path_and_proxies_are_refused() {
    let one_way = reported()
        .replace("load = \"bulk\"", "load = \"bulk\"\nreverse_route = [\"bypass\"]")
        + "\n[link.bypass]\nfrom = \"centre\"\nto = \"substation\"\n\
           forward = { rate = \"1 Mbit/s\" }\n";
    let keys: Vec<_> = refused(&one_way).into_iter().map(|found| found.key).collect();
    assert_eq!(keys, ["link.tunnel.forward.packet_too_big"]);
    let proxy = reported().replace("gateway = {}", "gateway.proxy.mode = \"split\"");
    let keys: Vec<_> = refused(&proxy).into_iter().map(|found| found.key).collect();
    assert_eq!(keys, ["link.tunnel.forward.packet_too_big"]);
    let managed = reported().replace(
        "load.periodic = { size = \"300 B\", every = \"500 ms\" }",
        "load.periodic = { size = \"300 B\", every = \"500 ms\" }\nconnection = \"per_message\"",
    );
    let keys: Vec<_> = refused(&managed).into_iter().map(|found| found.key).collect();
    assert_eq!(keys, ["flow.readings.stack"]);
}
