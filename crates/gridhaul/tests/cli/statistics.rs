//! Replications and unfinished transfers in tables, reports and comparisons.

use gridhaul_scenario::answer::Metric;
use serde_json::{Value, json};

use crate::support::{Desk, SMALL};

/// Half of the transfers start too late to finish.
const TRANSFERS: &str = "count = 4\nstart_spread = \"5 s\"\nload.transfer.size = \"150 kB\"";

fn with_load(load: &str) -> String {
    SMALL.replace("load = \"bulk\"", load)
}

#[test]
fn equal_replications_are_reported_as_deterministic() {
    let desk = Desk::new().file("small.toml", SMALL);
    let done = desk.run("run small.toml --replications 3");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("Deterministic: no random number"), "{}", done.out);
    assert!(!done.out.contains('±'), "{}", done.out);
    let page = desk.text("results/small/report.html");
    assert!(page.contains("3 runs, deterministic"), "the heading of the report");
    assert!(page.contains("Deterministic: no random number") && !page.contains('±'));
    let answer: Value = serde_json::from_str(&desk.text("results/small/answer.json")).unwrap();
    let point = &answer["points"][0];
    assert_eq!(point["deterministic"], json!(true));
    let goodput = &point["flows"][0]["metrics"]["goodput_bit_per_s"];
    assert_eq!((&goodput["ci95"], &goodput["n"]), (&Value::Null, &json!(3)));
    // With one replication no note is needed.
    assert!(!desk.run("run small.toml").out.contains("eterministic"));
}

#[test]
fn random_replications_have_intervals() {
    let poisson = with_load("load.poisson = { size = \"1 kB\", every = \"100 ms\" }");
    let desk = Desk::new().file("random.toml", poisson);
    let done = desk.run("run random.toml --replications 3");
    assert!(done.out.contains('±') && !done.out.contains("eterministic"), "{done:?}");
}

#[test]
fn each_point_of_a_sweep_is_deterministic_or_random() {
    let desk = Desk::new().file("small.toml", SMALL);
    let line = "sweep small.toml --replications 3 --vary 'link.wire.both.loss.bernoulli=0 %,2 %'";
    let done = desk.run(line);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("Deterministic (1 of 2 points)"), "{}", done.out);
}

#[test]
fn a_deterministic_difference_is_not_tested_for_significance() {
    let slower = SMALL.replace("10 ms", "10.001 ms");
    let slow = SMALL.replace("1 Mbit/s", "500 kbit/s");
    let desk = Desk::new().file("small.toml", SMALL).file("slower.toml", slower);
    let desk = desk.file("slow.toml", slow);
    let compare = |other: &str| {
        let line = format!("compare small.toml {other} --replications 3 --must-agree --json");
        let done = desk.run(&format!("{line} --only rtt_mean_s --only goodput_bit_per_s"));
        let comparison: Value = serde_json::from_str(&done.out).unwrap();
        let results = comparison["rows"].as_array().unwrap().iter();
        let results: Vec<_> = results.map(|row| row["others"][0]["result"].clone()).collect();
        (done.code, results)
    };
    let (code, results) = compare("slower.toml");
    assert_eq!(code, Some(0), "a hundredth of a percent is no disagreement");
    assert!(!results.contains(&json!("differ")), "{results:?}");
    assert!(results.contains(&json!("deterministic")), "{results:?}");
    let (code, results) = compare("slow.toml");
    assert_eq!(code, Some(1), "half of the goodput is one");
    assert!(results.iter().all(|result| result == "deterministic"), "{results:?}");
}

