//! Loads as the simulator carries them, against schedules worked out by hand.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, Quiet, RunError};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

fn run(text: &str) -> Result<Answer, RunError> {
    let scenario = Scenario::from_toml(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    Sim { threads: 1 }.run(&scenario, &Quiet)
}

fn metric(answer: &Answer, metric: Metric) -> f64 {
    answer.points[0].flows[0].mean(metric).unwrap_or_else(|| panic!("no {metric}"))
}

/// Two nodes with 15 ms each way, `meters` flows from `a` to `b`, for 40 s from 4 s on.
fn pair(meters: u32, stack: &str, load: &str) -> String {
    format!(
        r#"
        title = "greedy"
        duration = "44 s"
        warmup = "4 s"
        [node]
        a = {{}}
        b = {{}}
        [link.wire]
        from = "a"
        to = "b"
        both = {{ rate = "1 Gbit/s", delay = "15 ms", queue = "10000 packets" }}
        [stack.meter]
        profile = "ns2"
        variant = "reno"
        mss = "200 B"
        {stack}
        [flow.reading]
        from = "a"
        to = "b"
        count = {meters}
        stack = "meter"
        load.{load}
        "#
    )
}

const GREEDY: &str =
    r#"on_off = { on = "100 ms", off = "900 ms", size = "200 B", spread = "fixed" }"#;

#[test]
fn a_greedy_burst_fills_the_window_at_every_round_trip() {
    // A burst of 100 ms at a round trip of 30 ms: written at 0, 30, 60 and 90 ms, a whole window
    // each time, since after 4 s the window is open. 40 bursts in the measured 40 s.
    for window in [1, 2, 5] {
        let stack =
            format!("receive_window = \"{window} segments\"\ninitial_window = \"5 segments\"");
        let answer = run(&pair(1, &stack, GREEDY)).unwrap();
        assert_eq!(metric(&answer, Metric::Messages), f64::from(40 * 4 * window), "{window}");
        assert_eq!(metric(&answer, Metric::Retransmissions), 0.0);
        // A message is ready when it can leave: it never waits for the window.
        let delay = metric(&answer, Metric::DelayMax);
        assert!((0.015..0.0151).contains(&delay), "{delay}");
    }
}

#[test]
fn messages_longer_than_a_segment_and_small_ones_with_nagle() {
    // 600 B are three segments: two leave with the window of two; at 30 ms the third and the first
    // of the next message; at 60 ms its other two; at 90 ms two of the last message, whose third
    // follows after the burst. So three messages a burst, and each is sent whole.
    let long = GREEDY.replace("200 B", "600 B");
    let stack = "receive_window = \"2 segments\"\ninitial_window = \"5 segments\"";
    let answer = run(&pair(1, stack, &long)).unwrap();
    assert_eq!(metric(&answer, Metric::SegmentsSent), 40.0 * 9.0);
    assert_eq!(metric(&answer, Metric::Messages), 40.0 * 3.0);
    // With Nagle's algorithm one small message is out at a time.
    let small = GREEDY.replace("200 B", "100 B");
    let answer = run(&pair(1, &format!("{stack}\nnagle = true"), &small)).unwrap();
    assert_eq!(metric(&answer, Metric::Messages), f64::from(40 * 4));
}

#[test]
fn members_are_independent_and_begin_in_the_stationary_state() {
    // 2,000 meters, exponential: each writes two messages when a burst begins and two at every
    // further round trip in it: 2 (1 + q + q^2 + ...) with q = exp(-30 / 100), 7.717 a burst.
    // Bursts begin every 1,000 ms on average: 2,000 * 40 * 7.717 = 617,300 in the measured time.
    let load = r#"on_off = { on = "100 ms", off = "900 ms", size = "200 B" }"#;
    let stack = "receive_window = \"2 segments\"\ninitial_window = \"2 segments\"";
    let answer = run(&pair(2_000, stack, load)).unwrap();
    let messages = metric(&answer, Metric::Messages);
    // Silences shorter than a round trip find the window still full: about 3 % begin so, and
    // write their first messages up to a round trip late.
    assert!((0.97..1.005).contains(&(messages / 617_300.0)), "{messages}");
}
