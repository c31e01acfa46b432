//! Backend `model` together with `sim`, and `gridhaul model`.

use crate::support::Desk;
use gridhaul_scenario::answer::{Answer, Metric};

/// A short scenario that both backends support.
const LINE: &str = r#"
title = "line"
duration = "60 s"
warmup = "5 s"
[node]
a = {}
b = {}
[link]
line = { from = "a", to = "b", both = { rate = "1 Mbit/s", delay = "40 ms" } }
[stack.x]
congestion_control = "reno"
receive_window = "4 segments"
[flow.f]
from = "a"
to = "b"
stack = "x"
load = "bulk"
"#;

#[test]
fn the_results_of_two_backends_are_compared() {
    let desk = Desk::new().file("line.toml", LINE);
    let done = desk.run("run line.toml --on sim,model --out both --svg");
    assert_eq!(done.code, Some(0), "{done:?}");
    let header = done.out.lines().next().unwrap();
    assert!(header.contains("sim") && header.contains("model") && header.contains("difference"));
    // Four segments of 1448 B and 52 B of headers per round trip, without random numbers: both
    // backends agree.
    let goodput = done.out.lines().find(|line| line.contains("goodput")).unwrap();
    assert!(["+0.", "-0.", " 0.0 %"].iter().any(|near| goodput.contains(near)), "{goodput}");
    assert!(done.err.contains("model: flow.f") && done.err.contains("receive window"), "{done:?}");
    let read = |name: &str| serde_json::from_str::<Answer>(&desk.text(name)).unwrap();
    let answers = ["both/answer.json", "both/answer-model.json"].map(read);
    assert_eq!(answers.each_ref().map(|answer| answer.backend.as_str()), ["sim", "model"]);
    assert!(answers[1].points[0].flows[0].mean(Metric::Goodput).is_some());
    let names = desk.names("both");
    assert!(names.iter().any(|name| name == "comparison.json"), "{names:?}");
    // The answer of the other backend is deleted only on request.
    assert_eq!(desk.run("run line.toml --on model --out both").code, Some(2));
    assert_eq!(desk.run("run line.toml --on model --out both --force").code, Some(0));
    assert!(!desk.names("both").iter().any(|name| name == "answer-model.json"));
}

#[test]
fn a_sweep_is_one_table_and_compare_takes_one_scenario() {
    let desk = Desk::new().file("line.toml", LINE);
    let vary = "--vary 'link.line.both.delay=lin:10 ms:100 ms:6'";
    let done = desk.run(&format!("sweep line.toml --on model,sim {vary} --quiet"));
    assert_eq!(done.code, Some(0), "{done:?}");
    // Heading, rule, one line per point, and a note.
    assert_eq!(done.out.lines().count(), 1 + 1 + 6 + 1, "{}", done.out);
    let done = desk.run("compare line.toml --on sim,model --only goodput_bit_per_s");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("line (sim)") && done.out.contains("line (model)"), "{}", done.out);
    let done = desk.run("compare line.toml");
    assert!(done.code == Some(2) && done.err.contains("--on sim,model"), "{done:?}");
    let done = desk.run("run line.toml --on sim,sim");
    assert!(done.code == Some(2) && done.err.contains("twice"), "{done:?}");
}

/// Transfers that overlap: their completion time is no result of the model.
#[test]
fn answers_without_a_common_metric_are_kept() {
    let transfers = LINE
        .replace("load = \"bulk\"", "count = 20\nload.transfer.size = \"5 kB\"")
        .replace("receive_window = \"4 segments\"", "");
    let desk = Desk::new().file("pair.toml", transfers);
    let done = desk.run("run pair.toml --on sim,model --only completion_time_s");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("sim and model have no metric in common"), "{}", done.err);
    assert!(done.out.contains("completion time"), "{}", done.out);
    let names = desk.names("results/pair");
    for name in ["answer.json", "answer-model.json"] {
        assert!(names.iter().any(|own| own == name), "{names:?}");
    }
    let done = desk.run("run pair.toml --on sim,model --json --out json -q");
    let answers: Vec<Answer> = serde_json::from_str(&done.out).unwrap();
    assert_eq!((done.code, answers.len()), (Some(0), 2), "{}", done.err);
    let compare = "compare results/pair/answer.json results/pair/answer-model.json -q \
                   --only completion_time_s";
    let done = desk.run(compare);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("nothing is compared"), "{}", done.err);
    assert_eq!(desk.run(&format!("{compare} --force --must-agree")).code, Some(1));
}

#[test]
fn unsupported_keys_are_rejected_before_the_run() {
    let desk = Desk::new().file("line.toml", LINE.replace("\"reno\"", "\"bbr\""));
    let done = desk.run("run line.toml --on sim,model");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.err.contains("`model`") && done.err.contains("stack.x.congestion_control"),
        "{}",
        done.err
    );
    // The library names another backend, and the program the option that chooses it.
    assert!(done.err.contains("use backend `sim`"), "{}", done.err);
    assert!(done.err.contains("--on sim"), "{}", done.err);
    assert!(!desk.dir.path().join("results").exists());
}

#[test]
fn chains_are_printed_in_three_formats() {
    let desk = Desk::new();
    let chain = |more: &str| {
        let done =
            desk.run(&format!("model chain meter --congestion-control vegas --rules paper {more}"));
        assert_eq!(done.code, Some(0), "{done:?}");
        done.out
    };
    assert!(chain("").contains("| idle | window 1 | 0.016667 |"), "1/60 s");
    assert!(chain("--format dot").starts_with("digraph chain {"));
    assert!(chain("--format mermaid").starts_with("stateDiagram-v2\n"));
    for wrong in ["--rtt '0 s'", "--window 3", "--loss 2"] {
        let done = desk.run(&format!("model chain meter {wrong}"));
        assert!(done.code == Some(2) && !done.err.is_empty(), "{wrong}: {done:?}");
    }
}

#[test]
fn an_idle_period_restarts_the_window_unless_disabled() {
    let desk = Desk::new();
    let restarts = |more: &str| {
        let done = desk.run(&format!("model chain meter {more}"));
        assert_eq!(done.code, Some(0), "{done:?}");
        done.out.contains("new after a silence")
    };
    assert_eq!(
        ["", "--congestion-control vegas", "--no-restart"].map(restarts),
        [true, true, false]
    );
}

#[test]
fn the_chain_of_an_aggregator_is_printed() {
    let desk = Desk::new();
    let chain = |more: &str| {
        let done = desk.run(&format!("model chain aggregator --rtt '1 s' {more}"));
        assert_eq!(done.code, Some(0), "{done:?}");
        done.out
    };
    // Almost no queueing: a round takes one second. A single segment arrives with a probability of
    // 90 %, and Reno grows.
    let table = chain("--rules paper --load '0 %'");
    assert!(table.contains("| avoidance 1 | avoidance 2 | 0.900000 |"), "{table}");
    assert!(!table.contains("constant window"));
    // Vegas doubles its window in every second round.
    assert!(
        chain("--window 8 --congestion-control vegas")
            .contains("| slow start, constant window 2 (threshold 4) |")
    );
    assert!(chain("--format dot").starts_with("digraph chain {"));
    assert!(chain("--format mermaid").starts_with("stateDiagram-v2\n"));
    for wrong in ["--service '0 s'", "--window 65", "--queue 0", "--load 2"] {
        let done = desk.run(&format!("model chain aggregator {wrong}"));
        assert!(done.code == Some(2) && !done.err.is_empty(), "{wrong}: {done:?}");
    }
}
