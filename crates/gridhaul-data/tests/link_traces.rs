//! Traces of links: files of a scenario, and the traces of `scenarios/lte-trace.toml`.

use std::fs;
use std::path::Path;

use gridhaul_data::{link_trace, trace};
use gridhaul_scenario::scenario::LinkTraceContent;
use gridhaul_scenario::units::Instant;

const SCENARIO: &str = r#"title = "day"
duration = "10 s"
[node]
meter = {}
head = {}
[link.radio]
from = "meter"
to = "head"
forward.trace.mahimahi.file = "up.mahi"
reverse.trace.steps = { file = "down.csv", every = "10 s" }
[flow.reading]
from = "meter"
to = "head"
load = "bulk"
"#;

#[test]
fn files_are_relative_to_the_scenario_and_read_before_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    file("day.toml", SCENARIO);
    let load = || trace::load_scenario(&folder.path().join("day.toml"));
    let message = load().unwrap_err().to_string();
    assert!(message.contains("day.toml:9:31: link.radio.forward.trace.mahimahi.file"), "{message}");
    assert!(message.contains("link.radio.reverse.trace.steps.file"), "{message}");
    assert!(message.contains("help: check the spelling"), "{message}");
    file("up.mahi", "1\n2\n10\n");
    file("down.csv", "time_s,rate_bit_per_s\n0,1000000\n5,slow\n");
    let message = load().unwrap_err().to_string();
    assert!(message.contains("down.csv:3:3: column `rate_bit_per_s`"), "{message}");
    file("down.csv", "time_s,rate_bit_per_s\n0,1000000\n5,0\n");
    let scenario = load().unwrap();
    let directions = link_trace::directions(&scenario).unwrap();
    // 3 packets in 10 ms, and 1 Mbit/s in half of the time.
    let rates: Vec<_> = directions.rates().iter().map(|rate| rate.as_bits_per_sec()).collect();
    assert_eq!(rates[1], 500_000);
    assert!((rates[0] as f64 / 3.6e6 - 1.0).abs() < 1e-3, "{}", rates[0]);
    // The merged scenario finds the files from another folder.
    let elsewhere = tempfile::tempdir().unwrap();
    let merged = elsewhere.path().join("merged.toml");
    fs::write(&merged, scenario.to_toml()).unwrap();
    assert_eq!(trace::load_scenario(&merged).unwrap(), scenario);
}

/// A sequence of levels from 1 to 12, one for each 100 ms: a random walk with the generator of
/// Knuth's MMIX. Opportunities of a level are at equal distances, without those in interruptions.
fn walk(seed: u64, per_level: u64) -> String {
    let (mut state, mut level, mut lines) = (seed, 6_i64, String::new());
    for interval in 0..200 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        level = (level + (state >> 33) as i64 % 3 - 1).clamp(1, 12);
        let count = level as u64 * per_level;
        let times = (0..count).map(|number| 100 * interval + 100 * number / count);
        for time in times.filter(|time| !(5_000..5_300).contains(&(time % 6_000))) {
            lines += &format!("{time}\n");
        }
    }
    // The last line is the length of the trace.
    lines + "20000\n"
}

#[test]
fn the_traces_of_the_scenario_are_those_of_the_stated_process() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for (name, seed, per_level) in [("lte-up", 1, 2), ("lte-down", 2, 3)] {
        let path = folder.join(format!("traces/{name}.mahi"));
        assert_eq!(fs::read_to_string(&path).unwrap(), walk(seed, per_level), "{name}");
    }
    let scenario = trace::load_scenario(&folder.join("lte-trace.toml")).unwrap();
    let keys = scenario.link["lte"].reverse().and_then(|reverse| reverse.trace.as_ref()).unwrap();
    let LinkTraceContent::Deliveries(down) = link_trace::read(&scenario, keys).unwrap() else {
        panic!("a trace of opportunities");
    };
    let [start, end] = [2.0, 20.0].map(Instant::from_secs_f64);
    assert_eq!(down.first_from(end) - down.first_from(start), 3_498);
}
