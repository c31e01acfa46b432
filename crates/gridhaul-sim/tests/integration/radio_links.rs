//! Radio links: repeated blocks, grants, and times of bad reception.

use gridhaul_scenario::answer::Metric;

use crate::schedulers::{close, mean, run};

const LTE: &str = include_str!("../../../../scenarios/lte-harq.toml");
const HANDOVERS: &str = include_str!("../../../../scenarios/handovers.toml");
const BAD_TIMES: &str = include_str!("../../../../scenarios/bad-times.toml");

#[test]
fn events_wait_for_grants_and_repeated_blocks() {
    let answer = run(LTE);
    // 12,000 packets of each flow: the standard deviation of U + H is 4 ms, that of the mean 0.04.
    close(mean(&answer, "event", Metric::DelayMean), 29.89e-3, 0.006);
    close(mean(&answer, "command", Metric::DelayMean), 17.39e-3, 0.008);
    close(mean(&answer, "event", Metric::DelayP98), 40.81e-3, 0.02);
    close(mean(&answer, "command", Metric::DelayP98), 24.89e-3, 0.01);
    // 2.8 % of 12,000 have a standard deviation of 18.
    let late = 1.0 - mean(&answer, "event", Metric::DeadlineMet);
    assert!((late - 0.028).abs() < 4.0 * 18.0 / 12_000.0, "{late}");
    // Five transmissions of a block.
    assert!(mean(&answer, "event", Metric::DelayMax) <= 66.001e-3);
    assert!(mean(&answer, "event", Metric::MessageLoss) < 5e-4);
}

#[test]
fn without_repetitions_every_failed_block_is_lost() {
    let text = LTE.replace("standard = \"lte\"", "standard = \"lte\", transmissions = 1");
    let answer = run(&text);
    // 10 % of 12,000 have a standard deviation of 33.
    let loss = mean(&answer, "command", Metric::MessageLoss);
    assert!((loss - 0.1).abs() < 4.0 * 33.0 / 12_000.0, "{loss}");
    close(mean(&answer, "command", Metric::DelayMean), 16.5e-3, 2e-3);
}

#[test]
fn repetitions_take_their_share_of_the_rate() {
    // A quarter of all transmissions fails, so that a block takes 4/3 slots; nothing is lost.
    let text = LTE
        .replace(
            "standard = \"lte\"",
            "standard = \"lte\", block_error = \"25 %\", \
                  transmissions = 20",
        )
        .replace("count = 100", "count = 1")
        .replace(
            "[flow.command]",
            "[flow.file]\nfrom = \"terminal\"\nto = \"centre\"\n\
                  load = \"bulk\"\nstack = \"s\"\n[stack.s]\nreceive_window = \"400 kB\"\n\
                  [flow.command]",
        )
        .replace("duration", "warmup = \"20 s\"\nduration");
    let answer = run(&text);
    // 3,750 kbit/s, of which 1,460 - 12 of 1,500 B are payload.
    close(mean(&answer, "file", Metric::Goodput), 3.75e6 * 1_448.0 / 1_500.0, 0.02);
}

#[test]
fn losses_and_delays_occur_in_the_same_times() {
    let answer = run(BAD_TIMES);
    // 50 times 180 cycles: the bad share has a relative standard deviation of
    // sqrt(2 * 0.9 / 9,000) = 1.4 %.
    close(mean(&answer, "value", Metric::MessageLoss), 0.03, 0.1);
    close(mean(&answer, "value", Metric::DelayMean), 89.1e-3, 0.03);
    close(1.0 - mean(&answer, "value", Metric::DeadlineMet), 0.1, 0.06);
    close(mean(&answer, "value", Metric::DelayMax), 460.24e-3, 1e-4);
}

#[test]
fn a_handover_delays_packets_or_loses_them() {
    let answer = run(HANDOVERS);
    // 136,000 alarms, 682 of them in interruptions: a standard deviation of 26, 4 %.
    close(mean(&answer, "alarm", Metric::DelayMean), 20.33e-3, 3e-3);
    let max = mean(&answer, "alarm", Metric::DelayMax);
    assert!(max > 69e-3 && max < 71e-3, "{max}");
    let late = 1.0 - mean(&answer, "alarm", Metric::DeadlineMet);
    close(late, 0.302e-2, 0.2);
    assert_eq!(mean(&answer, "alarm", Metric::MessageLoss), 0.0);
    let drop_first = HANDOVERS.replace("[\"forward\", \"drop\"]", "[\"drop\", \"forward\"]");
    let answer = run(&drop_first);
    close(mean(&answer, "alarm", Metric::MessageLoss), 0.502e-2, 0.16);
    close(mean(&answer, "alarm", Metric::DelayMax), 20.205e-3, 1e-2);
}

#[test]
fn stated_handovers_interrupt_both_directions_of_all_members_at_once() {
    let text = HANDOVERS
        .replace("every = \"10 s\"", "at = [\"2 s\", \"4 s\"]")
        .replace("interruption = \"50 ms\"", "interruption = \"1 s\"")
        .replace("5 min", "10 s")
        .replace(", jitter = \"50 ms\"", ", synchronised = true")
        .replace(
            "[flow.alarm]",
            "[flow.command]\nfrom = \"centre\"\nto = \"terminal\"\n\
                  transport = \"datagram\"\n\
                  load.periodic = { size = \"100 B\", every = \"1 s\", synchronised = true }\n\
                  [flow.alarm]",
        );
    let answer = run(&text);
    // The commands at 2 s and 4 s, two of ten, wait for a second.
    close(mean(&answer, "command", Metric::DelayMax), 1.020_205, 1e-3);
    close(mean(&answer, "command", Metric::DelayMean), 0.2 + 0.020_205, 1e-3);
    // The first alarm after the beginning of an interruption is that at 37 * 110 ms = 4.07 s.
    close(mean(&answer, "alarm", Metric::DelayMax), 0.93 + 0.020_205, 1e-3);
}
