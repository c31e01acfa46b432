//! Windows and rounds by hand: messages of several segments, fixed windows, thresholds, connections
//! and proxies.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// A flow over a link with this rate and one-way delay; `stack` and `flow` have further keys.
fn answer(rate: &str, delay: &str, stack: &str, flow: &str) -> Answer {
    let text = format!(
        "title = \"line\"\nduration = \"1000 s\"\n[node]\na = {{}}\nb = {{}}\n\
         [link.line]\nfrom = \"a\"\nto = \"b\"\n\
         both = {{ rate = \"{rate}\", delay = \"{delay}\" }}\n\
         [stack.x]\n{stack}\n[flow.f]\nfrom = \"a\"\nto = \"b\"\nstack = \"x\"\n{flow}\n"
    );
    solve(&text)
}

fn solve(text: &str) -> Answer {
    let scenario = Scenario::from_toml(text, "line.toml").unwrap_or_else(|error| panic!("{error}"));
    Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn assert_mean(answer: &Answer, metric: Metric, expected: f64, bound: f64) {
    let mean = answer.points[0].flows[0].mean(metric).unwrap_or_else(|| panic!("no {metric}"));
    assert!((mean / expected - 1.0).abs() < bound, "{metric}: {mean}, expected {expected}");
}

fn warns(answer: &Answer, part: &str) -> bool {
    answer.warnings.iter().any(|warning| warning.message.contains(part))
}

/// Two segments of 1,400 B with headers of 52 B: 2 · 1,452 · 8 / 9,600 + 0.01 = 2.43 s.
#[test]
fn the_segments_of_a_message_follow_each_other_on_a_slow_link() {
    let stack = "profile = \"linux\"\nmss = \"1400 B\"\nreceive_window = \"2 segments\"\n\
                 handshake = false\ndelayed_ack = \"0 s\"";
    let load = "deadline = \"2 s\"\nload.periodic = { every = \"15 min\", size = \"2800 B\" }";
    let answer = answer("9600 bit/s", "10 ms", stack, load);
    assert_mean(&answer, Metric::DelayMean, 2.43, 0.01);
    assert_eq!(answer.points[0].deadline_checks[0].met, Some(false));
}

/// A segment of 1,052 B: 16.83 + 50 ms; its acknowledgement of 52 B: 0.83 + 50 ms; the rest of 452
/// B: 7.23 + 50 ms. A delayed acknowledgement adds 200 ms.
#[test]
fn nagles_algorithm_keeps_a_short_last_segment_back() {
    let load = "load.periodic = { every = \"20 s\", size = \"1400 B\" }";
    for (keys, expected) in [("delayed_ack = \"0 s\"", 0.1749), ("", 0.3749)] {
        let stack = format!("profile = \"rfc\"\nmss = \"1000 B\"\nhandshake = false\n{keys}");
        let answer = answer("500 kbit/s", "50 ms", &stack, load);
        assert_mean(&answer, Metric::DelayMean, expected, 0.003);
    }
    let stack = "profile = \"rfc\"\nmss = \"1000 B\"\nhandshake = false";
    let often = "load.poisson = { every = \"1 s\", size = \"400 B\" }";
    assert!(warns(&answer("500 kbit/s", "50 ms", stack, often), "Nagle's algorithm delays"));
}

/// After the short segment of 500 B, the receiver offers 1,500 of 2,000 B.
#[test]
fn a_window_that_a_short_segment_leaves_smaller_is_marked() {
    let load = "load.periodic = { every = \"20 s\", size = \"2500 B\" }";
    let stack = "profile = \"rfc\"\nmss = \"1000 B\"\nhandshake = false\ndelayed_ack = \"0 s\"";
    let marked = |keys: &str| {
        let stack = format!("{stack}\n{keys}");
        warns(&answer("500 kbit/s", "50 ms", &stack, load), "does not enlarge its window")
    };
    assert!(marked("receive_window = \"2 segments\""));
    assert!(!marked("receive_window = \"3 segments\""));
}

/// Five segments of 500 B in each round trip of 200.46 ms (540 B and 40 B at 10 Mbit/s).
#[test]
fn a_fixed_window_limits_the_rate() {
    let stack = "profile = \"ns2\"\ncongestion_control = \"fixed\"\nmss = \"500 B\"\n\
                 fixed_window = \"5 segments\"";
    let bulk = answer("10 Mbit/s", "100 ms", stack, "load = \"bulk\"");
    assert_mean(&bulk, Metric::Goodput, 20_000.0 / 0.200_464, 1e-6);
    assert!(warns(&bulk, "the fixed window limits"), "{bulk:?}");
    // 60 segments: 12 rounds from the first one on, after a handshake.
    let load = "load.transfer.size = \"30000 B\"";
    let transfer = answer("10 Mbit/s", "100 ms", stack, load);
    assert_mean(&transfer, Metric::CompletionTime, 12.0 * 0.2 + 0.1, 0.01);
}

/// The simulator: rounds of 10, 14, 15, 16 and 5 segments, and of 10, 10, 20 and 20 with Vegas.
#[test]
fn the_window_of_a_transfer_follows_its_algorithm() {
    let load = "load.transfer.size = \"60000 B\"";
    let stack = "profile = \"rfc\"\nmss = \"1000 B\"\ndelayed_ack = \"0 s\"";
    let threshold = format!("{stack}\ninitial_ssthresh = \"14 segments\"");
    let answer_to = |stack: &str| answer("10 Mbit/s", "100 ms", stack, load);
    assert_mean(&answer_to(&threshold), Metric::CompletionTime, 1.108, 0.01);
    let vegas = answer_to(&format!("{stack}\ncongestion_control = \"vegas\""));
    assert_mean(&vegas, Metric::CompletionTime, 0.9196, 0.01);
    assert!(warns(&vegas, "Vegas also ends its slow start"), "{vegas:?}");
    let cubic = answer_to(&format!("{threshold}\ncongestion_control = \"cubic\""));
    assert!(warns(&cubic, "above `initial_ssthresh`"), "{cubic:?}");
    // Delayed acknowledgements: rounds of 1, 2 and 2 segments, of which the first one is
    // acknowledged after 200 ms.
    let one = "profile = \"rfc\"\nmss = \"1000 B\"\ninitial_window = \"1 segment\"";
    let short = answer("10 Mbit/s", "100 ms", one, "load.transfer.size = \"5000 B\"");
    assert_mean(&short, Metric::CompletionTime, 0.9044, 0.01);
}

/// SYN crosses both hops, SYN-ACK the second one: 300 ms until the proxy can send, by which time it
/// has the data. The last hop takes 100 ms.
#[test]
fn the_handshakes_of_a_split_path_overlap() {
    let answer = solve(
        "title = \"split\"\nduration = \"20 s\"\n[node]\na = {}\nb = {}\n\
         [node.m.proxy]\nmode = \"split\"\n\
         [link.l]\nfrom = \"a\"\nto = \"m\"\nboth = { rate = \"10 Mbit/s\", delay = \"100 ms\" }\n\
         [link.u]\nfrom = \"m\"\nto = \"b\"\nboth = { rate = \"10 Mbit/s\", delay = \"100 ms\" }\n\
         [stack.s]\nprofile = \"rfc\"\ntimestamps = false\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\nstack = \"s\"\nload.transfer.size = \"1000 B\"\n",
    );
    assert_mean(&answer, Metric::CompletionTime, 0.4017, 0.001);
}

/// Round trips of 0.6 s. The handshake takes one; rounds of 10 and 20 segments follow, and the rest
/// takes 0.3 s.
#[test]
fn messages_of_new_connections_take_rounds_of_slow_start() {
    let delay = |stack: &str, size: &str| {
        let load = format!(
            "connection = \"per_message\"\nload.periodic = {{ every = \"100 s\", size = \"{size}\" \
             }}"
        );
        answer("10 Mbit/s", "300 ms", &format!("profile = \"linux\"\n{stack}"), &load)
    };
    assert_mean(&delay("", "60000 B"), Metric::DelayMean, 2.116, 0.01);
    assert_mean(&delay("", "15000 B"), Metric::DelayMean, 1.5, 0.02);
    let narrow = delay("receive_window = \"2 segments\"", "5000 B");
    assert_mean(&narrow, Metric::DelayMean, 1.5, 0.02);
    assert!(!warns(&narrow, "each SYN is retransmitted"), "{narrow:?}");
    let slow = answer(
        "500 kbit/s",
        "600 ms",
        "profile = \"linux\"",
        "connection = \"per_message\"\nload.periodic = { every = \"5 s\", size = \"50 B\" }",
    );
    assert!(warns(&slow, "each SYN is retransmitted"), "{slow:?}");
}

/// Round trips of 301 and 801 ms with a timer of 200 ms; goodputs of the simulator.
#[test]
fn an_odd_segment_waits_for_a_timer_below_the_round_trip() {
    let goodput = |delay: &str, window: u32| {
        let stack =
            format!("profile = \"rfc\"\nmss = \"1000 B\"\nreceive_window = \"{window} segments\"");
        answer("10 Mbit/s", delay, &stack, "load = \"bulk\"")
    };
    assert_mean(&goodput("150 ms", 3), Metric::Goodput, 66_440.0, 0.005);
    assert_mean(&goodput("150 ms", 5), Metric::Goodput, 119_600.0, 0.005);
    assert_mean(&goodput("400 ms", 7), Metric::Goodput, 67_510.0, 0.005);
}
