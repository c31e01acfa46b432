//! The highest rate over a link whose capacity is known.

use std::fs;
use std::process::Command;

use gridhaul_testing::has_tool;
use serde_json::Value;

use crate::run;

/// Packets of 228 B with the headers of IP and UDP: 548 messages/s.
pub(crate) const SCENARIO: &str = r#"
title = "one link"
duration = "60 s"
[node]
a = {}
b = {}
[link.wan]
from = "a"
to = "b"
forward = { rate = "1 Mbit/s", queue = "100 packets", delay = "10 ms" }
reverse = { rate = "1 Mbit/s", queue = "100 packets", delay = "10 ms" }
[flow.test]
from = "a"
to = "b"
load = "bulk"
"#;

#[test]
fn the_highest_rate_is_that_of_the_link_or_the_machine_is_named_as_the_limit() {
    let is_possible = Command::new("unshare").args(["-n", "true"]).status();
    if !has_tool(
        is_possible.is_ok_and(|status| status.success()),
        "the right to create network namespaces",
    ) {
        return;
    }
    let desk = tempfile::tempdir().unwrap();
    fs::write(desk.path().join("link.toml"), SCENARIO).unwrap();
    let search = "rate udp --scenario link.toml --bytes 200 --rate 500 --rate-min 100 \
                  --rate-max 620 --resolution 0.1 --trial 2s --confirmations 0 --horizon 1s \
                  --json -q";
    let done = run(desk.path(), search);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&summary["complete"], &summary["fault"]), (&true.into(), &Value::Null));
    let idle_states = summary["settings"]["idle_states"].as_str().unwrap();
    assert!(idle_states.contains("none") || idle_states == "all", "{idle_states}");
    let sustained = summary["sustained_per_s"].as_f64();
    match summary["limited_by"].as_str().unwrap() {
        "network" => {
            let sustained = sustained.unwrap();
            assert!((500.0..=550.0).contains(&sustained), "{summary}");
        }
        // On a busy machine: what is sustained is at least that, and never more than the link
        // carries.
        "machine" => {
            assert!(sustained.is_none_or(|rate| rate <= 550.0), "{summary}");
            assert!(summary["disturbed_per_s"].is_number(), "{summary}");
        }
        other => panic!("{other}: {summary}"),
    }
}
