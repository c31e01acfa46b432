//! Opening of connections: start times, handshake metrics, and messages whose connection does not
//! open.

use gridhaul_scenario::answer::{Answer, Metric};

use crate::support::{run, two_nodes};

fn metric_if_any(answer: &Answer, row: usize, metric: Metric) -> Option<f64> {
    answer.points[0].flows[row].mean(metric)
}

fn metric(answer: &Answer, metric: Metric) -> f64 {
    metric_if_any(answer, 0, metric).unwrap_or_else(|| panic!("no {metric}"))
}

/// 500 meters over a shared link of 64 kbit/s with a one-way delay of 30 ms and a queue of ten
/// packets. A SYN of 40 B takes 5 ms.
fn district(keys: &str) -> String {
    format!(
        r#"
        title = "opening"
        duration = "200 s"
        [node]
        meter = {{ count = 500 }}
        head = {{}}
        [link]
        line = {{ from = "meter", to = "head", shared = true, both = {{ rate = "64 kbit/s", delay = "30 ms", queue = "10 packets" }} }}
        [stack.meter]
        profile = "ns2"
        congestion_control = "reno"
        mss = "200 B"
        [flow.reading]
        from = "meter"
        to = "head"
        stack = "meter"
        {keys}
        "#
    )
}

const LOADS: [&str; 5] = [
    r#"periodic = { size = "200 B", every = "100 s" }"#,
    r#"poisson = { size = "200 B", every = "50 s" }"#,
    r#"on_off = { on = "100 ms", off = "50 s", size = "200 B" }"#,
    r#"on_off = { on = "1 s", off = "50 s", size = "200 B", rate = "1600 bit/s" }"#,
    r#"burst = { size = "200 B", at = "100 s", spread = "60 s" }"#,
];

/// A run is simulated in slices of time. A handshake that is in progress at the end of a slice is
/// neither complete nor failed.
#[test]
fn every_handshake_is_counted_once() {
    let load = r#"load.periodic = { size = "200 B", every = "100 s" }"#;
    // Round trips of two seconds: many handshakes are in progress at any time.
    let text = district(load).replace("30 ms", "1 s");
    let answer = run(&text);
    assert_eq!(metric(&answer, Metric::ConnectionsOpened), 500.0);
    assert_eq!(metric(&answer, Metric::ConnectionsFailed), 0.0);
}

#[test]
fn connections_do_not_open_simultaneously_by_default() {
    for load in LOADS {
        let answer = run(&district(&format!("load.{load}")));
        let opened = metric(&answer, Metric::ConnectionsOpened);
        // A few members of the random loads have nothing to send in 200 s: e^-4 of 500 are 9.
        assert!((470.0..=500.0).contains(&opened), "{load}: {opened}");
        assert_eq!(metric(&answer, Metric::ConnectionsFailed), 0.0, "{load}");
        // On an idle link a handshake takes 70 ms.
        let p98 = metric(&answer, Metric::HandshakeTimeP98);
        assert!((0.07..0.5).contains(&p98), "{load}: {p98}");
        assert!(metric(&answer, Metric::HandshakeTimeMean) < p98, "{load}");
        assert!(answer.warnings.is_empty(), "{load}: {:?}", answer.warnings);
    }
}

#[test]
fn a_synchronised_start_overflows_the_queue_and_is_reported() {
    for load in LOADS {
        let answer = run(&district(&format!("start_spread = \"0 s\"\nload.{load}")));
        // Eleven SYN of each burst are delivered, and the bursts follow after 3, 6, 12, ... s.
        let opened = metric(&answer, Metric::ConnectionsOpened);
        let failed = metric(&answer, Metric::ConnectionsFailed);
        assert_eq!(opened + failed, 500.0, "{load}");
        assert!(opened < 300.0, "{load}: {opened}");
        assert_eq!(metric_if_any(&answer, 0, Metric::HandshakeTimeP98), None, "{load}");
        let expected = format!("{failed} of 500 connections failed to open");
        let is_reported =
            answer.warnings.iter().any(|warning| warning.message.starts_with(&expected));
        assert!(is_reported, "{load}: {:?}", answer.warnings);
    }
}

