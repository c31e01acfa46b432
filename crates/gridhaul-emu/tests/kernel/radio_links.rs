//! Radio links in real time: repeated blocks, handovers, bad times, and measured quantiles. Random
//! numbers decide as in the simulator; the bounds are four standard deviations, and delays may be
//! late by some tens of milliseconds.

use std::ops::RangeInclusive;
use std::path::Path;

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::{Answer, Metric};

use crate::{mean, run_until};

/// A flow, and the ranges of its metrics.
type Expected<'a> = (&'a str, &'a [(Metric, RangeInclusive<f64>)]);

/// Runs a scenario until these metrics are within their ranges in the first point.
fn expect(text: &str, (flow, ranges): Expected<'_>) {
    let is_within = |answer: &Answer| {
        ranges.iter().all(|(metric, range)| range.contains(&mean(answer, flow, *metric)))
    };
    let Some(answer) = run_until(text, Emu::default(), is_within) else { return };
    for (metric, range) in ranges {
        let value = mean(&answer, flow, *metric);
        assert!(range.contains(&value), "{metric}: {value} is not in {range:?}");
    }
}

#[test]
fn events_wait_for_grants_and_repeated_blocks() {
    let text = include_str!("../../../../scenarios/lte-harq.toml");
    let (text, _) = text.split_once("[flow.command]").unwrap();
    let radio = "request_every = \"80 ms\", round_trip = \"200 ms\", block_error = \"50 %\", \
                 transmissions = 2";
    let text = text
        .replace("count = 100", "count = 50")
        .replace("request_every = \"10 ms\"", radio)
        .replace("every = \"1 s\", jitter = \"500 ms\"", "every = \"500 ms\"")
        .replace("deadline = \"40 ms\"", "deadline = \"150 ms\"")
        .replace("2 min", "3 s");
    // Of 300 events, a quarter fails twice, and a quarter arrives 200 ms later. A grant needs 8 ms
    // after a wait of up to 80 ms, the block 1 ms, and the propagation 15 ms: 24 to 104 ms.
    let ranges = [
        (Metric::MessageLoss, 0.15..=0.35),
        (Metric::DeadlineMet, 0.38..=0.62),
        // 24 + 40 ms, and 200 ms for a third of those that arrive: a standard deviation of 6 ms.
        (Metric::DelayMean, 0.105..=0.165),
        (Metric::DelayMax, 0.223..=0.4),
    ];
    expect(&text, ("event", &ranges));
}

#[test]
fn losses_and_delays_occur_in_the_same_times() {
    let text = include_str!("../../../../scenarios/bad-times.toml")
        .replace("count = 50", "count = 125")
        .replace(
            "mean_good = \"9 s\", mean_bad = \"1 s\"",
            "mean_good = \"300 ms\", mean_bad = \"100 ms\"",
        )
        .replace("loss_bad = \"30 %\"", "loss_bad = \"50 %\"")
        .replace("every = \"1 s\"", "every = \"500 ms\"")
        .replace("30 min", "4 s");
    // Of 1,000 values, a quarter is sent in bad times: half of these are lost, and the others are
    // delayed by 400 ms, as 14.3 % of those that arrive.
    let ranges = [
        (Metric::MessageLoss, 0.083..=0.167),
        (Metric::DeadlineMet, 0.69..=0.81),
        (Metric::DelayMean, 0.098..=0.147),
        (Metric::DelayMax, 0.459..=0.56),
    ];
    expect(&text, ("value", &ranges));
}

#[test]
fn meters_have_the_quantiles_of_a_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces");
    let text = include_str!("../../../../scenarios/measured-meters.toml")
        .replace("traces/", &format!("{}/", folder.display()))
        .replace("count = 2000", "count = 200")
        .replace("every = \"15 min\"", "every = \"2 s\"")
        .replace("duration = \"1 h\"", "duration = \"5 s\"");
    // The means of the comment of the scenario, and of the delay as in `link-quality.toml`, with
    // standard deviations of 200 ranks and 500 readings of 0.9, 0.013 and 0.016 s. At equal steps
    // of the rank, 6.6 % would be lost, and 79 % arrive within a second, with a mean delay of
    // 0.42 s.
    let ranges = [
        (Metric::MessageLoss, 0.005..=0.062),
        (Metric::DeadlineMet, 0.9..=0.99),
        (Metric::DelayMean, 0.18..=0.33),
    ];
    expect(&text, ("reading", &ranges));
}

#[test]
fn a_handover_delays_packets_or_loses_them() {
    let text = include_str!("../../../../scenarios/handovers.toml")
        .replace("count = 50", "count = 10")
        .replace("every = \"10 s\"", "at = [\"1050 ms\"]")
        .replace("interruption = \"50 ms\"", "interruption = \"1 s\"")
        .replace(
            "every = \"110 ms\", jitter = \"50 ms\"",
            "every = \"100 ms\", synchronised = true",
        )
        .replace("5 min", "3 s");
    // The alarms from 1.1 s to 2 s wait until 2.05 s, or are lost: ten of thirty, with an
    // additional delay of 0.5 s on average.
    let forwarded = [
        (Metric::MessageLoss, 0.0..=0.0),
        (Metric::DelayMax, 0.9..=1.2),
        (Metric::DelayMean, 0.17..=0.24),
        (Metric::DeadlineMet, 0.6..=0.7),
    ];
    expect(text.split_once("[[sweep]]").unwrap().0, ("alarm", &forwarded));
    let lost = [(Metric::MessageLoss, 0.3..=0.37), (Metric::DelayMax, 0.0201..=0.12)];
    let drop_first = text.replace("[\"forward\", \"drop\"]", "[\"drop\"]");
    expect(&drop_first.replace("[\"forwarded\", \"lost\"]", "[\"lost\"]"), ("alarm", &lost));
}
