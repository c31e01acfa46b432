//! Event logs of simulated connections.

use gridhaul_scenario::answer::{Answer, ColumnData};
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
    let of = |seed| {
        let keys = "duration = '5 s'\nreplications = 2\nrecord.events = ['up']";
        let keys = format!("{keys}\nseed = {seed}");
        log(&run(&lossy("linux", &keys, "'bulk'")))
    };
    assert_eq!(of(5), of(5));
    assert_ne!(of(5), of(6));
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