#[test]
fn synchronised_is_the_same_as_no_spread() {
    let loads = [
        (r#"poisson = { size = "200 B", every = "50 s", synchronised = true }"#, ""),
        (r#"on_off = { on = "100 ms", off = "50 s", size = "200 B", synchronised = true }"#, ""),
        (r#"periodic = { size = "200 B", every = "100 s", synchronised = true }"#, ""),
    ];
    for (load, keys) in loads {
        let synchronised = run(&district(&format!("{keys}\nload.{load}")));
        let explicit = run(&district(&format!("start_spread = \"0 s\"\nload.{load}")));
        assert_eq!(synchronised.points[0].flows, explicit.points[0].flows, "{load}");
    }
}

/// A meter and a head with a one-way delay of 15 ms.
fn pair(keys: &str) -> String {
    let rest = format!(
        r#"[stack.meter]
        profile = "ns2"
        congestion_control = "reno"
        mss = "200 B"
        [flow.reading]
        from = "a"
        to = "b"
        stack = "meter"
        {keys}"#
    );
    two_nodes("duration = \"20 s\"", "rate = \"1 Gbit/s\", delay = \"15 ms\"", &rest)
}

#[test]
fn the_first_message_waits_for_the_handshake() {
    // The handshake takes 30 ms and the message 15 ms more; the second message takes 15 ms.
    let loads = [
        r#"periodic = { size = "200 B", every = "12 s" }"#,
        r#"on_off = { on = "10 ms", off = "9 s", size = "200 B", spread = "fixed" }"#,
        r#"on_off = { on = "1 s", off = "9 s", size = "200 B", rate = "1600 bit/s", spread = "fixed" }"#,
        r#"burst = { size = "200 B", at = "0 s", spread = "5 s", count = 2, gap = "5 s" }"#,
    ];
    for load in loads {
        let answer = run(&pair(&format!("load.{load}")));
        let largest = metric(&answer, Metric::DelayMax);
        assert!((0.045..0.0451).contains(&largest), "{load}: {largest}");
        let open = metric(&answer, Metric::HandshakeTimeMean);
        assert!((0.03..0.0301).contains(&open), "{load}: {open}");
        assert_eq!(
            metric(&answer, Metric::Messages),
            metric(&answer, Metric::MessagesDue),
            "{load}"
        );
    }
    // A standing connection is open before the event.
    let standing = r#"load.burst = { size = "200 B", at = "10 s", spread = "1 s" }"#;
    let largest = metric(&run(&pair(standing)), Metric::DelayMax);
    assert!((0.015..0.0151).contains(&largest), "{largest}");
}

#[test]
fn a_trace_opens_with_its_first_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, "time_s,bytes,member\n5,200,0\n6,200,0\n").unwrap();
    let keys = format!("count = 3\nload.trace.file = '{}'", path.display());
    let answer = run(&pair(&keys));
    // The other two members have no row, so their connections do not open.
    assert_eq!(metric(&answer, Metric::ConnectionsOpened), 1.0);
    assert_eq!(metric(&answer, Metric::ConnectionsFailed), 0.0);
    let largest = metric(&answer, Metric::DelayMax);
    assert!((0.045..0.0451).contains(&largest), "{largest}");
}

#[test]
fn replications_of_equal_flows_differ() {
    let text = pair("count = 3\nload = \"bulk\"")
        .replace("1 Gbit/s\"", "1 Mbit/s\", queue = \"9 packets\"");
    let answer = run(&text.replace("title", "replications = 3\ntitle"));
    let goodput = answer.points[0].flows[0].metrics[&Metric::Goodput];
    assert!(goodput.ci95.is_some_and(|half| half > 0.0), "{goodput:?}");
    let fixed = text
        .replace("title", "replications = 3\ntitle")
        .replace("count = 3", "count = 3\nstart_spread = \"0 s\"");
    let goodput = run(&fixed).points[0].flows[0].metrics[&Metric::Goodput];
    assert_eq!(goodput.ci95, Some(0.0), "no random numbers are used");
}

#[test]
fn a_connection_without_handshake_has_no_handshake_metrics() {
    let load = r#"load.periodic = { size = "200 B", every = "12 s" }"#;
    let text = pair(load).replace("mss =", "handshake = false\nmss =");
    let answer = run(&text);
    assert_eq!(metric_if_any(&answer, 0, Metric::ConnectionsOpened), None);
    let largest = metric(&answer, Metric::DelayMax);
    assert!((0.015..0.0151).contains(&largest), "{largest}");
    let datagrams =
        pair(&format!("transport = \"datagram\"\n{load}")).replace("stack = \"meter\"", "");
    assert_eq!(metric_if_any(&run(&datagrams), 0, Metric::ConnectionsOpened), None);
}

#[test]
fn messages_of_a_connection_that_cannot_open_are_due_lost_and_late() {
    // The link is down. Bursts begin every 2 s on average, each with a message that is due.
    let loads = [
        (r#"periodic = { size = "200 B", every = "1 s", synchronised = true }"#, 20.0..=20.0),
        (r#"on_off = { on = "1 s", off = "1 s", size = "200 B", spread = "fixed" }"#, 9.0..=11.0),
        (r#"request_response = { request = "10 B", response = "10 B" }"#, 1.0..=1.0),
    ];
    for (load, due) in loads {
        let text = pair(&format!("deadline = \"5 s\"\nload.{load}"));
        let text =
            text.replace("delay =", "outage = [{ start = \"0 s\", length = \"1 h\" }], delay =");
        let answer = run(&text);
        let counted = metric(&answer, Metric::MessagesDue);
        assert!(due.contains(&counted), "{load}: {counted}");
        assert_eq!(metric(&answer, Metric::Messages), 0.0, "{load}");
        assert_eq!(metric(&answer, Metric::MessageLoss), 1.0, "{load}");
        assert_eq!(metric(&answer, Metric::DeadlineMet), 0.0, "{load}");
        assert_eq!(answer.points[0].deadline_checks[0].met, Some(false), "{load}");
        assert_eq!(metric_if_any(&answer, 0, Metric::DelayP98), None, "{load}");
        assert_eq!(metric(&answer, Metric::ConnectionsFailed), 1.0, "{load}");
    }
}

#[test]
fn a_delay_percentile_includes_undelivered_messages() {
    // The link is down from 10 s on. Of the messages every 100 ms, a hundred arrive and a hundred
    // wait.
    let load = r#"periodic = { size = "200 B", every = "100 ms", synchronised = true }"#;
    let text = pair(&format!("load.{load}"));
    let text =
        text.replace("delay =", "outage = [{ start = \"10 s\", length = \"1 h\" }], delay =");
    let answer = run(&text);
    assert!(metric(&answer, Metric::Messages) < 0.52 * metric(&answer, Metric::MessagesDue));
    assert_eq!(metric_if_any(&answer, 0, Metric::DelayP98), None);
    // The connection is open: its messages are late and not lost.
    assert_eq!(metric(&answer, Metric::MessageLoss), 0.0);
}

/// 200 concentrators with a meter each, which share a link of 64 kbit/s to the head.
fn concentrators(aggregator: &str) -> String {
    format!(
        r#"
        title = "concentrators"
        duration = "200 s"
        [node]
        meter = {{ count = 200 }}
        hub = {{ count = 200, aggregator = {{ {aggregator} }} }}
        head = {{}}
        [link]
        access = {{ from = "meter", to = "hub", both.rate = "1 Mbit/s" }}
        wan = {{ from = "hub", to = "head", shared = true, both = {{ rate = "64 kbit/s", delay = "30 ms", queue = "10 packets" }} }}
        [flow.reading]
        from = "meter"
        to = "head"
        start = "100 s"
        load.periodic = {{ size = "200 B", every = "1000 s" }}
        "#
    )
}

#[test]
fn upstream_connections_do_not_open_at_the_same_instant() {
    let opened = |aggregator: &str| {
        let answer = run(&concentrators(aggregator));
        metric_if_any(&answer, 1, Metric::ConnectionsOpened).zip(metric_if_any(
            &answer,
            1,
            Metric::HandshakeTimeMean,
        ))
    };
    // 40 SYN of 60 B per second use a third of the link.
    let (opened_5_s, took) = opened("start_spread = \"5 s\"").unwrap();
    assert!(opened_5_s == 200.0 && took < 0.1, "{opened_5_s} {took}");
    let (by_default, _) = opened("").unwrap();
    assert_eq!(by_default, 200.0);
    // Of 200 simultaneous SYN eleven are delivered. The others wait for their timers, which the
    // phases of the hosts' clocks spread.
    let (_, took) = opened("start_spread = \"0 s\"").unwrap();
    assert!(took > 2.0, "{took}");
}

#[test]
fn a_connection_that_never_opens_counts_in_means_over_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, "time_s,bytes,member\n5,200,0\n6,200,0\n").unwrap();
    let members = |count: u32| {
        run(&pair(&format!("count = {count}\nload.trace.file = '{}'", path.display())))
    };
    let (one, two) = (members(1), members(2));
    assert_eq!(metric(&one, Metric::Goodput), metric(&two, Metric::Goodput));
    // Window and goodput of the second member are 0.
    assert_eq!(metric(&one, Metric::CwndMean), 2.0 * metric(&two, Metric::CwndMean));
    assert_eq!(metric(&two, Metric::Fairness), 0.5);
}

#[test]
fn the_measurement_interval_limits_the_messages_due() {
    // A message each second from 0 s on takes 15 ms. The messages at 6 to 19 s are due, the one at
    // 20 s is not; the one at 5 s arrives in the measurement interval and is not counted.
    let load = r#"load.periodic = { size = "200 B", every = "1 s", synchronised = true }"#;
    let text =
        pair(load).replace("duration = \"20 s\"", "duration = \"20 s\"\nwarmup = \"5010 ms\"");
    let answer = run(&text);
    assert_eq!(metric(&answer, Metric::MessagesDue), 14.0);
    assert_eq!(metric(&answer, Metric::Messages), 14.0);
    // Fifteen messages of 200 B in 14.99 s.
    let goodput = metric(&answer, Metric::Goodput);
    assert!((goodput - 15.0 * 1600.0 / 14.99).abs() < 1e-6, "{goodput}");
    // The handshake is in the warm-up, and is counted nevertheless.
    assert_eq!(metric(&answer, Metric::ConnectionsOpened), 1.0);
    // No message was due, so no ratio exists.
    let none = run(&pair("load.burst = { size = \"200 B\", at = \"1 h\" }"));
    assert_eq!(metric(&none, Metric::MessagesDue), 0.0);
    for unknown in [Metric::MessageLoss, Metric::DelayP98, Metric::SegmentLoss] {
        assert_eq!(metric_if_any(&none, 0, unknown), None, "{unknown}");
    }
}

#[test]
fn messages_at_an_aggregator_that_cannot_connect_are_lost() {
    let dead = "both = { rate = \"64 kbit/s\", outage = [{ start = \"0 s\", length = \"1 h\" }],";
    let text = concentrators("").replace("both = { rate = \"64 kbit/s\",", dead);
    let once = "burst = { size = \"200 B\", at = \"20 s\", spread = \"50 s\" }";
    let answer = run(&text.replace("periodic = { size = \"200 B\", every = \"1000 s\" }", once));
    // Each of 200 meters sends a message, which its aggregator accepts.
    assert_eq!(metric(&answer, Metric::MessagesDue), 200.0);
    assert_eq!(metric(&answer, Metric::ConnectionsOpened), 200.0);
    assert_eq!(metric_if_any(&answer, 1, Metric::ConnectionsFailed), Some(200.0));
    assert_eq!(metric(&answer, Metric::MessageLoss), 1.0);
}
