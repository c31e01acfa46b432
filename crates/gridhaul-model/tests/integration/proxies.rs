//! Bulk flows through proxies by formulas: paper `plc`, equation 3, and the extensions to unequal
//! hops and finite buffers.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_testing::ProxyChain;

/// Four hops of 25 ms (round trip) with three proxies between them, as in paper `plc`, Table II;
/// the hops lose `p` percent each.
fn chain(mode: &str, p: [f64; 4], replace: &[(&str, &str)]) -> Scenario {
    let mut text = r#"
title = "chain"
duration = "100 s"
warmup = "10 s"
[stack.reno]
profile = "ns2"
congestion_control = "reno"
receive_window = "100000 segments"
[flow.file]
from = "source"
to = "sink"
stack = "reno"
load = "bulk"
"#
    .to_owned();
    let (buffer, rate, queue) = ("16 MiB", "10 Gbit/s", "unlimited");
    text += &ProxyChain { mode, buffer, rate, queue, loss: p }.to_toml();
    for (old, new) in replace {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    Scenario::from_toml(&text, "chain.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn rate(answer: &Answer) -> f64 {
    answer.points[0].flows[0].mean(Metric::Throughput).unwrap()
}

fn paper(scenario: &Scenario) -> Answer {
    Model::PAPER.run(scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn three_proxies_on_a_line_give_four_times_the_rate() {
    // Paper `plc`, section V: "300 %" more. Equation 2 in bit/s with the paper's 1500 B and p = 0.5
    // %: 12,000 / (0.1 s · √(0.01 / 3)) = 2.078 Mbit/s, of which 99.5 % arrive.
    let whole = rate(&paper(&chain("none", [0.0, 0.0, 0.0, 0.5], &[])));
    assert!((whole / 0.995 - 2.078_461e6).abs() < 10.0, "{whole}");
    for mode in ["split", "reflect"] {
        let cut = rate(&paper(&chain(mode, [0.5; 4], &[])));
        assert!((cut / whole - 4.0).abs() < 1e-9, "{mode}: {cut}");
    }
}

#[test]
fn the_bottleneck_is_the_hop_with_the_most_loss_the_smallest_buffer_or_the_slowest_link() {
    let by = |scenario: &Scenario| {
        let answer = paper(scenario);
        let message = answer.warnings.iter().map(|warning| &warning.message).next().unwrap();
        (rate(&answer), message.clone())
    };
    let (equal, _) = by(&chain("split", [0.5; 4], &[]));
    let (lossy, why) = by(&chain("split", [0.5, 0.5, 2.0, 0.5], &[]));
    // The sending rate falls by √4, and 98 % instead of 99.5 % arrive.
    assert!((lossy / equal - 0.5 * 0.98 / 0.995).abs() < 1e-9);
    assert!(why.contains("after the proxy at u2"), "{why}");
    // Equation 1: 15 segments of 1460 B in 25 ms are 600 segments a second, of which 99.95 %
    // arrive. Loss alone would allow 2,190 a second.
    let small = ("mode = \"split\"\nbuffer = \"16 MiB\"", "mode = \"split\"\nbuffer = \"21900 B\"");
    let narrow_chain = chain("split", [0.05; 4], &[small]);
    let (narrow, why) = by(&narrow_chain);
    assert!((narrow - 600.0 * 12_000.0 * 0.9995).abs() < 1.0, "{narrow}");
    assert!(why.contains("the receive window"), "{why}");
    // The buffer is a number of bytes, not of whole segments.
    let uneven = ("mode = \"split\"\nbuffer = \"16 MiB\"", "mode = \"split\"\nbuffer = \"16 KiB\"");
    let (uneven, _) = by(&chain("split", [0.05; 4], &[uneven]));
    assert!((uneven - 16_384.0 / 1460.0 / 0.025 * 12_000.0 * 0.9995).abs() < 1.0, "{uneven}");
    // In truth a segment occupies the buffer for one round trip before and one after the proxy, and
    // one segment of free space is unknown to the sender: 14 / 50 ms = 280 segments a second.
    let ours = Model::REFINED.run(&narrow_chain, &NoProgress).unwrap();
    assert!((rate(&ours) / (280.0 * 12_000.0) - 1.0).abs() < 0.05, "{}", rate(&ours));
    let why = &ours.warnings.iter().map(|warning| &warning.message).next().unwrap();
    assert!(why.contains("the buffer of the proxy at u"), "{why}");
    let (linked, why) = by(&chain("split", [0.5; 4], &[("10 Gbit/s", "1 Mbit/s")]));
    assert!((linked - 0.995e6).abs() < 1.0, "{linked}");
    assert!(why.contains("the rate of link.l0.forward (the first hop)"), "{why}");
}

#[test]
fn a_reflecting_proxy_advertises_at_most_the_downstream_window() {
    // The receive window of the destination is 10 segments. With splitting proxies it limits only
    // the last hop (10 / 25 ms), with reflecting proxies all hops, so that the rate is the same.
    let far = ("receive_window = \"100000 segments\"", "receive_window = \"10 segments\"");
    let [split, reflect] = ["split", "reflect"].map(|mode| paper(&chain(mode, [0.0; 4], &[far])));
    assert!((rate(&split) - 400.0 * 12_000.0).abs() < 1.0);
    assert!((rate(&reflect) - rate(&split)).abs() < 1.0);
    // No law gives the queue lengths upstream of the slowest hop; if the first hop is the slowest,
    // there are none.
    let rtt = |answer: &Answer| answer.points[0].flows[0].mean(Metric::RttMean);
    assert_eq!((rtt(&split), rtt(&reflect)), (None, Some(0.025)));
}

#[test]
fn the_refined_model_includes_timeouts_and_stays_below_the_paper() {
    for p in [0.1, 0.5, 1.0] {
        let scenario = chain("reflect", [p; 4], &[]);
        let ours = rate(&Model::REFINED.run(&scenario, &NoProgress).unwrap());
        let share = ours / rate(&paper(&scenario));
        assert!((0.6..1.0).contains(&share), "{p} %: {share}");
    }
}

#[test]
fn settings_without_a_formula_are_rejected_by_key() {
    let crash = ("[node.u2.proxy]", "[node.u2.proxy]\ncrash = [{ at = \"20 s\" }]");
    let keys = |scenario: &Scenario| match Model::REFINED.run(scenario, &NoProgress) {
        Err(RunError::Unsupported(keys)) => keys.into_iter().map(|key| key.key).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(keys(&chain("split", [0.5; 4], &[crash])), ["node.u2.proxy.crash"]);
    let modes = ["node.u1.proxy.mode", "node.u2.proxy.mode", "node.u3.proxy.mode"];
    assert_eq!(keys(&chain("snoop", [0.5; 4], &[])), modes);
}
