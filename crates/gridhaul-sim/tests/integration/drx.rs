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
