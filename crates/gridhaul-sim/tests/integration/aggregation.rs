//! Aggregators in the simulator: delays computed by hand, full buffers, chains, and the effect of
//! aggregation on loss.

use gridhaul_scenario::answer::{ColumnData, Metric, Point};
use gridhaul_scenario::backend::RunError;

use crate::support::{self, try_run as answer};

fn run(text: &str) -> Point {
    support::run(text).points.remove(0)
}

fn value(point: &Point, row: &str, metric: Metric) -> f64 {
    let found = point.flows.iter().find(|flow| flow.name == row);
    let row = found.unwrap_or_else(|| panic!("no row {row}"));
    row.mean(metric).unwrap_or_else(|| panic!("{}: no {metric}", row.name))
}

fn count(point: &Point, row: &str) -> u64 {
    point.flows.iter().find(|flow| flow.name == row).map_or(0, |row| row.count)
}

fn assert_close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
}

/// Meters with links of 1 Mbit/s and 10 ms to an aggregator, and a link of 1 Mbit/s and 20 ms from
/// there to the head. A message of 210 B is a packet of 250 B, which takes 2 ms transmission on
/// either link.
fn small(meters: u32, aggregator: &str, upstream: &str, load: &str) -> String {
    format!(
        r#"
        title = "small"
        duration = "12 s"
        warmup = "2 s"
        [node]
        meter = {{ count = {meters} }}
        collector = {{ aggregator = {{ {aggregator} }} }}
        head = {{}}
        [link]
        access = {{ from = "meter", to = "collector", both = {{ rate = "1 Mbit/s", delay = "10 ms" }} }}
        wan = {{ from = "collector", to = "head", both = {{ rate = "1 Mbit/s", delay = "20 ms", queue = "100 packets" }} }}
        [stack.meter]
        profile = "ns2"
        congestion_control = "reno"
        restart_after_idle = false
        mss = "210 B"
        receive_window = "2 segments"
        [stack.upstream]
        profile = "ns2"
        congestion_control = "reno"
        restart_after_idle = false
        mss = "210 B"
        {upstream}
        [flow.reading]
        from = "meter"
        to = "head"
        stack = "meter"
        {load}
        "#
    )
}

const EVERY_SECOND: &str =
    r#"load.periodic = { size = "210 B", every = "1 s", synchronised = true }"#;

