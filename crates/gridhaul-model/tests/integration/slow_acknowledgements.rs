//! A fast downlink whose acknowledgements pass a slow uplink, and very long round trips.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

fn solve(delay: &str, uplink: &str, stack: &str, load: &str) -> Answer {
    let text = format!(
        r#"
title = "slow acknowledgements"
duration = "3000 s"
warmup = "2000 s"
[node]
server = {{}}
client = {{}}
[link.down]
from = "server"
to = "client"
forward = {{ rate = "20 Mbit/s", delay = "{delay}" }}
[link.up]
from = "client"
to = "server"
forward = {{ rate = "{uplink}", delay = "{delay}", queue = "unlimited" }}
[stack.s]
profile = "rfc"
timestamps = false
{stack}
[flow.d]
from = "server"
to = "client"
stack = "s"
{load}
"#
    );
    let scenario = Scenario::from_toml(&text, "hybrid.toml").unwrap_or_else(|e| panic!("{e}"));
    Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

fn mean(answer: &Answer, metric: Metric) -> f64 {
    answer.points[0].flows[0].mean(metric).unwrap_or_else(|| panic!("no {metric}"))
}

#[test]
fn a_transfer_waits_for_its_acknowledgements_on_a_slow_uplink() {
    // 685 segments of 1,460 B. The initial window of ten is sent at once; 34 acknowledgements of
    // 40 B, 16 ms each, permit two segments and open the window to 44 segments (64 kB), and 607
    // one each. The simulator takes 10.28 s.
    let stack = "delayed_ack = \"0 s\"\nreceive_window = \"44 segments\"";
    let answer = solve("1 ms", "20 kbit/s", stack, "load.transfer.size = \"1 MB\"");
    let time_s = mean(&answer, Metric::CompletionTime);
    assert!((time_s / 10.28 - 1.0).abs() < 0.01, "{time_s}");
}

#[test]
fn a_transfer_whose_syn_is_retransmitted_begins_with_one_segment() {
    // The round trip of 1.2 s exceeds the initial timeout of 1 s. 14 segments: one, whose
    // acknowledgement waits 200 ms for its timer, then two, three, four or five and the rest: the
    // handshake, four round trips, and half of one to the last segment; ten segments at once would
    // take 3.0 s.
    let answer = solve("600 ms", "10 Mbit/s", "", "load.transfer.size = \"20 kB\"");
    let time_s = mean(&answer, Metric::CompletionTime);
    assert!((time_s - (1.2 + 0.2 + 4.0 * 1.2 + 0.6)).abs() < 0.03, "{time_s}");
    // Above 3 s, data is retransmitted before it is acknowledged.
    let answer = solve("2 s", "10 Mbit/s", "", "load.transfer.size = \"20 kB\"");
    let warns = answer.warnings.iter().any(|warning| warning.message.contains("lower bound"));
    assert!(warns, "{:?}", answer.warnings);
}

#[test]
fn vegas_keeps_its_backlog_in_the_queue_of_the_acknowledgements() {
    // An acknowledgement of 40 B takes 16 ms, so that 2 of them wait for 32 ms. A receive window of
    // 300 segments would wait for 4.8 s.
    let stack = "delayed_ack = \"0 s\"\nsack = false\ncongestion_control = \"vegas\"\n\
        receive_window = \"300 segments\"";
    let answer = solve("350 ms", "20 kbit/s", stack, "load = \"bulk\"");
    let rtt_s = mean(&answer, Metric::RttMean);
    assert!((rtt_s - (0.7 + 0.0166 + 0.032)).abs() < 0.002, "{rtt_s}");
}
