//! Devices that sleep.

use gridhaul_scenario::answer::Metric;

use crate::schedulers::{close, mean, run};

const NB_IOT: &str = include_str!("../../../../scenarios/nb-iot.toml");

#[test]
fn commands_wait_for_the_next_occasion_of_their_meter() {
    let answer = run(NB_IOT);
    // 2,400 commands: a standard deviation of 0.12 s for the mean.
    close(mean(&answer, "command", Metric::DelayMean), 11.34 * 0.992, 0.03);
    close(mean(&answer, "command", Metric::DelayP98), 21.17, 0.01);
    let max = mean(&answer, "command", Metric::DelayMax);
    assert!(max > 21.4 && max <= 21.5812, "{max}");
    assert_eq!(mean(&answer, "command", Metric::DeadlineMet), 1.0);
    close(mean(&answer, "reading", Metric::DelayMax), 0.1412, 1e-3);
}

#[test]
fn a_packet_of_the_device_ends_the_wait() {
    // The device answers nothing, but sends a reading each second; commands wait for at most 1 s
    // and for the delay.
    let text = NB_IOT
        .replace("every = \"15 min\"", "every = \"1 s\"")
        .replace("inactivity = \"2 s\"", "inactivity = \"0 s\"")
        .replace("2 h", "20 min");
    let answer = run(&text);
    let max = mean(&answer, "command", Metric::DelayMax);
    assert!(max > 1.9 && max <= 1.0 + 1.0 + 0.1012, "{max}");
    close(mean(&answer, "command", Metric::DelayMean), 0.5 + 1.0 + 0.1012, 0.05);
}

#[test]
fn an_active_device_receives_at_once() {
    // Each command arrives while the device still listens after the one before it.
    let text = NB_IOT
        .replace("every = \"10 min\", jitter = \"1 min\"", "every = \"1 s\"")
        .replace("2 h", "10 min\"\nwarmup = \"1 min");
    close(mean(&run(&text), "command", Metric::DelayMax), 0.1012, 1e-3);
}

#[test]
fn each_device_has_its_own_phase() {
    // All commands are sent at multiples of two cycles: a meter waits for its phase each time.
    let text = NB_IOT
        .replace(
            "every = \"10 min\", jitter = \"1 min\"",
            "every = \"40.96 s\", synchronised = true",
        )
        .replace("every = \"15 min\"", "every = \"3 h\"")
        .replace("[node]", "[record]\nmembers = [\"command\"]\n[node]")
        .replace("2 h", "5 min");
    let answer = run(&text);
    let metrics = &answer.points[0].members[0].metrics;
    let of_members = |metric| metrics[&metric].iter().map(|delay| delay.expect("commands arrive"));
    let [means, largest]: [Vec<f64>; 2] =
        [Metric::DelayMean, Metric::DelayMax].map(|metric| of_members(metric).collect());
    // Of the 200 readings in 3 h, about six fall into the 5 minutes and may wake their meters.
    let constant = means.iter().zip(&largest).filter(|(mean, max)| *max - *mean < 1e-6).count();
    assert!(constant > 180, "{constant} of 200");
    // Uniform up to the cycle: the standard deviation of the mean is 0.42 s.
    let mean = means.iter().sum::<f64>() / 200.0;
    assert!((mean - 11.34).abs() < 1.7, "{mean} s");
    assert!(means.iter().all(|mean| (1.1012..21.5813).contains(mean)), "{means:?}");
}

#[test]
fn an_outage_after_a_wake_up_delays_the_packet_further() {
    // The reading at 3 s wakes the meter, which would receive from 4 s on; the cell is interrupted.
    let text = NB_IOT
        .replace("count = 200", "count = 1")
        .replace("cycle = \"20.48 s\"", "cycle = \"1000 h\"")
        .replace(
            "drx =",
            "outage = [{ start = \"3.5 s\", length = \"10 s\", mode = \"hold\" }]\ndrx =",
        )
        .replace(
            "load.periodic = { size = \"100 B\", every = \"10 min\", jitter = \"1 min\" }",
            "load.burst = { size = \"100 B\", at = \"1 s\" }",
        )
        .replace(
            "load.periodic = { size = \"200 B\", every = \"15 min\" }",
            "load.burst = { size = \"200 B\", at = \"3 s\" }",
        )
        .replace("2 h", "1 min");
    let expected = 13.5 - 1.0 + 1_024.0 / 20e3 + 0.05;
    close(mean(&run(&text), "command", Metric::DelayMax), expected, 1e-6);
    let without = text.replace("start = \"3.5 s\"", "start = \"30 s\"");
    close(mean(&run(&without), "command", Metric::DelayMax), expected - 9.5, 1e-6);
}
