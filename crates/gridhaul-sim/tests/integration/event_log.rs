//! Event logs of simulated connections.

use gridhaul_scenario::answer::{Answer, ColumnData, Metric};
use serde_json::Value;

use crate::support::{run, two_nodes};

/// The log of the first logged flow.
fn log(answer: &Answer) -> String {
    let mut bytes = Vec::new();
    answer.event_logs[0].jsonl.copy_to(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn lossy(profile: &str, keys: &str, load: &str) -> String {
    two_nodes(
        keys,
        "rate = '1 Mbit/s', delay = '20 ms', loss = { bernoulli = '4 %' }",
        &format!(
            "[stack.s]\nprofile = '{profile}'\n[flow.up]\nfrom = 'a'\nto = 'b'\n\
             stack = 's'\nload = {load}"
        ),
    )
}

/// A transfer of 30 kB over a lossy link. A reader can follow it: handshake, slow start, the
/// losses, fast recovery, and the end.
#[test]
fn the_log_of_a_short_lossy_transfer_tells_its_course() {
    let keys = "duration = '10 s'\nrecord.events = ['up']\nseed = 3";
    let answer = run(&lossy("rfc", keys, "{ transfer = { size = '30 kB' } }"));
    insta::assert_snapshot!("lossy-transfer", log(&answer));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let log_with = |seed| {
        let keys = "duration = '5 s'\nreplications = 2\nrecord.events = ['up']";
        let keys = format!("{keys}\nseed = {seed}");
        log(&run(&lossy("linux", &keys, "'bulk'")))
    };
    assert_eq!(log_with(5), log_with(5));
    assert_ne!(log_with(5), log_with(6));
}

#[test]
fn recording_events_does_not_change_the_answer() {
    for profile in ["ns2", "linux"] {
        let with = run(&lossy(profile, "duration = '5 s'\nrecord.events = ['up']", "'bulk'"));
        let without = run(&lossy(profile, "duration = '5 s'", "'bulk'"));
        assert_eq!(with.points, without.points, "{profile}");
    }
}

/// Windows of the series: time in seconds, window and threshold in bytes.
fn windows(answer: &Answer) -> Vec<(f64, f64, Option<f64>)> {
    let series = answer.series.iter().find(|series| series.name == "windows").unwrap();
    let column = |name: &str| {
        let index = series.columns.iter().position(|column| column.name == name).unwrap();
        match series.values(index, 0..series.row_count()).unwrap() {
            ColumnData::Real(values) => values,
            other => panic!("{name}: {other:?}"),
        }
    };
    let (times, cwnd) = (column("time_s"), column("cwnd_byte"));
    let known = |value: f64| (!value.is_nan()).then_some(value);
    let ssthresh = column("ssthresh_byte").into_iter().map(known);
    times.into_iter().zip(cwnd).zip(ssthresh).map(|((at, cwnd), limit)| (at, cwnd, limit)).collect()
}

/// Each sample equals the last window event before it, or one at the same time.
#[test]
fn the_windows_of_the_log_equal_those_of_the_series() {
    let algorithms = ["tahoe", "reno", "new_reno", "sack", "vegas", "cubic", "bbr", "westwood"];
    let of_profiles = [("ns2", "sack"), ("linux", "cubic")];
    for (profile, algorithm) in algorithms.map(|name| ("rfc", name)).into_iter().chain(of_profiles)
    {
        let keys = "duration = '20 s'\nrecord = { events = ['up'], interval = '7 ms' }";
        let text = lossy(profile, keys, "{ poisson = { size = '4 kB', every = '60 ms' } }");
        let stack = format!("[stack.s]\ncongestion_control = '{algorithm}'");
        let answer = run(&text.replace("[stack.s]", &stack));
        let text = log(&answer);
        let events: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of_sender = events.iter().filter(|event| event["end"] == "from");
        let changes: Vec<_> = of_sender
            .filter(|event| event["event"] == "congestion_window_updated")
            .map(|event| {
                let number = |key: &str| event[key].as_f64();
                (number("time_s").unwrap(), number("cwnd_byte").unwrap(), number("ssthresh_byte"))
            })
            .collect();
        let samples = windows(&answer);
        assert!(changes.len() > 30 && samples.len() > 2_000, "{profile} {algorithm}: too short");
        for (at, cwnd, ssthresh) in samples {
            let after = changes.partition_point(|change| change.0 < at - 1e-9);
            let now = changes[after..].iter().take_while(|change| change.0 < at + 1e-9);
            let mut possible = changes[..after].last().into_iter().chain(now);
            assert!(
                possible.any(|change| (change.1, change.2) == (cwnd, ssthresh)),
                "{profile} {algorithm}: {cwnd} {ssthresh:?} at {at} s is no window of the log"
            );
        }
    }
}

#[test]
fn every_point_of_a_sweep_has_a_log() {
    let keys = "duration = '2 s'\nrecord.events = ['up']";
    let text = lossy("rfc", keys, "'bulk'") + "\n[[sweep]]\nvary.seed = [1, 2]\n";
    let names: Vec<_> = run(&text).event_logs.into_iter().map(|log| log.name).collect();
    assert_eq!(names, ["up-0", "up-1"]);
}

/// The events of a log.
fn events(answer: &Answer) -> Vec<Value> {
    log(answer).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A scenario with the events of its flow `up`, and without.
fn with_and_without(text: &str) -> [Answer; 2] {
    [run(text), run(&text.replace("record.events = [\"up\"]", ""))]
}

const SPLIT: &str = r#"
    title = "split"
    duration = "20 s"
    warmup = "0 s"
    record.events = ["up"]
    [node]
    source = {}
    sink = {}
    [node.relay.proxy]
    mode = "split"
    buffer = "64 KiB"
    crash = [{ at = "10 s", down = "1 s" }]
    [link]
    near = { from = "source", to = "relay", both = { rate = "10 Mbit/s", delay = "5 ms" } }
    [link.far]
    from = "relay"
    to = "sink"
    both = { rate = "1 Mbit/s", delay = "50 ms", loss = { bernoulli = "2 %" } }
    [stack.s]
    profile = "rfc"
    [flow.up]
    from = "source"
    to = "sink"
    stack = "s"
    load = "bulk"
"#;

#[test]
fn a_proxy_on_the_path_logs_its_buffer_its_retransmissions_and_its_crash() {
    let [answer, without] = with_and_without(SPLIT);
    assert_eq!(answer.points, without.points);
    let events = events(&answer);
    let of_relay = || events.iter().filter(|event| event["node"] == "relay");
    let named = |name: &'static str| of_relay().filter(move |event| event["event"] == name);
    let at_risk = named("node_buffer_updated").filter_map(|event| event["at_risk_byte"].as_u64());
    let metric = answer.points[0].flows[0].mean(Metric::BytesAtRiskMax).unwrap();
    assert_eq!(at_risk.max(), Some(metric as u64));
    let repeated = named("node_segments_retransmitted");
    let repeated: u64 = repeated.filter_map(|event| event["segments"].as_u64()).sum();
    let metric = answer.points[0].flows[0].mean(Metric::ProxyRetransmissions).unwrap();
    assert!(repeated > 5 && repeated == metric as u64, "{repeated}, not {metric}");
    let states: Vec<_> = named("node_state_updated")
        .map(|event| (event["time_s"].as_f64().unwrap(), &event["new"], &event["cause"]))
        .collect();
    let (down, up) = ((10.0, "down", "crash"), (11.0, "up", "restart"));
    assert_eq!(states.len(), 2);
    for ((at, new, cause), expected) in states.into_iter().zip([down, up]) {
        assert_eq!((at, new.as_str().unwrap(), cause.as_str().unwrap()), expected);
    }
    let ends = events.iter().filter(|event| event["end"].is_null());
    assert_eq!(ends.count(), of_relay().count(), "each line has an end or a node");
}

const AGGREGATOR: &str = r#"
    title = "aggregator"
    duration = "60 s"
    warmup = "0 s"
    record.events = ["up"]
    [node]
    meter = {}
    concentrator = { aggregator = { buffer = "4 messages" } }
    head = {}
    [link]
    access = { from = "meter", to = "concentrator", both = { rate = "1 Mbit/s", delay = "10 ms" } }
    wan = { from = "concentrator", to = "head", both = { rate = "10 kbit/s", delay = "20 ms" } }
    [flow.up]
    from = "meter"
    to = "head"
    load.poisson = { size = "210 B", every = "100 ms" }
"#;

#[test]
fn an_aggregator_on_the_path_logs_its_buffer_and_refused_segments() {
    let [answer, without] = with_and_without(AGGREGATOR);
    assert_eq!(answer.points, without.points);
    let events = events(&answer);
    let named = |name: &'static str| {
        let of_node = events.iter().filter(|event| event["node"] == "concentrator");
        of_node.filter(move |event| event["event"] == name)
    };
    let upstream = &answer.points[0].flows[1];
    for (field, metric) in
        [("waiting_messages", Metric::BufferMax), ("at_risk_byte", Metric::BytesAtRiskMax)]
    {
        let values = named("node_buffer_updated").filter_map(|event| event[field].as_u64());
        assert_eq!(values.max(), upstream.mean(metric).map(|value| value as u64), "{field}");
    }
    let refused: Vec<_> = named("node_segment_refused").collect();
    assert!(!refused.is_empty(), "the load exceeds the rate of the link");
    for event in refused {
        assert_eq!(event["cause"], "buffer_full");
        assert!(event["first_seq"].as_u64() < event["end_seq"].as_u64(), "{event}");
    }
}

#[test]
fn a_delayed_acknowledgement_is_logged_when_its_timer_expires() {
    let keys = "duration = '2 s'\nrecord.events = ['up']";
    // A segment every 500 ms: the receiver waits for another one in vain.
    let load = "{ periodic = { size = '100 B', every = '500 ms', synchronised = true } }";
    let text = lossy("rfc", keys, load);
    let text = text.replace("loss = { bernoulli = '4 %' }", "queue = '9 packets'");
    let text = text.replace("profile = 'rfc'", "profile = 'rfc'\ndelayed_ack = '200 ms'");
    let events = events(&run(&text));
    let expired: Vec<f64> = events
        .iter()
        .filter(|event| event["timer"] == "delayed_acknowledgement")
        .map(|event| {
            assert_eq!((&event["end"], &event["rto_s"]), (&Value::from("to"), &Value::Null));
            event["time_s"].as_f64().unwrap()
        })
        .collect();
    assert_eq!(expired.len(), 4, "{expired:?}");
    // The first message has waited for the handshake.
    for pair in expired[1..].windows(2) {
        assert!((pair[1] - pair[0] - 0.5).abs() < 1e-9, "{expired:?}");
    }
}
