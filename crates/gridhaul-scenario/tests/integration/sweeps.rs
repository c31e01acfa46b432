//! Sweeps become points in a stable order.

use gridhaul_scenario::Scenario;
use gridhaul_scenario::scenario::Loss;

const BASE: &str = r#"
title = "sweeps"
duration = "60 s"
node.a = {}
node.b = {}
link.l = { from = "a", to = "b", both.rate = "3 Mbit/s" }
flow.f = { from = "b", to = "a", load = "bulk" }
"#;

/// The points of a sweep, each as its values.
fn points(sweep: &str) -> Vec<String> {
    let scenario = Scenario::from_toml(&format!("{BASE}\n{sweep}"), "sweep.toml").unwrap();
    let points = scenario.points().unwrap();
    assert_eq!(points.len(), scenario.point_count().unwrap());
    for point in &points {
        assert!(point.scenario.sweep.is_empty());
        point.scenario.validate().unwrap();
    }
    let values = |values: indexmap::map::Values<'_, String, String>| {
        values.map(String::as_str).collect::<Vec<_>>().join(" | ")
    };
    points.iter().map(|point| values(point.parameters.values())).collect()
}

#[test]
fn without_a_sweep_there_is_one_point() {
    assert_eq!(points(""), [""]);
}

#[test]
fn the_last_entry_changes_fastest_and_keys_of_one_entry_together() {
    let found = points(
        "[[sweep]]\nvary.seed = [1, 2]\nvary.replications = [10, 20]\n\
         [[sweep]]\nvary.\"link.l.both.delay\" = [\"1 ms\", \"2 ms\"]",
    );
    assert_eq!(found, ["1 | 10 | 1 ms", "1 | 10 | 2 ms", "2 | 20 | 1 ms", "2 | 20 | 2 ms"]);
}

#[test]
fn an_entry_of_a_list_that_the_file_lacks_is_an_error_with_a_remedy() {
    let refused = |base: &str, key: &str| {
        let sweep = format!("[[sweep]]\nvary.\"{key}\" = [\"2 s\", \"3 s\"]");
        Scenario::from_toml(&format!("{base}\n{sweep}"), "a.toml").unwrap_err().to_string()
    };
    let outage = "both.outage = [{ start = \"1 s\", length = \"1 s\" }], both.rate";
    let with_list = BASE.replace("both.rate", outage);
    for key in ["link.l.both.outage.0.length", "link.l.both.outage[0].length"] {
        let error = refused(BASE, key);
        let reason = "\"link.l.both.outage\" has no entry 0, since the file has no such list";
        assert!(error.contains(reason), "{error}");
        assert!(error.contains("help: give the whole list"), "{error}");
        let sweep = format!("[[sweep]]\nvary.\"{key}\" = [\"2 s\", \"3 s\"]");
        let swept = Scenario::from_toml(&format!("{with_list}\n{sweep}"), "a.toml").unwrap();
        assert_eq!(swept.points().unwrap().len(), 2);
    }
    let error = refused(&with_list, "link.l.both.outage.1.length");
    assert!(error.contains("has no entry 1") && error.contains("give the whole list"), "{error}");
}

#[test]
fn ranges_keep_the_unit_and_the_ends() {
    let rate = |range: &str| points(&format!("[[sweep]]\nvary.\"link.l.both.rate\" = {range}"));
    assert_eq!(
        rate("{ linear = [\"1 Mbit/s\", \"2 Mbit/s\"], points = 6 }"),
        ["1 Mbit/s", "1.2 Mbit/s", "1.4 Mbit/s", "1.6 Mbit/s", "1.8 Mbit/s", "2 Mbit/s"]
    );
    assert_eq!(
        rate("{ log = [\"10 kbit/s\", \"10_000 kbit/s\"], points = 4 }"),
        ["10 kbit/s", "100 kbit/s", "1000 kbit/s", "10_000 kbit/s"]
    );
    let queue = "[[sweep]]\nvary.\"link.l.both.queue\" = ";
    assert_eq!(
        points(&format!("{queue}{{ log = [\"1 packets\", \"10 packets\"], points = 3 }}")),
        ["1 packets", "3 packets", "10 packets"]
    );
    assert_eq!(points("[[sweep]]\nvary.seed = { linear = [9, 1], points = 3 }"), ["9", "5", "1"]);
}

#[test]
fn large_ends_keep_every_digit() {
    assert_eq!(
        points(
            "[[sweep]]\nvary.seed = { linear = [9007199254740993, 9223372036854775807], points = \
             2 }"
        ),
        ["9007199254740993", "9223372036854775807"]
    );
}

#[test]
fn keys_that_are_absent_but_exist_can_be_varied() {
    let scenario = Scenario::from_toml(
        &format!("{BASE}\n[[sweep]]\nvary.\"link.l.both.loss.bernoulli\" = [\"0 %\", \"5 %\"]"),
        "sweep.toml",
    );
    let points = scenario.unwrap().points().unwrap();
    let both = points[1].scenario.link["l"].both.as_ref().unwrap();
    assert!(matches!(both.loss, Some(Loss::Bernoulli(loss)) if loss.ratio() == 0.05));
}

