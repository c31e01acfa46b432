//! Equal-cost multipath: flows are distributed between parallel links, packets of a flow are not.

use std::collections::{BTreeMap, BTreeSet};

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

/// A choice of four links, of two links, and of three links on the way back, at independent nodes:
/// the round-trip time tells which of the 24 paths an echo takes. One link has one direction, and
/// another leads from `far` to `near`. Each member has an access link of its own, which would
/// not carry the load of all.
const COMBINATIONS: &str = "title = 'echo'\nduration = '5 s'\nrecord.members = ['ping']\n\
    [node]\nmeter = { count = 1200 }\nnear = { ecmp = true }\nfar = { ecmp = true }\nhead = {}\n\
    [link.access]\nfrom = 'meter'\nto = 'near'\nboth = { rate = '1 Mbit/s' }\n\
    [link.x]\nfrom = 'near'\nto = 'far'\nshared = true\n\
    forward = { rate = '1 Gbit/s' }\nreverse = { rate = '1 Gbit/s', delay = '8 ms' }\n\
    [link.y]\nfrom = 'near'\nto = 'far'\nshared = true\n\
    forward = { rate = '1 Gbit/s', delay = '20 ms' }\n\
    reverse = { rate = '1 Gbit/s', delay = '12 ms' }\n\
    [link.one-way]\nfrom = 'near'\nto = 'far'\nshared = true\n\
    forward = { rate = '1 Gbit/s', delay = '40 ms' }\n\
    [link.opposite]\nfrom = 'far'\nto = 'near'\nshared = true\n\
    forward = { rate = '1 Gbit/s', delay = '16 ms' }\n\
    reverse = { rate = '1 Gbit/s', delay = '60 ms' }\n\
    [link.p]\nfrom = 'far'\nto = 'head'\nshared = true\nboth = { rate = '1 Gbit/s' }\n\
    [link.q]\nfrom = 'far'\nto = 'head'\nshared = true\n\
    forward = { rate = '1 Gbit/s', delay = '100 ms' }\nreverse = { rate = '1 Gbit/s' }\n\
    [flow.ping]\nfrom = 'meter'\nto = 'head'\ntransport = 'echo'\n\
    load.periodic = { size = '72 B', every = '1 s' }\n";

/// The number of members with each round-trip time, in units of 4 ms.
fn members_by_time(text: &str) -> BTreeMap<u64, u32> {
    let answer = run(text);
    let mut members = BTreeMap::new();
    for delay in &answer.points[0].members[0].metrics[&Metric::DelayMean] {
        *members.entry((delay.unwrap() / 0.004) as u64).or_default() += 1;
    }
    members
}

#[test]
fn each_node_and_each_direction_chooses_by_itself() {
    let times = |to: &[u64], on: &[u64]| -> BTreeSet<u64> {
        let sums = to.iter().flat_map(|to| on.iter().map(move |on| to + on));
        sums.flat_map(|sum| [2, 3, 4].map(|back| sum + back)).collect()
    };
    let members = members_by_time(COMBINATIONS);
    assert_eq!(members.keys().copied().collect::<BTreeSet<_>>(), times(&[0, 5, 10, 15], &[0, 25]));
    // Binomial: 50 members take each path, with a standard deviation of 7.
    assert!(members.values().all(|count| (15..=85).contains(count)), "{members:?}");
    // A requested route is that of requests; the responses return over one of the links.
    let route = format!("{COMBINATIONS}route = ['access', 'y', 'p']\n");
    let members = members_by_time(&route);
    assert_eq!(members.into_keys().collect::<BTreeSet<_>>(), times(&[5], &[0]));
}
