//! Warnings about windows and bursts that overflow short queues, compared with the simulator.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::Scenario;

/// A bulk flow with this stack over a link with one-way delays of `delay_ms`.
fn run(stack: &str, link: &str, delay_ms: u32) -> Result<Answer, RunError> {
    let text = format!(
        "title = \"queue\"\nduration = \"250 s\"\nwarmup = \"20 s\"\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = \"a\"\nto = \"b\"\nforward = {{ {link}, delay = \"{delay_ms} ms\" }}\n\
         reverse = {{ rate = \"10 Mbit/s\", delay = \"{delay_ms} ms\" }}\n\
         [stack.s]\nmss = \"1000 B\"\n{stack}\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\nstack = \"s\"\nload = \"bulk\"\n"
    );
    let scenario =
        Scenario::from_toml(&text, "queue.toml").unwrap_or_else(|error| panic!("{error}"));
    Model::REFINED.run(&scenario, &NoProgress)
}

fn warns(stack: &str, link: &str, delay_ms: u32, about: &str) -> bool {
    let answer = run(stack, link, delay_ms).unwrap_or_else(|error| panic!("{error}"));
    answer.warnings.iter().any(|warning| warning.message.contains(about))
}

/// Simulated: 0.26 to 0.76 Mbit/s with profile `ns2` and a queue of 5, in place of 1.19 to 2.37.
#[test]
fn a_fixed_window_overflows_a_queue_that_is_shorter() {
    let stack = |window: u32| {
        format!(
            "profile = \"ns2\"\ncongestion_control = \"fixed\"\n\
             fixed_window = \"{window} segments\""
        )
    };
    let link = |queue: u32| format!("rate = \"10 Mbit/s\", queue = \"{queue} packets\"");
    assert!(warns(&stack(12), &link(5), 40, "transmitted at once"));
    assert!(!warns(&stack(12), &link(20), 40, "transmitted at once"));
    assert!(!warns(&stack(6), &link(5), 40, "transmitted at once"));
}

/// Path and queue hold 15.6 segments. Simulated with Reno and profile `linux`: 951 kbit/s with a
/// window of 15, 687 to 711 kbit/s with 16 to 20, 857 kbit/s with 24.
#[test]
fn a_receive_window_just_above_path_and_queue() {
    let stack = |control: &str, window: u32| {
        format!(
            "profile = \"linux\"\ncongestion_control = \"{control}\"\n\
             receive_window = \"{window} segments\""
        )
    };
    let link = "rate = \"1 Mbit/s\", queue = \"5 packets\"";
    let about = "no space for new segments";
    for (window, expected) in [(15, false), (16, true), (20, true), (24, false)] {
        assert_eq!(warns(&stack("reno", window), link, 40, about), expected, "{window}");
    }
    // CUBIC keeps a larger window after a loss: 838 kbit/s with 20, 947 kbit/s with 28.
    for (window, expected) in [(15, false), (20, true), (28, false)] {
        assert_eq!(warns(&stack("cubic", window), link, 40, about), expected, "{window}");
    }
    // Tahoe has no formula with loss, and 17 segments overflow the queue.
    assert!(run(&stack("tahoe", 15), link, 40).is_ok());
    let refused = run(&stack("tahoe", 16), link, 40);
    assert!(matches!(refused, Err(RunError::Unsupported(_))), "{refused:?}");
}

/// Simulated with a loss of 0.3 %: 187 to 515 kbit/s with queues of 5 to 20 packets, in place of
/// 744; with a round trip of 0.1 s, the queue has no influence.
#[test]
fn the_growth_of_cubic_overflows_a_short_queue_of_a_long_path() {
    let stack = "congestion_control = \"cubic\"\nreceive_window = \"64 kB\"";
    let link = |queue: u32| {
        format!(
            "rate = \"10 Mbit/s\", queue = \"{queue} packets\", loss = {{ bernoulli = \"0.3 %\" }}"
        )
    };
    for queue in [5, 10, 20] {
        assert!(warns(stack, &link(queue), 300, "the window of CUBIC grows"), "{queue}");
    }
    assert!(!warns(stack, &link(200), 300, "the window of CUBIC grows"));
    assert!(!warns(stack, &link(5), 50, "the window of CUBIC grows"));
}

/// Simulated on 10 Mbit/s and a round trip of 0.6 s: 3.1 to 3.9 Mbit/s in 250 s, in place of 9.5.
#[test]
fn vegas_grows_for_minutes_on_a_long_path() {
    let stack = "congestion_control = \"vegas\"\nreceive_window = \"4 MB\"";
    let link = "rate = \"10 Mbit/s\", queue = \"200 packets\"";
    assert!(warns(stack, link, 300, "steady state"));
    assert!(!warns(stack, link, 20, "steady state"));
    let answer = run(stack, link, 20).unwrap_or_else(|error| panic!("{error}"));
    assert!(answer.points[0].flows[0].mean(Metric::Goodput).is_some());
}