#[test]
fn delays_of_two_meters_are_exact() {
    // Both messages reach the aggregator after 2 + 10 ms. The upstream window is one segment: the
    // first message is sent at once and reaches the head after 2 + 20 ms more; the second waits for
    // the acknowledgement of 40 B, 2 + 20 + 0.32 + 20 ms, and then takes 22 ms as well.
    let aggregator = r#"stack = "upstream""#;
    let point = run(&small(2, aggregator, r#"receive_window = "1 segments""#, EVERY_SECOND));
    assert_eq!(value(&point, "reading", Metric::Messages), 20.0);
    assert_close(value(&point, "reading", Metric::DelayMax), 0.012 + 0.042_32 + 0.022);
    assert_close(value(&point, "reading", Metric::DelayMean), 0.034 + 0.042_32 / 2.0);
    // The first stage takes 12 ms and the mean waiting time, the second 22 ms; the sum is the total
    // delay.
    assert_close(value(&point, "reading", Metric::SegmentDelayMean), 0.012 + 0.042_32 / 2.0);
    assert_close(value(&point, "collector>head", Metric::SegmentDelayMean), 0.022);
    assert_close(value(&point, "reading", Metric::SegmentDelayTotal), 0.034 + 0.042_32 / 2.0);
    assert_close(value(&point, "reading", Metric::SegmentLossTotal), 0.0);
    // One message waits for 42.32 ms of every second.
    assert_close(value(&point, "collector>head", Metric::BufferMean), 0.042_32);
    // Both messages wait for the upstream handshake during the warm-up, which is not measured.
    assert_eq!(value(&point, "collector>head", Metric::BufferMax), 1.0);
    // Bytes at risk: both messages until the first is acknowledged, 42.32 ms, then one for as long.
    assert_close(value(&point, "collector>head", Metric::BytesAtRiskMean), 210.0 * 3.0 * 0.042_32);
    assert_eq!(value(&point, "collector>head", Metric::BytesAtRiskMax), 420.0);
    // Goodput counts at the head: 2 * 210 B a second.
    assert_close(value(&point, "reading", Metric::Goodput), 3_360.0);
    assert_eq!(count(&point, "collector>head"), 1);
}

/// Five meters that offer 5 * 16.8 kbit/s to a link of 20 kbit/s.
fn overload(meters: u32, aggregator: &str) -> Point {
    let load = r#"start_spread = "0 s"
        load.poisson = { size = "210 B", every = "100 ms" }"#;
    let text = small(meters, aggregator, "", load)
        .replace(
            r#"both = { rate = "1 Mbit/s", delay = "20 ms""#,
            r#"both = { rate = "20 kbit/s", delay = "20 ms""#,
        )
        .replace("duration = \"12 s\"", "duration = \"120 s\"")
        .replace("warmup = \"2 s\"", "warmup = \"20 s\"");
    run(&text)
}

#[test]
fn a_full_buffer_drops_messages_and_the_link_stays_saturated() {
    let point = overload(5, r#"buffer = "4 messages""#);
    assert_eq!(value(&point, "collector>head", Metric::BufferMax), 4.0);
    let loss = value(&point, "reading", Metric::SegmentLoss);
    assert!(loss > 0.05, "{loss}");
    assert_eq!(value(&point, "collector>head", Metric::SegmentLoss), 0.0);
    assert_close(value(&point, "reading", Metric::SegmentLossTotal), loss);
    // The link is saturated: 20 kbit/s, of which 210 of 250 B are payload.
    let goodput = value(&point, "reading", Metric::Goodput);
    assert!((0.95..1.001).contains(&(goodput / 16_800.0)), "{goodput}");
    // The equal buffer in bytes gives the same results.
    let bytes = overload(5, r#"buffer = "840 B""#);
    assert_eq!(bytes.flows, point.flows);
}

#[test]
fn backpressure_drops_nothing_with_space_for_a_message_of_each_meter() {
    let point = overload(5, r#"buffer = "5 messages", when_full = "backpressure""#);
    assert_eq!(value(&point, "reading", Metric::SegmentLoss), 0.0);
    assert!(value(&point, "collector>head", Metric::BufferMax) <= 5.0);
    let goodput = value(&point, "reading", Metric::Goodput);
    assert!((0.95..1.001).contains(&(goodput / 16_800.0)), "{goodput}");
    // With more meters than space it drops messages as a last resort, and keeps its limit.
    let crowded = overload(12, r#"buffer = "5 messages", when_full = "backpressure""#);
    assert!(value(&crowded, "reading", Metric::SegmentLoss) > 0.0);
    assert_eq!(value(&crowded, "collector>head", Metric::BufferMax), 5.0);
}

#[test]
fn the_window_has_space_for_a_message_larger_than_a_segment() {
    // A message of 420 B is two segments. Space for one message is a window of both segments: they
    // are sent at once, and the aggregator forwards the message when the second has arrived, after
    // 2 + 2 + 10 ms.
    let aggregator = r#"buffer = "1 messages", when_full = "backpressure""#;
    let text = small(1, aggregator, "", &EVERY_SECOND.replace("210 B", "420 B"));
    let point = run(&text);
    assert_close(value(&point, "reading", Metric::DelayMax), 0.014 + 0.024);
    // With a window of one segment the message could never be complete.
    let narrow = text.replace("\"2 segments\"", "\"1 segments\"");
    let refused = answer(&narrow, 1).unwrap_err().to_string();
    assert!(refused.contains("receive window"), "{refused}");
}

/// Eight meters, four aggregators in the street, one in the district, and a head.
const CHAIN: &str = r#"
    title = "chain"
    duration = "12 s"
    warmup = "2 s"
    [node]
    meter = { count = 8 }
    street = { count = 4, aggregator = {} }
    district = { aggregator = {} }
    head = {}
    [link]
    access = { from = "meter", to = "street", both = { rate = "1 Mbit/s", delay = "10 ms" } }
    feeder = { from = "street", to = "district", both = { rate = "1 Mbit/s", delay = "20 ms" } }
    wan = { from = "district", to = "head", both = { rate = "1 Mbit/s", delay = "30 ms" } }
    [stack.meter]
    profile = "ns2"
    congestion_control = "reno"
    restart_after_idle = false
    mss = "210 B"
    initial_window = "10 segments"
    [flow.reading]
    from = "meter"
    to = "head"
    stack = "meter"
    load.periodic = { size = "210 B", every = "1 s", synchronised = true }
"#;

#[test]
fn a_chain_of_aggregators() {
    // After 12 ms each street has two messages, which take 2 and 4 ms transmission. The district
    // gets eight messages after 12 + (2 or 4) + 20 ms, which take up to 8 * 2 ms and 30 ms. The
    // link of the district is idle again when the second four arrive, so the last message arrives
    // after 34 + 16 + 30 ms.
    let point = run(CHAIN);
    assert_eq!((count(&point, "street>district"), count(&point, "district>head")), (4, 1));
    assert_eq!(value(&point, "reading", Metric::Messages), 80.0);
    assert_close(value(&point, "reading", Metric::DelayMax), 0.034 + 0.016 + 0.030);
    assert_close(value(&point, "reading", Metric::DelayMean), 0.034 + 0.009 + 0.030);
    let total = value(&point, "reading", Metric::SegmentDelayTotal);
    assert_close(total, 0.034 + 0.009 + 0.030);
}

#[test]
fn groups_and_flows_share_the_upstream_connection() {
    let text = CHAIN
        .replace("meter = { count = 8 }", "meter = { count = 8 }\n    sensor = { count = 4 }")
        .replace(
            "[link]",
            r#"[link]
    other = { from = "sensor", to = "street", both = { rate = "1 Mbit/s", delay = "10 ms" } }"#,
        );
    let text = format!(
        "{text}\n    [flow.alarm]\n    from = \"sensor\"\n    to = \"head\"\n    stack \
         = \"meter\"\n    \
         load.poisson = {{ size = \"50 B\", every = \"500 ms\" }}"
    );
    let point = run(&text);
    let names: Vec<_> = point.flows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["reading", "alarm", "street>district", "district>head"]);
    assert_eq!((count(&point, "street>district"), count(&point, "district>head")), (4, 1));
    assert_eq!(value(&point, "reading", Metric::Messages), 80.0);
    // Poisson: 4 * 10 s / 500 ms = 80, within four standard deviations of 9.
    let alarms = value(&point, "alarm", Metric::Messages);
    assert!((44.0..116.0).contains(&alarms), "{alarms}");
    let goodput =
        value(&point, "reading", Metric::Goodput) + value(&point, "alarm", Metric::Goodput);
    let upstream = value(&point, "district>head", Metric::Goodput);
    assert!((goodput / upstream - 1.0).abs() < 0.02, "{goodput} of {upstream}");
}

/// The network of paper `sa-tcp`, section 5, with 1 % of its meters: 4,000 over 2 Mbit/s with a
/// queue of 100 packets.
fn paper(aggregators: u32, load: &str) -> String {
    let collector = match aggregators {
        0 => "collector = {}".to_owned(),
        count => {
            format!(r#"collector = {{ count = {count}, aggregator = {{ stack = "upstream" }} }}"#)
        }
    };
    format!(
        r#"
        title = "paper"
        duration = "40 s"
        warmup = "10 s"
        [node]
        meter = {{ count = 4000 }}
        {collector}
        head = {{}}
        [link]
        access = {{ from = "meter", to = "collector", both = {{ rate = "10 Mbit/s", delay = "25 ms" }} }}
        wan = {{ from = "collector", to = "head", shared = true, both = {{ rate = "2 Mbit/s", delay = "50 ms", queue = "100 packets" }} }}
        [stack.meter]
        profile = "ns2"
        handshake = false
        congestion_control = "vegas"
        mss = "200 B"
        receive_window = "2 segments"
        [stack.upstream]
        profile = "ns2"
        handshake = false
        congestion_control = "vegas"
        mss = "200 B"
        receive_window = "64 segments"
        [flow.reading]
        from = "meter"
        to = "head"
        stack = "meter"
        load.{load}
        "#
    )
}

/// All meters report every 10 s at about the same time: 0.77 Mbit/s on average, 40 times the
/// rate of the link at first.
const SIMULTANEOUS: &str =
    r#"periodic = { size = "200 B", every = "10 s", jitter = "100 ms", synchronised = true }"#;

#[test]
fn aggregation_reduces_loss() {
    let loss = |point: &Point| value(point, "reading", Metric::SegmentLossTotal);
    let one_hop = run(&paper(0, SIMULTANEOUS));
    assert!(loss(&one_hop) > 0.7, "{}", loss(&one_hop));
    // Too few aggregators have too little buffer space; too many upstream connections overload the
    // link.
    let [few, right, many] = [5, 50, 400].map(|count| run(&paper(count, SIMULTANEOUS)));
    assert!(loss(&right) < 0.1, "{}", loss(&right));
    assert!(loss(&few) > 2.0 * loss(&right) && loss(&many) > 2.0 * loss(&right));
    assert!(loss(&few) < loss(&one_hop) && loss(&many) < loss(&one_hop));
    // All 4,000 meters deliver three messages in 30 s, far more than without aggregation.
    assert_eq!(value(&right, "reading", Metric::Messages), 12_000.0);
    assert!(value(&one_hop, "reading", Metric::Messages) < 6_000.0);
    // The total loss combines the two stages.
    let stages =
        ["reading", "collector>head"].map(|row| 1.0 - value(&right, row, Metric::SegmentLoss));
    assert_close(1.0 - loss(&right), stages[0] * stages[1]);
}

#[test]
fn the_answer_does_not_depend_on_the_threads() {
    let greedy = r#"on_off = { on = "100 ms", off = "600 ms", size = "200 B" }"#;
    let text = paper(7, greedy)
        .replace("count = 4000", "count = 300")
        .replace("title = \"paper\"", "title = \"paper\"\nreplications = 3");
    assert_eq!(answer(&text, 1).unwrap(), answer(&text, 2).unwrap());
}

#[test]
fn a_byte_stream_completes_at_its_destination() {
    // 100,000 B over a link of 100 kbit/s with 40 B of headers for 210 B take 9.52 s transmission,
    // although the aggregator has accepted the stream long before.
    let text = small(
        1,
        r#"buffer = "1000 messages", stack = "upstream""#,
        "",
        "load.transfer = { size = \"100 kB\" }",
    )
    .replace(
        r#"both = { rate = "1 Mbit/s", delay = "20 ms""#,
        r#"both = { rate = "100 kbit/s", delay = "20 ms""#,
    );
    let point = run(&text.replace("warmup = \"2 s\"", "warmup = \"0 s\""));
    let completion = value(&point, "reading", Metric::CompletionTime);
    assert!((9.52..10.0).contains(&completion), "{completion}");
    assert_close(value(&point, "reading", Metric::Goodput), 100_000.0 * 8.0 / completion);
    let bulk = run(&text.replace("load.transfer = { size = \"100 kB\" }", "load = \"bulk\""));
    let goodput = value(&bulk, "reading", Metric::Goodput);
    assert!((0.98..1.001).contains(&(goodput / 84_000.0)), "{goodput}");
}

#[test]
fn unsupported_flows_are_reported_with_their_key() {
    let unsupported_key = |text: &str| match answer(text, 1) {
        Err(RunError::Unsupported(keys)) => keys[0].key.clone(),
        other => panic!("not refused: {other:?}"),
    };
    let dialogue = r#"load.request_response = { request = "10 B", response = "10 B" }"#;
    assert_eq!(unsupported_key(&small(2, "", "", dialogue)), "flow.reading.load.request_response");
    let large = small(2, r#"buffer = "200 B""#, "", EVERY_SECOND);
    assert_eq!(unsupported_key(&large), "node.collector.aggregator.buffer");
    let down = small(2, "", "", EVERY_SECOND).replace(
        "from = \"meter\"\n        to = \"head\"",
        "from = \"head\"\n        to = \"meter\"",
    );
    assert_eq!(unsupported_key(&down), "flow.reading.to");
}

#[test]
fn captures_have_the_address_of_the_aggregator_on_both_links() {
    let text = CHAIN
        .replace("title = \"chain\"", "title = \"chain\"\nrecord.pcap = [\"access\", \"feeder\"]");
    let answer = answer(&text, 1).unwrap();
    let capture = |name: &str| {
        let found = answer.captures.iter().find(|capture| capture.name == name);
        let mut bytes = Vec::new();
        found.unwrap_or_else(|| panic!("no {name}")).pcapng.copy_to(&mut bytes).unwrap();
        bytes
    };
    // Nodes are numbered from 0 in the order of the file: meter 0 sends to member 0 of node 1,
    // which sends to the single node 2.
    let has =
        |name: &str, addresses: [u8; 8]| capture(name).windows(8).any(|bytes| bytes == addresses);
    assert!(has("access.forward", [10, 0, 0, 0, 10, 1, 0, 0]));
    assert!(has("access.reverse", [10, 1, 0, 0, 10, 0, 0, 0]));
    assert!(has("feeder.forward", [10, 1, 0, 0, 10, 2, 255, 254]));
    assert!(has("feeder.reverse", [10, 2, 255, 254, 10, 1, 0, 0]));
}

/// 50 messages at the start wait for the slow link; after the warm-up, single messages of 100 B
/// follow.
#[test]
fn maxima_are_those_of_the_measured_time() {
    let point = |node: &str| {
        run(&format!(
            r#"
            title = "maxima"
            duration = "40 s"
            warmup = "20 s"
            [node]
            a = {{}}
            m = {{ {node} }}
            b = {{}}
            [link]
            l0 = {{ from = "a", to = "m", both = {{ rate = "8 Mbit/s", delay = "5 ms" }} }}
            l1 = {{ from = "m", to = "b", both = {{ rate = "8 kbit/s", delay = "5 ms" }} }}
            [flow.f]
            from = "a"
            to = "b"
            load.burst = {{ size = "200 B", at = "0 s", count = 50, gap = "10 ms" }}
            [flow.g]
            from = "a"
            to = "b"
            start = "25 s"
            load.periodic = {{ size = "100 B", every = "5 s", synchronised = true }}
            "#
        ))
    };
    let aggregated = point("aggregator.buffer = '100 messages'");
    let row = &aggregated.flows.iter().find(|flow| flow.name == "m>b").expect("upstream").name;
    assert_eq!(value(&aggregated, row, Metric::BufferMax), 1.0);
    assert_eq!(value(&aggregated, row, Metric::BytesAtRiskMax), 100.0);
    let split = point("proxy.mode = 'split'");
    assert_eq!(value(&split, "f", Metric::BytesAtRiskMax), 0.0);
    assert_eq!(value(&split, "g", Metric::BytesAtRiskMax), 100.0);
}

#[test]
fn messages_behind_an_upstream_connection_that_fails_to_open_are_lost() {
    let text = "title = 'no upstream'\nduration = '300 s'\nwarmup = '10 s'\n\
                record.interval = '100 s'\n\
                [node]\nm = { count = 2 }\nh = {}\nc.aggregator.buffer = '5 messages'\n\
                [link.a]\nfrom = 'm'\nto = 'c'\nboth = { rate = '1 Mbit/s', delay = '10 ms' }\n\
                [link.w]\nfrom = 'c'\nto = 'h'\nboth = { rate = '1 Mbit/s', delay = '10 ms', \
                outage = [{ start = '0 s', length = '200 s' }] }\n\
                [flow.r]\nfrom = 'm'\nto = 'h'\n\
                load.periodic = { size = '100 B', every = '20 s', synchronised = true }\n";
    let answer = support::run(text);
    let point = &answer.points[0];
    // Those in the buffer of the aggregator, and those that wait for the buffer.
    assert_eq!(value(point, "r", Metric::MessagesDue), 28.0);
    assert_eq!(value(point, "r", Metric::MessageLoss), 1.0);
    let losses = answer.series.iter().find(|series| series.name == "losses").expect("losses");
    let reason = losses.columns.iter().position(|column| column.name == "reason").unwrap();
    let ColumnData::Text { words, rows } = losses.values(reason, 0..losses.row_count()).unwrap()
    else {
        panic!("{:?}", losses.columns)
    };
    assert!(rows.len() >= 28 && rows.iter().all(|row| words[*row as usize] == "connection_failed"));
}
