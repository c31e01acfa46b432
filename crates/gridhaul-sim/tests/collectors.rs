//! Collectors in the simulator: delays worked out by hand, full buffers, chains, and whether
//! collecting helps.

use gridhaul_scenario::answer::{Answer, Metric, Point};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

fn answer(text: &str, threads: usize) -> Result<Answer, RunError> {
    let scenario = Scenario::from_toml(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    Sim { threads }.run(&scenario, &NoProgress)
}

fn run(text: &str) -> Point {
    answer(text, 1).unwrap_or_else(|error| panic!("{error}")).points.remove(0)
}

fn value(point: &Point, row: &str, metric: Metric) -> f64 {
    let found = point.flows.iter().find(|flow| flow.name == row);
    let row = found.unwrap_or_else(|| panic!("no row {row}"));
    row.mean(metric).unwrap_or_else(|| panic!("{}: no {metric}", row.name))
}

fn count(point: &Point, row: &str) -> u64 {
    point.flows.iter().find(|flow| flow.name == row).map_or(0, |row| row.count)
}

fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
}

/// Meters with links of 1 Mbit/s and 10 ms to a collector, and a line of 1 Mbit/s and 20 ms from
/// there to the head. A message of 210 B is a packet of 250 B, which takes 2 ms on either wire.
fn small(meters: u32, aggregate: &str, upstream: &str, load: &str) -> String {
    format!(
        r#"
        title = "small"
        duration = "12 s"
        warmup = "2 s"
        [node]
        meter = {{ count = {meters} }}
        collector = {{ aggregator = {{ {aggregate} }} }}
        head = {{}}
        [link.access]
        from = "meter"
        to = "collector"
        both = {{ rate = "1 Mbit/s", delay = "10 ms" }}
        [link.wan]
        from = "collector"
        to = "head"
        both = {{ rate = "1 Mbit/s", delay = "20 ms", queue = "100 packets" }}
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
fn two_meters_to_the_nanosecond() {
    // Both messages reach the collector after 2 + 10 ms. The upstream window holds one segment:
    // the first leaves at once and is at the head after 2 + 20 ms more; the second waits for the
    // acknowledgement of 40 B, 2 + 20 + 0.32 + 20 ms, and then takes 22 ms as well.
    let aggregate = r#"stack = "upstream""#;
    let point = run(&small(2, aggregate, r#"receive_window = "1 segments""#, EVERY_SECOND));
    assert_eq!(value(&point, "reading", Metric::Messages), 20.0);
    assert_near(value(&point, "reading", Metric::DelayMax), 0.012 + 0.042_32 + 0.022);
    assert_near(value(&point, "reading", Metric::DelayMean), 0.034 + 0.042_32 / 2.0);
    // The stages: 12 ms and the mean wait, then 22 ms. Together they are the whole delay.
    assert_near(value(&point, "reading", Metric::SegmentDelayMean), 0.012 + 0.042_32 / 2.0);
    assert_near(value(&point, "collector>head", Metric::SegmentDelayMean), 0.022);
    assert_near(value(&point, "reading", Metric::SegmentDelayTotal), 0.034 + 0.042_32 / 2.0);
    assert_near(value(&point, "reading", Metric::SegmentLossTotal), 0.0);
    // One message waits for 42.32 ms of every second.
    assert_near(value(&point, "collector>head", Metric::BufferMean), 0.042_32);
    // At first both had to wait for the upstream handshake.
    assert_eq!(value(&point, "collector>head", Metric::BufferMax), 2.0);
    // The only copy: both until the first is acknowledged, 42.32 ms, then one for as long.
    assert_near(value(&point, "collector>head", Metric::BytesAtRiskMean), 210.0 * 3.0 * 0.042_32);
    assert_eq!(value(&point, "collector>head", Metric::BytesAtRiskMax), 420.0);
    // Goodput counts at the head: 2 * 210 B a second.
    assert_near(value(&point, "reading", Metric::Goodput), 3_360.0);
    assert_eq!(count(&point, "collector>head"), 1);
}

/// Five meters that offer 5 * 16.8 kbit/s to a line of 20 kbit/s.
fn overload(meters: u32, aggregate: &str) -> Point {
    let load = r#"start_spread = "0 s"
        load.poisson = { size = "210 B", every = "100 ms" }"#;
    let text = small(meters, aggregate, "", load)
        .replace(
            r#"both = { rate = "1 Mbit/s", delay = "20 ms""#,
            r#"both = { rate = "20 kbit/s", delay = "20 ms""#,
        )
        .replace("duration = \"12 s\"", "duration = \"120 s\"")
        .replace("warmup = \"2 s\"", "warmup = \"20 s\"");
    run(&text)
}

#[test]
fn a_full_buffer_drops_and_everything_else_goes_on() {
    let point = overload(5, r#"buffer = "4 messages""#);
    assert_eq!(value(&point, "collector>head", Metric::BufferMax), 4.0);
    let loss = value(&point, "reading", Metric::SegmentLoss);
    assert!(loss > 0.05, "{loss}");
    assert_eq!(value(&point, "collector>head", Metric::SegmentLoss), 0.0);
    assert_near(value(&point, "reading", Metric::SegmentLossTotal), loss);
    // The line is full: 20 kbit/s of which 210 of 250 B are payload.
    let goodput = value(&point, "reading", Metric::Goodput);
    assert!((0.95..1.001).contains(&(goodput / 16_800.0)), "{goodput}");
    // A buffer in bytes is the same buffer.
    let bytes = overload(5, r#"buffer = "840 B""#);
    assert_eq!(bytes.flows, point.flows);
}

#[test]
fn waiting_drops_nothing_while_there_is_a_message_of_room_for_each() {
    let point = overload(5, r#"buffer = "5 messages", when_full = "backpressure""#);
    assert_eq!(value(&point, "reading", Metric::SegmentLoss), 0.0);
    assert!(value(&point, "collector>head", Metric::BufferMax) <= 5.0);
    let goodput = value(&point, "reading", Metric::Goodput);
    assert!((0.95..1.001).contains(&(goodput / 16_800.0)), "{goodput}");
    // With more meters than room it drops, as the last resort, and keeps its bound.
    let crowded = overload(12, r#"buffer = "5 messages", when_full = "backpressure""#);
    assert!(value(&crowded, "reading", Metric::SegmentLoss) > 0.0);
    assert_eq!(value(&crowded, "collector>head", Metric::BufferMax), 5.0);
}

#[test]
fn a_window_holds_a_message_that_is_larger_than_a_segment() {
    // 420 B are two segments of one message. Room for one message is a window of both: they leave
    // at once, and so does the message when the second is there, 2 + 2 + 10 ms later.
    let aggregate = r#"buffer = "1 messages", when_full = "backpressure""#;
    let text = small(1, aggregate, "", &EVERY_SECOND.replace("210 B", "420 B"));
    let point = run(&text);
    assert_near(value(&point, "reading", Metric::DelayMax), 0.014 + 0.024);
    // With a window of one segment it could never be whole.
    let narrow = text.replace("\"2 segments\"", "\"1 segments\"");
    let refused = answer(&narrow, 1).unwrap_err().to_string();
    assert!(refused.contains("receive window"), "{refused}");
}

/// Eight meters, four collectors in the street, one in the district, a head.
const CHAIN: &str = r#"
    title = "chain"
    duration = "12 s"
    warmup = "2 s"
    [node]
    meter = { count = 8 }
    street = { count = 4, aggregator = {} }
    district = { aggregator = {} }
    head = {}
    [link.access]
    from = "meter"
    to = "street"
    both = { rate = "1 Mbit/s", delay = "10 ms" }
    [link.feeder]
    from = "street"
    to = "district"
    both = { rate = "1 Mbit/s", delay = "20 ms" }
    [link.wan]
    from = "district"
    to = "head"
    both = { rate = "1 Mbit/s", delay = "30 ms" }
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
fn collectors_in_a_row() {
    // 12 ms to the street, where two messages come together and take 2 and 4 ms on the wire; eight
    // come together in the district: 12 + (2 or 4) + 20 ms, then up to 8 * 2 ms and 30 ms. The
    // wire of the district is free again when the second four come: the last one arrives after
    // 34 + 16 + 30 ms.
    let point = run(CHAIN);
    assert_eq!((count(&point, "street>district"), count(&point, "district>head")), (4, 1));
    assert_eq!(value(&point, "reading", Metric::Messages), 80.0);
    assert_near(value(&point, "reading", Metric::DelayMax), 0.034 + 0.016 + 0.030);
    assert_near(value(&point, "reading", Metric::DelayMean), 0.034 + 0.009 + 0.030);
    let total = value(&point, "reading", Metric::SegmentDelayTotal);
    assert_near(total, 0.034 + 0.009 + 0.030);
}

#[test]
fn groups_and_flows_share_the_upstream_connection() {
    let text = CHAIN
        .replace("meter = { count = 8 }", "meter = { count = 8 }\n    sensor = { count = 4 }")
        .replace(
            "[link.feeder]",
            "[link.other]\n    from = \"sensor\"\n    to = \"street\"\n    \
             both = { rate = \"1 Mbit/s\", delay = \"10 ms\" }\n    [link.feeder]",
        );
    let text = format!(
        "{text}\n    [flow.alarm]\n    from = \"sensor\"\n    to = \"head\"\n    stack = \"meter\"\n    \
         load.poisson = {{ size = \"50 B\", every = \"500 ms\" }}"
    );
    let point = run(&text);
    let names: Vec<_> = point.flows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["reading", "alarm", "street>district", "district>head"]);
    assert_eq!((count(&point, "street>district"), count(&point, "district>head")), (4, 1));
    assert_eq!(value(&point, "reading", Metric::Messages), 80.0);
    // Poisson: 4 * 10 s / 500 ms = 80, give or take four standard deviations of 9.
    let alarms = value(&point, "alarm", Metric::Messages);
    assert!((44.0..116.0).contains(&alarms), "{alarms}");
    let goodput =
        value(&point, "reading", Metric::Goodput) + value(&point, "alarm", Metric::Goodput);
    let upstream = value(&point, "district>head", Metric::Goodput);
    assert!((goodput / upstream - 1.0).abs() < 0.02, "{goodput} of {upstream}");
}

/// The network of paper `sa-tcp`, section 5, with a hundredth of its meters: 4,000 of them over
/// 2 Mbit/s with room for 100 packets.
fn paper(collectors: u32, load: &str) -> String {
    let collector = match collectors {
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
        [link.access]
        from = "meter"
        to = "collector"
        both = {{ rate = "10 Mbit/s", delay = "25 ms" }}
        [link.wan]
        from = "collector"
        to = "head"
        shared = true
        both = {{ rate = "2 Mbit/s", delay = "50 ms", queue = "100 packets" }}
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
/// line's rate at first.
const TOGETHER: &str =
    r#"periodic = { size = "200 B", every = "10 s", jitter = "100 ms", synchronised = true }"#;

#[test]
fn collecting_loses_less_than_one_hop() {
    let loss = |point: &Point| value(point, "reading", Metric::SegmentLossTotal);
    let one_hop = run(&paper(0, TOGETHER));
    assert!(loss(&one_hop) > 0.7, "{}", loss(&one_hop));
    // Too few collectors have too little room, too many upstream connections do not yield enough.
    let [few, right, many] = [5, 50, 400].map(|count| run(&paper(count, TOGETHER)));
    assert!(loss(&right) < 0.1, "{}", loss(&right));
    assert!(loss(&few) > 2.0 * loss(&right) && loss(&many) > 2.0 * loss(&right));
    assert!(loss(&few) < loss(&one_hop) && loss(&many) < loss(&one_hop));
    // All 4,000 meters are heard three times in 30 s, which one hop is far from.
    assert_eq!(value(&right, "reading", Metric::Messages), 12_000.0);
    assert!(value(&one_hop, "reading", Metric::Messages) < 6_000.0);
    // The total is made of the two stages.
    let stages =
        ["reading", "collector>head"].map(|row| 1.0 - value(&right, row, Metric::SegmentLoss));
    assert_near(1.0 - loss(&right), stages[0] * stages[1]);
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
fn byte_streams_are_complete_at_their_end() {
    // 100,000 B over a line of 100 kbit/s with 40 B of headers on 210: 9.52 s on the wire, although
    // the collector has taken everything over long before.
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
    assert_near(value(&point, "reading", Metric::Goodput), 100_000.0 * 8.0 / completion);
    let bulk = run(&text.replace("load.transfer = { size = \"100 kB\" }", "load = \"bulk\""));
    let goodput = value(&bulk, "reading", Metric::Goodput);
    assert!((0.98..1.001).contains(&(goodput / 84_000.0)), "{goodput}");
}

#[test]
fn what_cannot_be_collected_is_named() {
    let refused = |text: &str| match answer(text, 1) {
        Err(RunError::Unsupported(refused)) => refused[0].key.clone(),
        other => panic!("not refused: {other:?}"),
    };
    let dialogue = r#"load.request_response = { request = "10 B", response = "10 B" }"#;
    assert_eq!(refused(&small(2, "", "", dialogue)), "flow.reading.load.request_response");
    let large = small(2, r#"buffer = "200 B""#, "", EVERY_SECOND);
    assert_eq!(refused(&large), "node.collector.aggregator.buffer");
    let down = small(2, "", "", EVERY_SECOND).replace(
        "from = \"meter\"\n        to = \"head\"",
        "from = \"head\"\n        to = \"meter\"",
    );
    assert_eq!(refused(&down), "flow.reading.to");
}

#[test]
fn captures_name_the_collector_on_both_sides() {
    let text = CHAIN
        .replace("title = \"chain\"", "title = \"chain\"\nrecord.pcap = [\"access\", \"feeder\"]");
    let answer = answer(&text, 1).unwrap();
    let capture = |name: &str| {
        let found = answer.captures.iter().find(|capture| capture.name == name);
        &found.unwrap_or_else(|| panic!("no {name}")).pcapng
    };
    // Nodes count from 0 in the order of the file: meter 0 sends to member 0 of node 1, which sends
    // on to node 2, a single one.
    let has = |name: &str, way: [u8; 8]| capture(name).windows(8).any(|bytes| bytes == way);
    assert!(has("access.forward", [10, 0, 0, 0, 10, 1, 0, 0]));
    assert!(has("access.reverse", [10, 1, 0, 0, 10, 0, 0, 0]));
    assert!(has("feeder.forward", [10, 1, 0, 0, 10, 2, 255, 254]));
    assert!(has("feeder.reverse", [10, 2, 255, 254, 10, 1, 0, 0]));
}
