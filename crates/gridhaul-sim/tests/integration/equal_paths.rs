//! Equal-cost multipath: flows are distributed between parallel links, packets of a flow are not.

use std::collections::BTreeSet;

use gridhaul_scenario::answer::Metric;

use crate::schedulers::{close, mean, run};

const ECMP: &str = include_str!("../../../../scenarios/ecmp.toml");

#[test]
fn four_uploads_share_two_links_as_calculated() {
    let answer = run(ECMP);
    // The calculation is in the comment of the scenario. The standard deviation of the mean of 100
    // replications is 1.8 % of the sum, and 1.4 % of the index.
    close(mean(&answer, "uploads", Metric::Goodput), 1.81e6, 0.05);
    close(mean(&answer, "uploads", Metric::Fairness), 0.875, 0.05);
}

/// 400 senders of a datagram each second over two links with different delays.
const SENDERS: &str = "title = 'senders'\nduration = '20 s'\nrecord.members = ['up']\n\
    [node]\nmeter = { count = 400 }\nhub = { ecmp = true }\nhead = {}\n\
    [link.access]\nfrom = 'meter'\nto = 'hub'\nforward = { rate = '1 Gbit/s' }\n\
    [link.fast]\nfrom = 'hub'\nto = 'head'\nshared = true\n\
    forward = { rate = '1 Gbit/s', delay = '10 ms' }\n\
    [link.slow]\nfrom = 'hub'\nto = 'head'\nshared = true\n\
    forward = { rate = '1 Gbit/s', delay = '50 ms' }\n\
    [flow.up]\nfrom = 'meter'\nto = 'head'\ntransport = 'datagram'\n\
    load.periodic = { size = '100 B', every = '1 s' }\n";

#[test]
fn each_flow_keeps_its_link_and_half_of_them_use_each() {
    let answer = run(SENDERS);
    let delays = &answer.points[0].members[0].metrics[&Metric::DelayMean];
    let millis = |delay: &Option<f64>| (delay.unwrap() * 1e3).round() as u64;
    let different: BTreeSet<_> = delays.iter().map(millis).collect();
    assert_eq!(different, BTreeSet::from([10, 50]), "a mean between both has used both links");
    let fast = delays.iter().filter(|delay| millis(delay) == 10).count();
    // Binomial: the standard deviation is 10.
    assert!((160..=240).contains(&fast), "{fast} of 400");
    let without = run(&SENDERS.replace("{ ecmp = true }", "{}"));
    close(mean(&without, "up", Metric::DelayMax), 0.010, 0.01);
}

#[test]
fn a_requested_route_is_not_distributed() {
    let slow = format!("{SENDERS}route = ['access', 'slow']\n");
    let answer = run(&slow);
    assert_eq!(mean(&answer, "fast.forward", Metric::LinkThroughput), 0.0);
    close(mean(&answer, "up", Metric::DelayMean), 0.050, 0.01);
}
