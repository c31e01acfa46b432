//! Planning from outside: a small district that simulates in a moment.

use serde_json::Value;

use crate::support::Desk;

/// Sixty meters; a plan whose loss only the rate of the line decides.
const DISTRICT: &str = r#"
title = "A small district"
duration = "60 s"
warmup = "10 s"
[node]
meter.count = 60
head = {}
[node.collector]
count = 2
aggregate.stack = "upstream"
[link]
access = { from = "meter", to = "collector", shared = true, both = { rate = "1 Mbit/s", delay = "5 ms" } }
wan = { from = "collector", to = "head", shared = true, both = { rate = "1 Mbit/s", delay = "20 ms" } }
[stack]
meter = { profile = "ns2", variant = "reno", mss = "200 B", receive_window = "2 segments" }
upstream = { profile = "ns2", variant = "vegas", mss = "200 B", receive_window = "8 segments" }
[flow.reading]
from = "meter"
to = "head"
stack = "meter"
load.on_off = { on = "100 ms", off = "20 s", size = "200 B" }
[plan]
currency = "EUR"
[plan.choose]
"node.collector.count" = [1, 2, 4]
"link.wan.both.rate" = ["4 kbit/s", "256 kbit/s"]
[plan.cost]
"node.collector.count" = 900
"link.wan.both.rate" = 1000
[plan.limit.reading]
loss = "2 %"
delay_p98 = "10 s"
"#;

#[test]
fn the_winner_is_simulated_and_can_be_run() {
    let desk = Desk::new().file("district.toml", DISTRICT);
    let done = desk.run("plan district.toml --svg --json");
    assert_eq!(done.code, Some(0), "{done:?}");
    let plan: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(plan["winner"]["choice"]["values"]["link.wan.both.rate"], "256 kbit/s");
    assert_eq!(plan["winner"]["choice"]["cost"], 900.0 + 256.0);
    let limits = plan["winner"]["limits"].as_array().unwrap();
    assert_eq!(limits.len(), 2);
    assert!(limits.iter().all(|limit| limit["sim_met"] == true), "{limits:?}");
    // Equations and simulation both know what a message takes.
    assert!(limits[1]["model"].is_f64() && limits[1]["sim"].is_f64(), "{limits:?}");
    assert_eq!(desk.text("results/district-plan/plan.json"), done.out);
    assert!(desk.text("results/district-plan/report.html").contains("Runners-up"));
    assert!(desk.text("results/district-plan/feasible.svg").contains("winner"));
    let again = desk.run("run results/district-plan/scenario.toml --json --quiet");
    assert_eq!(again.code, Some(0), "{again:?}");
    let answer: Value = serde_json::from_str(&again.out).unwrap();
    let loss = &answer["points"][0]["flows"][0]["metrics"]["segment_loss_total_ratio"]["mean"];
    assert_eq!(*loss, limits[0]["sim"]);
}

#[test]
fn an_impossible_request_says_what_would_have_to_change() {
    let desk = Desk::new().file("district.toml", DISTRICT);
    let done = desk.run(
        "plan district.toml --no-verify --set 'plan.choose.link.wan.both.rate=[\"1 kbit/s\", \"2 kbit/s\"]'",
    );
    assert_eq!(done.code, Some(1), "{done:?}");
    for piece in [
        "None of the 6 candidates",
        "loss of reading cannot be kept",
        "2 kbit/s",
        "would be enough",
    ] {
        assert!(done.err.contains(piece), "no {piece:?} in\n{}", done.err);
    }
    let plan: Value = serde_json::from_str(&desk.text("results/district-plan/plan.json")).unwrap();
    assert_eq!(plan["winner"], Value::Null);
    assert_eq!(plan["impossible"]["enough"][0]["key"], "link.wan.both.rate");
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let plain = DISTRICT.split("[plan]").next().unwrap();
    let desk = Desk::new()
        .file("district.toml", DISTRICT)
        .file("plain.toml", plain)
        .file("swept.toml", format!("{DISTRICT}\n[[sweep]]\nvary.seed = [1, 2]\n"));
    for (line, pieces) in [
        ("plan plain.toml", &["plain.toml", "[plan.choose]"][..]),
        ("plan swept.toml", &["swept.toml", "sweep", "help:"]),
        ("plan district.toml --set plan.limit.reading.los='1 %'", &["plan.limit.reading.los"]),
        ("plan district.toml --set plan.cost.node.collector.count=-1", &["plan.cost", "negative"]),
        (
            "plan district.toml --set stack.upstream.variant=bbr --set stack.meter.variant=bbr",
            &["no answer", "bbr", "help:"],
        ),
    ] {
        let done = desk.run(line);
        assert_eq!(done.code, Some(2), "{line}: {done:?}");
        assert!(pieces.iter().all(|piece| done.err.contains(piece)), "{line}: {}", done.err);
    }
}
