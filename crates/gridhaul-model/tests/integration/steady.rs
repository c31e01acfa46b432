//! Bulk flows and transfers: scenarios solved by the steady-state formulas.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::Scenario;
use proptest::prelude::*;

/// A flow over a link of 1 Mbit/s with a round-trip time of 100 ms; `replace` changes parts of the
/// text.
fn scenario(replace: &[(&str, &str)]) -> Scenario {
    let mut text = r#"
title = "scenario"
duration = "100 s"
warmup = "10 s"
[node]
a = {}
b = {}
[link.line]
from = "a"
to = "b"
[link.line.forward]
rate = "1 Mbit/s"
delay = "44 ms"
queue = "100 packets"
loss = { bernoulli = "1 %" }
[link.line.reverse]
rate = "1 Mbit/s"
delay = "43.68 ms"
[stack.x]
profile = "ns2"
congestion_control = "reno"
receive_window = "1000 segments"
[flow.f]
from = "a"
to = "b"
stack = "x"
load = "bulk"
"#
    .to_owned();
    for (old, new) in replace {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    Scenario::from_toml(&text, "line.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn solve(scenario: &Scenario) -> Answer {
    Model::REFINED.run(scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

fn mean(answer: &Answer, metric: Metric) -> Option<f64> {
    answer.points[0].flows[0].mean(metric)
}

fn unsupported_keys(scenario: &Scenario) -> Vec<String> {
    match Model::REFINED.run(scenario, &NoProgress) {
        Err(RunError::Unsupported(keys)) => keys.into_iter().map(|key| key.key).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_completion_of_short_transfers_by_hand() {
    let time = |size: &str| {
        let load = format!("load.transfer = {{ size = \"{size}\" }}");
        let answer = solve(&scenario(&[("1 %", "0 %"), ("load = \"bulk\"", &load)]));
        mean(&answer, Metric::CompletionTime).unwrap()
    };
    // SYN and SYN-ACK of 40 B: 0.32 + 44 + 0.32 + 43.68 = 88.32 ms. Then 140 B: 1.12 + 44 ms.
    assert!((time("100 B") - 0.133_44).abs() < 1e-9, "{}", time("100 B"));
    // 1500 B and 140 B follow each other: 12 + 1.12 + 44 ms.
    assert!((time("1560 B") - 0.145_44).abs() < 1e-9, "{}", time("1560 B"));
}

#[test]
fn a_window_limited_rate_by_hand() {
    // 1500 B at 1 Mbit/s: 12 ms; 40 B: 0.32 ms. Round trip: 12 + 44 + 0.32 + 43.68 = 100 ms.
    let none = ("1 %", "0 %");
    let answer = solve(&scenario(&[none, ("1000 segments", "5 segments")]));
    // Five segments of 1460 B each 100 ms.
    assert!((mean(&answer, Metric::Goodput).unwrap() - 584_000.0).abs() < 1e-3);
    assert!((mean(&answer, Metric::Throughput).unwrap() - 600_000.0).abs() < 1e-3);
    assert!((mean(&answer, Metric::ReverseThroughput).unwrap() - 16_000.0).abs() < 1e-3);
    assert!((mean(&answer, Metric::RttMean).unwrap() - 0.1).abs() < 1e-9);
    assert!((mean(&answer, Metric::SegmentDelayMean).unwrap() - 0.056).abs() < 1e-9);
    let used = answer.points[0].links[0].mean(Metric::Utilisation).unwrap();
    assert!((used - 0.6).abs() < 1e-9);
    assert!(answer.warnings[0].message.contains("the receive window limits"), "{answer:?}");
    // Twenty segments: the link limits the rate, and the round-trip time is the transmission time
    // of twenty segments.
    let answer = solve(&scenario(&[none, ("1000 segments", "20 segments")]));
    assert!((mean(&answer, Metric::Throughput).unwrap() - 1e6).abs() < 1e-3);
    assert!((mean(&answer, Metric::RttMean).unwrap() - 0.24).abs() < 1e-9);
    assert!(answer.warnings[0].message.contains("link.line.forward"), "{answer:?}");
}

#[test]
fn losses_multiply_along_the_path_and_corruption_counts_as_loss() {
    let damaged =
        ("loss = { bernoulli = \"1 %\" }", "loss = { bernoulli = \"1 %\" }\ncorrupt = \"2 %\"");
    let answer = solve(&scenario(&[damaged]));
    let loss = mean(&answer, Metric::SegmentLoss).unwrap();
    assert!((loss - (1.0 - 0.99 * 0.98)).abs() < 1e-12);
    assert!(answer.warnings[0].message.contains("Padhye"), "{answer:?}");
}

#[test]
fn equal_flows_share_a_link_evenly_and_unequal_ones_are_rejected() {
    let none = ("1 %", "0 %");
    let alone = solve(&scenario(&[none]));
    let shared = solve(&scenario(&[none, ("load = \"bulk\"", "load = \"bulk\"\ncount = 4")]));
    let goodput = |answer: &Answer| mean(answer, Metric::Goodput).unwrap();
    assert_eq!(shared.points[0].flows[0].count, 4);
    // A row is the sum of its flows. (A single flow follows the sawtooth: here, with a long queue,
    // the link is saturated.)
    assert!((goodput(&shared) / goodput(&alone) - 1.0).abs() < 1e-9);
    let other = "load = \"bulk\"\n[flow.g]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"";
    assert_eq!(
        unsupported_keys(&scenario(&[none, ("load = \"bulk\"", other)])),
        ["link.line.forward.rate"]
    );
    // Flows whose total is below the link rate are independent.
    let slow = ("1000 segments", "2 segments");
    let second = other.replace("[flow.g]", "[flow.g]\nstack = \"x\"");
    let answer = solve(&scenario(&[none, slow, ("load = \"bulk\"", &second)]));
    assert!((answer.points[0].links[0].mean(Metric::Utilisation).unwrap() - 0.48).abs() < 1e-9);
}

#[test]
fn keys_without_a_formula_are_rejected_by_name() {
    let with = |old: &str, new: &str| unsupported_keys(&scenario(&[(old, new)]));
    assert_eq!(with("\"reno\"", "\"bbr\""), ["stack.x.congestion_control"]);
    assert_eq!(with("\"reno\"", "\"vegas\""), ["stack.x.congestion_control"]);
    let more = |key: &str| with("delay = \"44 ms\"", &format!("delay = \"44 ms\"\n{key}"));
    assert_eq!(more("duplicate = \"1 %\""), ["link.line.forward.duplicate"]);
    assert_eq!(
        more("outage = [{ start = \"1 s\", length = \"1 s\" }]"),
        ["link.line.forward.outage"]
    );
    assert_eq!(more("radio = { standard = \"lte\" }"), ["link.line.forward.radio"]);
    let fading = "gilbert_elliott = { mean_good = \"1 s\", mean_bad = \"9 ms\", \
                  delay_bad = \"5 ms\" }";
    let delay_bad = "link.line.forward.loss.gilbert_elliott.delay_bad";
    assert_eq!(with("bernoulli = \"1 %\"", fading), [delay_bad]);
    let handover = "handover = { every = \"1 s\", interruption = \"50 ms\" }";
    let forward = "[link.line.forward]";
    let with_handover = with(forward, &format!("{handover}\n{forward}"));
    assert_eq!(with_handover, ["link.line.handover"]);
    assert_eq!(with("bernoulli = \"1 %\"", "packets = [3]"), ["link.line.forward.loss.packets"]);
    assert_eq!(with("load = \"bulk\"", "load = \"bulk\"\nstart = \"20 s\""), ["flow.f.start"]);
    assert_eq!(with("[node]", "[record]\ninterval = \"1 s\"\n[node]"), ["record.interval"]);
    let asking = "load.request_response = { request = \"20 B\", response = \"200 B\" }";
    let values = "load.iec_104 = { values = 4, every = \"1 s\" }";
    let registers = "load.modbus = { registers = 4, every = \"1 s\" }";
    for answered in [asking, values, registers] {
        assert_eq!(with("load = \"bulk\"", answered), ["flow.f.load"]);
    }
}

#[test]
fn shadowing_and_noise_count_with_their_means() {
    let none = ("loss = { bernoulli = \"1 %\" }", "");
    let shadowing =
        "shadowing = { margin = \"10 dB\", deviation = \"4 dB\", coherence = \"50 ms\" }";
    // A packet of 1500 B takes 12 ms: with the bursts, 13 of 100 ms.
    let noise = "noise = [{ length = \"1 ms\", gap = \"99 ms\", timing = \"periodic\" }]";
    let keys = format!("delay = \"44 ms\"\n{shadowing}\n{noise}");
    let answer = solve(&scenario(&[none, ("delay = \"44 ms\"", &keys)]));
    let expected = 1.0 - (1.0 - 0.006_209_665) * (1.0 - 0.13);
    assert!((mean(&answer, Metric::SegmentLoss).unwrap() - expected).abs() < 1e-9);
    assert!(answer.warnings.iter().any(|warning| warning.message.contains("bursty loss")));
    // The coherence time may be up to the round-trip time of 100 ms.
    let unsupported_keys = |old: &str, new: &str| {
        unsupported_keys(&scenario(&[none, ("delay = \"44 ms\"", &keys.replace(old, new))]))
    };
    let level = ["link.line.forward.shadowing.coherence"];
    assert_eq!(unsupported_keys(", coherence = \"50 ms\"", ""), level);
    assert_eq!(unsupported_keys("coherence = \"50 ms\"", "coherence = \"101 ms\""), level);
    assert_eq!(
        unsupported_keys("length = \"1 ms\"", "length = \"1 s\""),
        ["link.line.forward.noise[0].length"]
    );
}

#[test]
fn points_without_a_formula_have_no_metrics_and_a_warning() {
    let sweep =
        "load = \"bulk\"\n[[sweep]]\nvary.\"stack.x.congestion_control\" = [\"sack\", \"bbr\"]";
    let answer = solve(&scenario(&[("load = \"bulk\"", sweep)]));
    assert!(answer.points[0].flows[0].mean(Metric::Goodput).is_some());
    assert!(answer.points[1].flows.is_empty());
    let has_warning = |about: &str, part: &str| {
        answer
            .warnings
            .iter()
            .any(|warning| warning.about == about && warning.message.contains(part))
    };
    assert!(
        has_warning("stack.x.congestion_control", "BBR")
            && has_warning("stack.x.congestion_control", "congestion_control = bbr")
    );
    assert!(has_warning("flow.f", "fewer timeouts are needed"), "{:?}", answer.warnings);
}

#[test]
fn violated_assumptions_cause_a_warning() {
    let has_warning = |loss: &str, part: &str| {
        let answer = solve(&scenario(&[("1 %", loss)]));
        answer.warnings.iter().any(|warning| warning.message.contains(part))
    };
    assert!(has_warning("30 %", "below 4 segments") && !has_warning("1 %", "below 4 segments"));
    let bursty = (
        "bernoulli = \"1 %\"",
        "gilbert_elliott = { good_to_bad = \"1 %\", bad_to_good = \"50 %\" }",
    );
    let answer = solve(&scenario(&[bursty]));
    assert!(answer.warnings.iter().any(|warning| warning.message.contains("bursts")));
    // Share of the bad state: 0.01 / 0.51.
    assert!((mean(&answer, Metric::SegmentLoss).unwrap() - 0.01 / 0.51).abs() < 1e-12);
}

#[test]
fn vegas_without_loss_keeps_its_backlog_in_the_queue() {
    let answer = solve(&scenario(&[("1 %", "0 %"), ("\"reno\"", "\"vegas\"")]));
    assert!((mean(&answer, Metric::Throughput).unwrap() - 1e6).abs() < 1e-3);
    // Two segments on average (alpha 1, beta 3) of 12 ms each.
    assert!((mean(&answer, Metric::RttMean).unwrap() - 0.124).abs() < 1e-9);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None,
        ..ProptestConfig::default() })]
    /// For any link, all values are finite and the throughput does not exceed the link rate.
    #[test]
    fn throughput_never_exceeds_the_link_rate(
        loss in 0.0..=1.0_f64,
        delay_ms in 0..10_000_u32,
        // The largest window of TCP has 735,428 segments of 1,460 B.
        window in 1..735_429_u32,
        rate_kbit in 1..10_000_000_u32,
        queue in 1..10_000_u32,
        congestion_control in prop::sample::select(vec!["reno", "new_reno", "sack", "cubic"]),
        profile in prop::sample::select(vec!["rfc", "linux", "ns2"]),
    ) {
        let scenario = scenario(&[
                ("rate = \"1 Mbit/s\"\ndelay = \"44 ms\"",
                 &format!("rate = \"{rate_kbit} kbit/s\"\ndelay = \"{delay_ms} ms\"")),
                ("rate = \"1 Mbit/s\"\ndelay = \"43.68 ms\"", "rate = \"10 Gbit/s\"\ndelay = \"0 \
                    s\"\nqueue = \"unlimited\""),
                ("100 packets", &format!("{queue} packets")),
                ("bernoulli = \"1 %\"", &format!("bernoulli = \"{} %\"", loss * 100.0)),
                ("1000 segments", &format!("{window} segments")),
                ("\"reno\"", &format!("\"{congestion_control}\"")),
                ("\"ns2\"", &format!("\"{profile}\"")),
        ]);
        let answer = solve(&scenario);
        for (metric, estimate) in &answer.points[0].flows[0].metrics {
            let value = estimate.mean.unwrap_or(0.0);
            prop_assert!(value.is_finite() && value >= 0.0, "{metric}: {value}");
        }
        let used = answer.points[0].links[0].mean(Metric::Utilisation).unwrap_or(0.0);
        prop_assert!(used <= 1.0 + 1e-9, "{used}");
    }
}
