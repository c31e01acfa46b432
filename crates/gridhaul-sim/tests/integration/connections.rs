//! Connections that open and close during a run.

use gridhaul_scenario::answer::{Metric, Row};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

/// A meter and its head on a link of 1 Mbit/s and 20 ms, with these keys of the flow.
fn answer(count: u32, duration: &str, keys: &str) -> gridhaul_scenario::answer::Point {
    let text = format!(
        "title = 't'\nduration = '{duration}'\n[node]\nmeter.count = {count}\nhead = {{}}\n\
         [link.line]\nfrom = 'meter'\nto = 'head'\nshared = true\n\
         both = {{ rate = '1 Mbit/s', delay = '20 ms', queue = '1000 packets' }}\n\
         [flow.reading]\nfrom = 'meter'\nto = 'head'\n{keys}"
    );
    let scenario = Scenario::from_toml(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut answer = Sim::default().run(&scenario, &NoProgress).unwrap();
    answer.points.remove(0)
}

fn value(row: &Row, metric: Metric) -> f64 {
    row.mean(metric).unwrap_or_else(|| panic!("{metric} of {row:?}"))
}

const EVERY_10_S: &str =
    "load.periodic = { size = '200 B', every = '10 s', synchronised = true }\n";

/// The packets of the hand calculation in scenarios/tls-per-reading.toml, for six readings.
#[test]
fn a_connection_with_tls_for_each_reading_has_the_packets_of_the_hand_calculation() {
    let keys = format!(
        "{EVERY_10_S}connection = 'per_message'\n\
         tls = {{ client_hello = '220 B', certificate = '1000 B' }}"
    );
    let point = answer(1, "60 s", &keys);
    let flow = &point.flows[0];
    assert_eq!(value(flow, Metric::Messages), 6.0);
    assert_eq!(value(flow, Metric::ConnectionsOpened), 6.0);
    assert_eq!(value(flow, Metric::TlsHandshakes), 6.0);
    assert_eq!(value(flow, Metric::TlsHandshakeBytes), 6.0 * (220.0 + 1_356.0 + 64.0));
    let [forward, reverse] = [&point.links[0], &point.links[1]];
    let bytes = |row: &Row| value(row, Metric::LinkThroughput) * 60.0 / 8.0;
    assert_eq!(
        (value(forward, Metric::PacketsOut), value(reverse, Metric::PacketsOut)),
        (42.0, 30.0)
    );
    assert!((bytes(forward) - 6.0 * 894.0).abs() < 1.0, "{}", bytes(forward) / 6.0);
    assert!((bytes(reverse) - 6.0 * 1_640.0).abs() < 1.0, "{}", bytes(reverse) / 6.0);
    // Two round trips of 40 ms and 0.5 ms to 11 ms of transmission.
    let connect = value(flow, Metric::ConnectTimeMean);
    assert!((0.080..0.100).contains(&connect), "{connect}");
    let delay = value(flow, Metric::DelayMean) - connect;
    assert!((0.020..0.026).contains(&delay), "{delay}");
}

#[test]
fn an_idle_timeout_decides_between_one_and_many_connections() {
    let opened = |timeout: &str| {
        let keys = format!("{EVERY_10_S}connection = {{ idle_timeout = '{timeout}' }}");
        let point = answer(1, "60 s", &keys);
        assert_eq!(value(&point.flows[0], Metric::Messages), 6.0);
        value(&point.flows[0], Metric::ConnectionsOpened)
    };
    assert_eq!((opened("9 s"), opened("11 s")), (6.0, 1.0));
}

#[test]
fn a_device_resumes_all_sessions_but_the_first() {
    let keys = format!("{EVERY_10_S}connection = 'per_message'\ntls.resumption = 'after_first'");
    let point = answer(1, "60 s", &keys);
    let flow = &point.flows[0];
    let counts = [Metric::TlsHandshakes, Metric::TlsResumptions].map(|metric| value(flow, metric));
    assert_eq!(counts, [1.0, 5.0]);
}

/// A response of 100 B after each request; the connection closes after the response.
#[test]
fn each_request_has_a_connection_with_its_response() {
    let keys = "load.request_response = { request = '50 B', response = '100 B', think = '1 s', \
                pause = '9 s' }\nconnection = 'per_message'\ntls = {}";
    let point = answer(1, "60 s", keys);
    let flow = &point.flows[0];
    // A cycle takes 10 s and four one-way delays or more: six requests, the last one complete.
    assert_eq!(value(flow, Metric::Messages), 6.0);
    assert_eq!(value(flow, Metric::ConnectionsOpened), 6.0);
}

/// 100 clients of one host with a message per second each: TIME-WAIT holds 100 · 60 = 6,000 ports.
/// With 3,000, half of the attempts find none.
#[test]
fn ports_in_time_wait_limit_the_connections_of_a_host() {
    let keys = "count = 100\nload.periodic = { size = '10 B', every = '1 s' }\n\
                connection = 'per_message'\n";
    let all = answer(1, "200 s", keys);
    assert_eq!(value(&all.flows[0], Metric::PortsExhausted), 0.0);
    let few = answer(1, "200 s", &format!("{keys}local_ports = 3000"));
    let flow = &few.flows[0];
    // 3,000 ports in 60 s: the range was used four times within 200 s.
    let opened = value(flow, Metric::ConnectionsOpened);
    assert!((10_000.0..=12_000.0).contains(&opened), "{opened}");
    assert!(value(flow, Metric::PortsExhausted) > 100.0);
    // Each member of a group is a host of its own.
    let hosts = answer(100, "200 s", &format!("{}local_ports = 100", &keys[12..]));
    assert_eq!(value(&hosts.flows[0], Metric::PortsExhausted), 0.0);
}

/// 200 devices at once, of which 20 are accepted per second: the last after 10 s.
#[test]
fn the_accept_rate_of_the_server_decides_when_the_last_device_is_served() {
    let storm = |accept: &str| {
        let keys = format!(
            "load.burst = {{ size = '100 B', at = '0 s', spread = '1 s' }}\ntls = {{}}\n{accept}"
        );
        let point = answer(200, "60 s", &keys);
        assert_eq!(value(&point.flows[0], Metric::Messages), 200.0);
        let flow = &point.flows[0];
        (value(flow, Metric::LastCompletion), value(flow, Metric::SynDropped))
    };
    // Without a limit, the line: 200 times 1,640 B in 2.6 s.
    let (free, _) = storm("");
    assert!((2.0..4.5).contains(&free), "{free}");
    let (limited, dropped) = storm("accept = { per_second = 20, backlog = 1000 }");
    assert!((9.9..11.5).contains(&limited) && dropped == 0.0, "{limited} {dropped}");
    // Of those that do not fit into the backlog, the SYN is dropped and retransmitted.
    let (_, dropped) = storm("accept = { per_second = 20, backlog = 16 }");
    assert!(dropped > 50.0, "{dropped}");
}

/// The SYN of all devices arrive before the first handshake is complete.
#[test]
fn a_full_backlog_delays_handshakes_that_have_begun() {
    let last = |backlog: u32| {
        let keys = format!(
            "load.burst = {{ size = '100 B', at = '0 s' }}\n\
             accept = {{ per_second = 10, backlog = {backlog} }}"
        );
        let point = answer(20, "300 s", &keys);
        assert_eq!(value(&point.flows[0], Metric::Messages), 20.0);
        value(&point.flows[0], Metric::LastCompletion)
    };
    // One is accepted at once, and 19 within 1.9 s.
    let waiting = last(20);
    assert!((1.9..2.1).contains(&waiting), "{waiting}");
    // Two wait; the others are established by retransmissions, when the server has a place.
    let refused = last(1);
    assert!(refused > 2.5, "{refused}");
}

/// The server accepts the last of 100 devices after 10 s, and devices give an attempt up after 2 s.
#[test]
fn devices_give_up_and_repeat_their_attempts() {
    let keys = "load.burst = { size = '100 B', at = '0 s' }\ntls = {}\n\
                accept = { per_second = 10, backlog = 1000 }\n\
                reconnect = { timeout = '2 s', pause = '1 s', jitter = '50 %' }";
    let point = answer(100, "200 s", keys);
    let flow = &point.flows[0];
    assert!(value(flow, Metric::ConnectionsFailed) >= 70.0);
    assert_eq!(value(flow, Metric::Messages), 100.0);
    // Turns are spent on connections that devices have given up.
    assert!(value(flow, Metric::LastCompletion) > 12.0);
}

#[test]
fn messages_survive_an_outage_that_ends_connections() {
    let text = "title = 't'\nduration = '5 min'\nnode.meter.count = 20\nnode.head = {}\n\
                [link.line]\nfrom = 'meter'\nto = 'head'\n\
                both = { rate = '1 Mbit/s', delay = '20 ms', \
                outage = [{ start = '30 s', length = '60 s' }] }\n\
                [flow.reading]\nfrom = 'meter'\nto = 'head'\n\
                load.periodic = { size = '200 B', every = '20 s' }\nconnection = 'per_message'\n\
                reconnect = { timeout = '5 s' }\ntls = {}";
    let scenario = Scenario::from_toml(text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    let answer = Sim::default().run(&scenario, &NoProgress).unwrap();
    let flow = &answer.points[0].flows[0];
    assert!(value(flow, Metric::ConnectionsFailed) > 50.0);
    let (due, arrived) = (value(flow, Metric::MessagesDue), value(flow, Metric::Messages));
    // Those of the last second may be under way.
    assert!(due - arrived <= 3.0, "{due} {arrived}");
}

#[test]
fn a_proxy_on_the_path_is_refused_by_key() {
    let text = "title = 't'\nduration = '5 min'\nnode.meter = {}\nnode.head = {}\n\
                node.box = { proxy.mode = 'split' }\n\
                link.a = { from = 'meter', to = 'box', both.rate = '1 Mbit/s' }\n\
                link.b = { from = 'box', to = 'head', both.rate = '1 Mbit/s' }\n\
                [flow.reading]\nfrom = 'meter'\nto = 'head'\n\
                load.periodic = { size = '200 B', every = '20 s' }\nconnection = 'per_message'";
    let scenario = Scenario::from_toml(text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    let refused = Sim::default().supports(&scenario).unwrap_err();
    assert_eq!(refused[0].key, "flow.reading.connection");
}

#[test]
fn early_data_saves_the_round_trip_of_tls() {
    let text = include_str!("../../../../scenarios/early-data.toml");
    let resumed = text.replace(", early_data = true", "");
    let full = resumed.replace("\"always\"", "\"never\"");
    // The comment of the scenario has the calculation; each meter has a link of its own.
    for (text, expected) in [(full.as_str(), 0.518_416), (&resumed, 0.511_344), (text, 0.307_256)] {
        let answer = crate::schedulers::run(text);
        let delay = crate::schedulers::mean(&answer, "reading", Metric::DelayMean);
        crate::schedulers::close(delay, expected, 1e-9);
    }
}

#[test]
fn fast_open_saves_the_round_trip_of_the_handshake() {
    let text = include_str!("../../../../scenarios/fast-open.toml");
    let answer = crate::schedulers::run(text);
    // The comment of the scenario has the calculation; each meter has a link of its own.
    for (point, expected) in answer.points.iter().zip([0.303_264, 0.102_112]) {
        let reading = point.flows.iter().find(|row| row.name == "reading").expect("a row");
        for metric in [Metric::DelayMean, Metric::DelayMax] {
            crate::schedulers::close(reading.mean(metric).unwrap(), expected, 1e-4);
        }
        assert_eq!(reading.mean(Metric::ConnectionsFailed), Some(0.0));
    }
}

#[test]
fn a_response_follows_the_request_in_a_syn_at_once() {
    let text = include_str!("../../../../scenarios/fast-open.toml").replace(
        "load.periodic = { size = \"200 B\", every = \"5 s\" }",
        "load.request_response = { request = \"200 B\", response = \"100 B\", pause = \"5 s\" }",
    );
    let answer = crate::schedulers::run(&text);
    let [without, with] = [0, 1].map(|point: usize| {
        let rows = &answer.points[point].flows;
        rows.iter().find(|row| row.name == "reading").and_then(|row| row.mean(Metric::DelayMean))
    });
    // SYN-ACK and the response follow each other: two directions in the place of four.
    let saved = without.expect("a delay") - with.expect("a delay");
    assert!((0.198..0.203).contains(&saved), "{saved} s");
}

#[test]
fn lost_segments_of_fast_open_delay_messages_and_lose_none() {
    let text = include_str!("../../../../scenarios/fast-open.toml")
        .replace("both = { ", "both = { loss.bernoulli = \"10 %\", ")
        .replace("vary.\"flow.reading.fast_open\" = [false, true]", "vary.seed = [1, 2, 3]")
        .replace("connection = ", "fast_open = true\nconnection = ");
    let answer = crate::schedulers::run(&text);
    for point in &answer.points {
        let reading = point.flows.iter().find(|row| row.name == "reading").expect("a row");
        let [due, arrived] = [Metric::MessagesDue, Metric::Messages].map(|of| reading.mean(of));
        // Those of the last seconds may be in transit.
        assert!(arrived.unwrap() >= due.unwrap() - 20.0, "{arrived:?} of {due:?}");
        // Nine tenths of the readings need no timer.
        assert!(reading.mean(Metric::DelayMedian).unwrap() < 0.11);
    }
}

/// The acknowledgement of a FIN is lost (packet 4 of the first connection), so that the server
/// retransmits FIN after a second, when 32 further connections have been opened. It belongs to the
/// first one.
#[test]
fn a_late_segment_belongs_to_its_own_connection() {
    let text = "title = 't'\nduration = '20 s'\n[node]\na = {}\nb = {}\n\
                [link.line]\nfrom = 'a'\nto = 'b'\n\
                forward = { rate = '100 Mbit/s', delay = '5 ms', loss.packets = [4] }\n\
                reverse = { rate = '100 Mbit/s', delay = '5 ms' }\n\
                [stack.s]\nprofile = 'rfc'\n\
                [flow.reading]\nfrom = 'a'\nto = 'b'\nstack = 's'\n\
                connection = 'per_message'\n\
                load.burst = { size = '200 B', at = '0 s', count = 60, gap = '31.53 ms' }";
    let answer = crate::support::run(text);
    let flow = &answer.points[0].flows[0];
    assert_eq!(value(flow, Metric::Messages), 60.0);
    assert_eq!(value(flow, Metric::ConnectionsOpened), 60.0);
}

/// Every SYN is lost until the end of the run.
#[test]
fn a_connection_whose_syn_is_lost_has_failed_with_tls_as_without() {
    let flow = |name: &str, keys: &str| {
        format!(
            "[flow.{name}]\nfrom = 'meter'\nto = 'head'\n\
             load.periodic = {{ size = '200 B', every = '10 s' }}\n{keys}\n"
        )
    };
    let answer = crate::schedulers::run(&format!(
        "title = 't'\nduration = '60 s'\nrecord.interval = '1 s'\n\
         [node]\nmeter.count = 10\nhead = {{}}\n[link.l]\nfrom = 'meter'\nto = 'head'\n\
         both = {{ rate = '100 kbit/s', outage = [{{ start = '0 s', length = '1 h' }}] }}\n\
         {}{}{}",
        flow("plain", ""),
        flow("secure", "tls = {}"),
        flow("acknowledged", "acknowledgement = { size = '20 B', timeout = '3 s' }"),
    ));
    let rows = &answer.points[0].flows;
    for (row, loss) in rows.iter().zip([Some(1.0), Some(1.0), None]) {
        assert_eq!(value(row, Metric::ConnectionsFailed), 10.0, "{}", row.name);
        // Messages with an acknowledgement can still be transmitted: none is given up.
        assert_eq!(row.mean(Metric::MessageLoss), loss, "{}", row.name);
        let warned = |about: &str| answer.warnings.iter().any(|warning| warning.about == about);
        assert!(warned(&format!("flow.{}", row.name)), "{:?}", answer.warnings);
    }
    let losses = answer.series.iter().find(|series| series.name == "losses").unwrap();
    assert_eq!(losses.row_count(), 3 * 60);
    let reasons = format!("{:?}", losses.values(3, 0..losses.row_count()).unwrap());
    let failed = losses.values(3, 0..1).unwrap();
    assert_eq!(format!("{:?}", losses.values(3, 179..180).unwrap()), format!("{failed:?}"));
    assert!(reasons.contains("connection_failed"), "{reasons}");
}

/// Devices that give up an attempt count it once, and the attempt in progress at the end as well.
#[test]
fn an_attempt_in_progress_at_the_end_counts_as_failed() {
    let failed = |duration: &str| {
        let answer = crate::schedulers::run(&format!(
            "title = 't'\nduration = '{duration}'\n[node]\na = {{}}\nb = {{}}\n\
             [link.l]\nfrom = 'a'\nto = 'b'\n\
             both = {{ rate = '1 Mbit/s', outage = [{{ start = '0 s', length = '1 h' }}] }}\n\
             [flow.f]\nfrom = 'a'\nto = 'b'\n\
             reconnect = {{ timeout = '4 s', pause = '6 s', jitter = '0 %' }}\n\
             load.periodic = {{ size = '200 B', every = '10 s', synchronised = true }}"
        ));
        value(&answer.points[0].flows[0], Metric::ConnectionsFailed)
    };
    // Attempts begin at 0 s and 10 s, and retransmit SYN after 1 s.
    assert_eq!([failed("500 ms"), failed("2 s"), failed("6 s")], [0.0, 1.0, 1.0]);
    assert_eq!([failed("10500 ms"), failed("12 s"), failed("15 s")], [1.0, 2.0, 2.0]);
}
