//! Scenarios of common questions have the results of the hand calculations in their comments.

use gridhaul_scenario::answer::{Answer, Metric};

use crate::schedulers::{close, mean, run};

/// A metric of a row at a point of the sweep.
fn at(answer: &Answer, point: usize, name: &str, metric: Metric) -> f64 {
    let point = &answer.points[point];
    let mut rows = point.flows.iter().chain(&point.links);
    let row = rows.find(|row| row.name == name).expect("a row of this name");
    row.mean(metric).expect("a value")
}

#[test]
fn the_receive_window_limits_an_upload_over_a_satellite() {
    let answer = run(include_str!("../../../../scenarios/satellite-backhaul.toml"));
    close(at(&answer, 0, "archive", Metric::Goodput), 0.910e6, 0.01);
    close(at(&answer, 0, "archive", Metric::RttMean), 0.573, 0.01);
    close(at(&answer, 1, "archive", Metric::Goodput), 1.931e6, 0.01);
    close(at(&answer, 1, "archive", Metric::RttMean), 1.08, 0.01);
}

#[test]
fn the_headers_of_ipv6_need_more_of_a_narrow_uplink() {
    let answer = run(include_str!("../../../../scenarios/ipv6-readings.toml"));
    for (point, rate, delay) in [(0, 14_933.0, 0.0818), (1, 17_600.0, 0.0889)] {
        close(at(&answer, point, "uplink.forward", Metric::LinkThroughput), rate, 0.02);
        close(at(&answer, point, "reading", Metric::DelayMean), delay, 0.02);
    }
}

#[test]
fn a_night_suffices_for_firmware_if_the_downloads_are_spread() {
    let answer = run(include_str!("../../../../scenarios/firmware.toml"));
    let firmware = |point, metric| at(&answer, point, "firmware", metric);
    assert!(firmware(0, Metric::TransfersFinished) < 190.0);
    assert_eq!(firmware(1, Metric::TransfersFinished), 200.0);
    assert_eq!(firmware(1, Metric::DeadlineMet), 1.0);
    // A download alone takes 166 s, and of 6 h the line is busy for 3.6 h.
    assert!(firmware(1, Metric::CompletionTime) > 165.7);
    assert!(firmware(1, Metric::CompletionTimeMax) < 3_600.0);
    let used = at(&answer, 1, "line.forward", Metric::Utilisation);
    assert!((0.45..0.55).contains(&used), "{used}, with retransmissions");
}

#[test]
fn readings_at_the_quarter_hour_wait_for_each_other_on_their_power_line() {
    let answer = run(include_str!("../../../../scenarios/plc-lte.toml"));
    close(at(&answer, 0, "reading", Metric::DelayMean), 2.781, 1e-3);
    close(at(&answer, 0, "reading", Metric::DelayMax), 5.407, 1e-3);
    close(at(&answer, 0, "reading", Metric::DeadlineMet), 0.92, 1e-3);
    close(at(&answer, 1, "reading", Metric::DelayMean), 0.155, 0.01);
    assert_eq!(at(&answer, 1, "reading", Metric::DeadlineMet), 1.0);
}

#[test]
fn a_burst_in_time_loses_retransmissions_as_well() {
    let text = include_str!("../../../../scenarios/plc-narrowband.toml");
    let answer = run(&text.replace("replications = 5", "replications = 20"));
    for (name, delay) in [("steady", 0.1334), ("bursty", 0.1410)] {
        close(mean(&answer, name, Metric::DelayMean), delay, 0.02);
    }
    // An hour less a minute, and an exchange every 1.13 s: a timeout is the second timer.
    let share = mean(&answer, "bursty", Metric::Timeouts) / (59.0 * 60.0 / 1.13);
    close(share, 0.014, 0.25);
}

#[test]
fn algorithms_share_a_bottleneck_as_their_windows_do() {
    let text = include_str!("../../../../scenarios/fairness.toml");
    let long = text.replace("duration = \"320 s\"", "duration = \"1220 s\"");
    let answer = run(&long);
    // The points in the order of the file: two lengths of the queue for each algorithm.
    for (point, algorithm, smallest, largest) in [
        (0, "sack", 0.48, 0.52),
        (1, "sack", 0.44, 0.56),
        (2, "vegas", 0.69, 0.89),
        (3, "vegas", 0.85, 0.97),
        (4, "cubic", 0.31, 0.44),
        (5, "cubic", 0.06, 0.21),
    ] {
        let both = at(&answer, point, "both", Metric::Goodput);
        close(both, 1.931e6, 0.005);
        let share = at(&answer, point, "first", Metric::Goodput) / both;
        assert!((smallest..largest).contains(&share), "{algorithm}, point {point}: {share}");
    }
    assert!(at(&answer, 0, "both", Metric::Fairness) > 0.998);
}
