//! Active queue management: queueing delay of a bulk flow, and of another flow at the same
//! bottleneck.

use std::fmt::Write as _;

use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_sim::Sim;

/// Bulk flows and a meter that sends 100 B every 100 ms, over one bottleneck.
fn run(aqm: &str, kbit_per_s: u32, bulk: u32) -> Answer {
    let text = format!(
        r#"
title = "Bulk and meter"
duration = "65 s"
warmup = "5 s"
[node]
s = {{}}
r = {{}}
d = {{}}
[link]
access = {{ from = "s", to = "r", both = {{ rate = "100 Mbit/s", delay = "20 ms" }} }}
[link.bottleneck]
from = "r"
to = "d"
forward = {{ rate = "{kbit_per_s} kbit/s", delay = "5 ms", queue = "400 packets"{aqm} }}
reverse = {{ rate = "100 Mbit/s", delay = "5 ms" }}
[stack.reno]
congestion_control = "sack"
receive_window = "10000 segments"
[flow.bulk]
from = "s"
to = "d"
count = {bulk}
stack = "reno"
start_spread = "0 s"
load = "bulk"
[flow.meter]
from = "s"
to = "d"
transport = "datagram"
load.periodic = {{ size = "100 B", every = "100 ms" }}
"#
    );
    let scenario = Scenario::from_toml(&text, "queues").unwrap_or_else(|error| panic!("{error}"));
    Sim::default().run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

/// Mean queueing delay in ms (Little's law), utilisation, and mean delay of the meter in ms.
fn figures(answer: &Answer) -> (f64, f64, f64) {
    let point = &answer.points[0];
    let link = point.links.iter().find(|row| row.name == "bottleneck.forward").expect("its row");
    let mean = |metric| link.metrics[&metric].mean.expect("a value");
    let meter = point.flows[1].metrics[&Metric::DelayMean].mean.expect("a delay");
    let wait = mean(Metric::QueueMean) * 60e3 / mean(Metric::PacketsIn);
    (wait, mean(Metric::Utilisation), meter * 1e3)
}

#[test]
fn codel_keeps_the_standing_delay_close_to_its_target() {
    // At 1 Mbit/s the transmission of a packet takes 12 ms, more than the target of 5 ms: CoDel
    // never drops the only packet of a queue, so the delay is close to 12 ms. A single Reno flow
    // that halves its window while the queue is nearly empty uses at least three quarters of the
    // link.
    for (rate, maximum) in [(1_000, 30.0), (10_000, 10.0)] {
        let (tail, ..) = figures(&run("", rate, 1));
        let (wait, used, _) = figures(&run(", aqm.codel = {}", rate, 1));
        assert!(wait < maximum && used > 0.75, "{rate}: {wait} ms, {used}");
        assert!(tail > 5.0 * wait, "{rate}: drop-tail has a delay of {tail} ms");
    }
}

#[test]
fn pie_comes_close_to_its_target() {
    for (rate, bulk) in [(1_000, 2), (10_000, 5)] {
        let (wait, used, _) = figures(&run(", aqm.pie = {}", rate, bulk));
        assert!((7.0..30.0).contains(&wait) && used > 0.85, "{rate}: {wait} ms, {used}");
    }
}

#[test]
fn red_keeps_the_average_between_its_thresholds() {
    for (rate, bulk) in [(1_000, 2), (10_000, 5)] {
        let answer = run(", aqm.red = {}", rate, bulk);
        let link = &answer.points[0].links[2];
        let mean = link.metrics[&Metric::QueueMean].mean.expect("a mean");
        assert!((3.0..15.0).contains(&mean), "{rate}: {mean} packets");
    }
}

#[test]
fn fq_codel_isolates_a_meter_from_bulk_flows() {
    // 25.01 ms of propagation, 1.02 ms of transmission, and at most the rest of one packet of 12
    // ms.
    let (.., tail) = figures(&run("", 1_000, 2));
    let (.., codel) = figures(&run(", aqm.codel = {}", 1_000, 2));
    let (.., fair) = figures(&run(", aqm.fq_codel = {}", 1_000, 2));
    assert!((26.0..39.1).contains(&fair), "{fair} ms");
    assert!(tail > 10.0 * fair && codel > fair + 5.0, "{tail}, {codel}, {fair} ms");
}

/// Drop ratio and mean queue for the parameters of a line of `conformance/ns2/red.csv`.
fn red_as_in_ns2(cells: &[f64]) -> (f64, f64) {
    let &[rate, rtt, flows, min, max, weight, max_probability, gentle, queue, _, end, warmup, ..] =
        cells
    else {
        panic!("a line of 15 cells");
    };
    let text = format!(
        r#"
title = "RED"
duration = "{end} s"
warmup = "{warmup} s"
replications = 3
[node]
s = {{}}
r = {{}}
d = {{}}
[link]
access = {{ from = "s", to = "r", both = {{ rate = "100 Mbit/s", delay = "10 ms", queue = "unlimited" }} }}
[link.bottleneck]
from = "r"
to = "d"
reverse = {{ rate = "100 Mbit/s", delay = "{far} ms", queue = "unlimited" }}
[link.bottleneck.forward]
rate = "{rate} kbit/s"
delay = "{far} ms"
queue = "{queue} packets"
aqm.red = {{ min = "{min} packets", max = "{max} packets", weight = {weight}, max_probability = "{percent} %", gentle = {gentle} }}
[stack.ns2]
profile = "ns2"
congestion_control = "sack"
receive_window = "10000 segments"
delayed_ack = "0 s"
[flow.data]
from = "s"
to = "d"
count = {flows}
stack = "ns2"
load = "bulk"
start_spread = "{spread} ms"
"#,
        far = rtt / 2.0 - 10.0,
        percent = max_probability * 100.0,
        gentle = gentle > 0.0,
        spread = flows * 100.0,
    );
    let scenario = Scenario::from_toml(&text, "red").unwrap_or_else(|error| panic!("{error}"));
    let answer =
        Sim::default().run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"));
    let links = &answer.points[0].links;
    let link = links.iter().find(|row| row.name == "bottleneck.forward").expect("its row");
    let mean = |metric| link.metrics[&metric].mean.expect("a value");
    (mean(Metric::LossRatio), mean(Metric::QueueMean))
}

#[test]
fn red_drops_and_queues_as_in_ns2() {
    // Five consecutive lines for each setting: one per seed of ns-2.
    let lines: Vec<Vec<f64>> = include_str!("../../ns2/red.csv")
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().expect("a number")).collect())
        .collect();
    let (mut table, mut differ) = (String::new(), 0);
    for setting in lines.chunks(5) {
        let mean = |cell: usize| setting.iter().map(|line| line[cell]).sum::<f64>() / 5.0;
        let (drops, queue) = red_as_in_ns2(&setting[0]);
        for (what, own, ns2) in [("drops", drops, mean(12)), ("queue", queue, mean(13))] {
            let off = own / ns2 - 1.0;
            differ += u32::from(off.abs() > 0.1);
            let _ = writeln!(table, "{what} {own:.5}, ns-2 {ns2:.5}: {:+.1} %", off * 100.0);
        }
    }
    assert_eq!(differ, 0, "\n{table}");
}