#[test]
fn unfinished_transfers_are_reported_with_the_completion_time() {
    let desk = Desk::new().file("files.toml", with_load(TRANSFERS));
    let done = desk.run("run files.toml --replications 5");
    assert_eq!(done.code, Some(0), "{done:?}");
    let line = |name: &str| done.out.lines().find(|line| line.starts_with(name)).unwrap_or("");
    assert!(line("completion time").contains("(censored"), "{}", done.out);
    assert!(line("transfers finished").contains('±'), "{}", done.out);
    assert!(line("transfers unfinished").contains("0."), "{}", done.out);
    assert!(done.err.contains("transfers had not finished"), "{}", done.err);
    let page = desk.text("results/files/report.html");
    for text in ["(censored", "transfers unfinished", "transfers had not finished"] {
        assert!(page.contains(text), "{text}");
    }
    let answer: Value = serde_json::from_str(&desk.text("results/files/answer.json")).unwrap();
    let metrics = &answer["points"][0]["flows"][0]["metrics"];
    assert_eq!(metrics["completion_time_s"]["censored"], json!(true));
    // Without the mark, the mean includes all transfers.
    let done = desk.run("run files.toml --set 'duration=60 s' --replications 5");
    assert!(!done.out.contains("censored") && done.out.contains("transfers finished"), "{done:?}");
}

#[test]
fn comparisons_of_censored_times_are_unknown() {
    let slow = with_load(TRANSFERS).replace("1 Mbit/s", "800 kbit/s");
    let desk = Desk::new().file("files.toml", with_load(TRANSFERS)).file("slow.toml", slow);
    let done =
        desk.run("compare files.toml slow.toml --replications 5 --only completion_time_s --json");
    let comparison: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(comparison["rows"][0]["others"][0]["result"], json!("unknown"), "{}", done.out);
    let done = desk.run("compare files.toml slow.toml --replications 5");
    assert!(done.out.contains("a censored mean"), "{}", done.out);
    assert!(done.out.contains("transfers unfinished"), "{}", done.out);
}

#[test]
fn n_is_shown_where_a_metric_is_unknown_in_some_replications() {
    // A message every 20 s with a random phase: some runs of 5 s contain no message.
    let rare = "transport = \"datagram\"\nload.periodic = { size = \"100 B\", every = \"20 s\" }";
    let desk = Desk::new().file("rare.toml", with_load(rare));
    let done = desk.run("run rare.toml --replications 12");
    assert!(done.out.contains(" of 12)"), "{}", done.out);
    assert!(desk.text("results/rare/report.html").contains(" of 12)"));
    let done = desk.run("compare results/rare rare.toml --replications 12");
    assert!(done.out.contains(" of 12)"), "{}", done.out);
}

#[test]
fn unknown_quantities_are_null_in_json_from_every_backend() {
    let desk = Desk::new().file("small.toml", SMALL);
    for backend in ["sim", "model"] {
        let done = desk.run(&format!("run small.toml --on {backend} --json --quiet"));
        let answer: Value = serde_json::from_str(&done.out).unwrap();
        for (rows, scope) in [("flows", "goodput_bit_per_s"), ("links", "utilisation_ratio")] {
            let scope = scope.parse::<Metric>().unwrap().info().scope;
            let metrics = answer["points"][0][rows][0]["metrics"].as_object().unwrap();
            let columns: Vec<_> = metrics.keys().map(String::as_str).collect();
            let all = Metric::of_every_row(scope).map(|metric| metric.info().column);
            let all: Vec<_> = all.collect();
            assert_eq!(columns, all, "{backend}");
        }
        let time = &answer["points"][0]["flows"][0]["metrics"]["completion_time_s"];
        assert_eq!(*time, json!({ "mean": null, "ci95": null, "n": 0 }), "{backend}");
    }
}

#[test]
fn answers_without_null_columns_are_accepted() {
    let desk = Desk::new().file("small.toml", SMALL);
    assert_eq!(desk.run("run small.toml --quiet").code, Some(0));
    let mut answer: Value = serde_json::from_str(&desk.text("results/small/answer.json")).unwrap();
    let point = answer["points"][0].as_object_mut().unwrap();
    point.remove("deterministic");
    let metrics = point["flows"][0]["metrics"].as_object_mut().unwrap();
    metrics.retain(|_, estimate| !estimate["mean"].is_null());
    let desk = desk.file("older.json", answer.to_string());
    let done = desk.run("compare results/small older.json --must-agree");
    assert_eq!(done.code, Some(0), "{done:?}");
}