#[test]
fn list_entries_are_indexed_after_a_dot_or_in_brackets() {
    for key in ["link.l.both.outage.1.start", "link.l.both.outage[1].start"] {
        let text = BASE.replace(
            "both.rate = \"3 Mbit/s\"",
            "both.rate = \"3 Mbit/s\", both.outage = [{ start = \"1 s\", length = \"1 s\" }, \
             { start = \"9 s\", length = \"1 s\" }]",
        );
        let text = format!("{text}\n[[sweep]]\nvary.\"{key}\" = [\"20 s\"]");
        let points = Scenario::from_toml(&text, "sweep.toml").unwrap().points().unwrap();
        let both = points[0].scenario.link["l"].both.as_ref().unwrap();
        let starts: Vec<_> = both.outage.iter().map(|outage| outage.start.to_string()).collect();
        assert_eq!(starts, ["1 s", "20 s"]);
    }
}

#[test]
fn whole_values_can_be_varied() {
    assert_eq!(
        points("[[sweep]]\nvary.\"flow.f.load\" = [\"bulk\", { transfer = { size = \"1 MB\" } }]"),
        ["bulk", "{\"transfer\":{\"size\":\"1 MB\"}}"]
    );
}

#[test]
fn combinations_that_contradict_are_found_when_points_are_made() {
    // Each value is valid with the first value of the other entry; the last pair is not.
    let text = format!(
        "{BASE}\n[[sweep]]\nvary.duration = [\"60 s\", \"20 s\"]\n\
         [[sweep]]\nvary.warmup = [\"1 s\", \"30 s\"]"
    );
    let error = Scenario::from_toml(&text, "sweep.toml").unwrap().points().unwrap_err();
    assert_eq!(
        error.to_string(),
        "sweep[1].vary.\"warmup\"[1]: with the value \"30 s\": warmup: the warm-up (30 s) leaves \
         no time of the run (20 s) for the measurement\n  help: make it shorter than `duration`"
    );
}

#[test]
fn labels_belong_to_the_values_of_an_entry() {
    let text = "[[sweep]]\nvary.seed = [1, 2]\nvary.replications = [10, 20]\nlabel = \
        [\"few\", \"many\"]\n\
                [[sweep]]\nvary.\"link.l.both.delay\" = [\"1 ms\", \"2 ms\"]";
    let scenario = Scenario::from_toml(&format!("{BASE}\n{text}"), "sweep.toml").unwrap();
    let points = scenario.points().unwrap();
    let labels = |index: usize| {
        let labels = &points[index].labels;
        labels.iter().map(|(key, label)| format!("{key}={label}")).collect::<Vec<_>>()
    };
    assert_eq!(labels(0), ["seed=few", "replications=few"]);
    assert_eq!(labels(3), ["seed=many", "replications=many"]);
    // A label names a value for people: the scenarios of the points are the same without.
    let plain = text.replace("label = [\"few\", \"many\"]\n", "");
    let plain = Scenario::from_toml(&format!("{BASE}\n{plain}"), "sweep.toml").unwrap();
    for (with, without) in points.iter().zip(plain.points().unwrap()) {
        assert_eq!((&with.scenario, &with.parameters), (&without.scenario, &without.parameters));
        assert!(without.labels.is_empty());
    }
}

#[test]
fn labels_that_do_not_fit_the_values_are_refused() {
    for (labels, message) in [
        ("[\"one\"]", "expected a label for each of the 2 values, but there are 1"),
        ("[]", "expected a label for each of the 2 values, but there are 0"),
        ("[\"one\", \"one\"]", "the label \"one\" is empty or duplicate"),
        ("[\"one\", \" \"]", "the label \" \" is empty or duplicate"),
    ] {
        let text = format!("{BASE}\n[[sweep]]\nvary.seed = [1, 2]\nlabel = {labels}");
        let error = Scenario::from_toml(&text, "sweep.toml").unwrap_err().to_string();
        assert!(error.contains(message) && error.contains("label ="), "{error}");
    }
}

/// Points are named by their values.
#[test]
fn equal_values_are_refused() {
    let refused = |sweep: &str| {
        let scenario = Scenario::from_toml(&format!("{BASE}\n{sweep}"), "sweep.toml");
        scenario.map(drop).unwrap_err().to_string()
    };
    let error = refused("[[sweep]]\nvary.seed = [1, 2, 1]");
    assert!(
        error.contains("sweep[0].vary") && error.contains("the value 1 occurs twice"),
        "{error}"
    );
    assert!(error.contains("replications"), "{error}");
    let rate = "vary.\"link.l.both.rate\" = [\"1 Mbit/s\", \"1 Mbit/s\"]";
    assert!(refused(&format!("[[sweep]]\n{rate}")).contains("1 Mbit/s"));
    // Keys that vary together have to differ in one of them.
    let pair = |seeds: &str| format!("[[sweep]]\n{rate}\nvary.seed = {seeds}");
    assert_eq!(points(&pair("[1, 2]")), ["1 Mbit/s | 1", "1 Mbit/s | 2"]);
    assert!(refused(&pair("[3, 3]")).contains("occurs twice"));
}

#[test]
fn a_single_packet_message_or_segment_has_a_unit_in_the_singular() {
    let scenario = |queue: &str| {
        Scenario::from_toml(
            &BASE.replace(
                "both.rate = \"3 Mbit/s\"",
                &format!("both = {{ rate = \"3 Mbit/s\", queue = \"{queue}\" }}"),
            ),
            "one.toml",
        )
    };
    let [one, also] = ["1 packet", "1 packets"].map(|queue| scenario(queue).unwrap());
    assert_eq!(one.link, also.link);
    let text = toml::to_string(&one).unwrap();
    assert!(text.contains("\"1 packet\""), "{text}");
}
