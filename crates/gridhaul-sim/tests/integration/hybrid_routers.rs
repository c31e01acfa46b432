//! Hybrid routers: failover between two links, return, classes, and what is refused.

use gridhaul_scenario::answer::{Answer, Metric, Row};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

use crate::schedulers::{close, mean, run};

const FAILOVER: &str = include_str!("../../../../scenarios/failover.toml");

/// A metric of a flow in each replication of the first point.
fn each(answer: &Answer, name: &str, metric: Metric) -> Vec<f64> {
    let row = answer.points[0].flows.iter().find(|row| row.name == name).expect("a row");
    row.replications[&metric].iter().map(|value| value.expect("a value")).collect()
}

/// A metric of a flow or a direction in the second point of the sweep, without routers.
fn without_routers(answer: &Answer, name: &str, metric: Metric) -> f64 {
    let mut rows = answer.points[1].flows.iter().chain(&answer.points[1].links);
    rows.find(|row| row.name == name).and_then(|row: &Row| row.mean(metric)).expect("a metric")
}

#[test]
fn a_failed_link_is_left_within_the_calculated_time_and_used_again_after_its_return() {
    let answer = run(&FAILOVER.replace("[node.sub", "record.each_replication = true\n[node.sub"));
    // The calculation is in the comment of the scenario.
    for lost in each(&answer, "control", Metric::MessageLoss) {
        assert!((15.0..=36.0).contains(&(lost * 3_000.0)), "{lost}");
    }
    for delay in each(&answer, "readings", Metric::DelayMax) {
        assert!((0.49..0.52).contains(&delay) || (1.03..1.08).contains(&delay), "{delay} s");
    }
    // LTE carries datagrams of 128 B and acknowledgements of 52 B for 20 s and the time of the
    // return, less that of the switch, and probes of 74 B all the time.
    let switched = (20.0 + 6.15 - 0.51) / 60.0;
    let carried = (128.0 * 50.0 + 52.0 * 10.0) * 8.0 * switched + 74.0 * 8.0 * 5.0;
    close(mean(&answer, "lte.reverse", Metric::LinkThroughput), carried, 0.03);
    close(without_routers(&answer, "control", Metric::MessageLoss), 1.0 / 3.0, 0.001);
    close(without_routers(&answer, "readings", Metric::DelayMax), 30.4, 0.02);
}

/// Two nodes with two links. `near` and `far` are keys of the routers, `fast` of the first link.
fn two_links(near: &str, far: &str, fast: &str, rest: &str) -> String {
    format!(
        "title = 'two links'\nduration = '40 s'\n\
         [node.near.router]\npeer = 'far'\nlinks = ['fast', 'slow']\n{near}\n\
         [node.far.router]\npeer = 'near'\nlinks = ['fast', 'slow']\n{far}\n\
         [link.fast]\nfrom = 'near'\nto = 'far'\n{fast}\n\
         [link.slow]\nfrom = 'far'\nto = 'near'\nboth = {{ rate = '1 Mbit/s', delay = '30 ms' }}\n\
         [flow.up]\nfrom = 'near'\nto = 'far'\n\
         load.periodic = {{ size = '200 B', every = '100 ms' }}\n\
         [flow.down]\nfrom = 'far'\nto = 'near'\n\
         load.periodic = {{ size = '200 B', every = '100 ms' }}\n{rest}"
    )
}

const FAST: &str = "both = { rate = '10 Mbit/s', delay = '10 ms' }";

#[test]
fn each_direction_of_a_link_is_judged_by_itself() {
    let dead = "forward = { rate = '10 Mbit/s', delay = '10 ms', \
                outage = [{ start = '10 s', length = '60 s' }] }\n\
                reverse = { rate = '10 Mbit/s', delay = '10 ms' }";
    let answer = run(&two_links("", "", dead, ""));
    // 252 B each 100 ms are 20 kbit/s, on the slow link for 30 of 40 s. Acknowledgements of `down`
    // and probes add to it.
    let data = mean(&answer, "slow.reverse", Metric::LinkThroughput);
    assert!((15_000.0..30_000.0).contains(&data), "{data} bit/s");
    // The other direction is still used: 20 kbit/s of data, acknowledgements, probes.
    let other = mean(&answer, "fast.reverse", Metric::LinkThroughput);
    assert!(other > 20_000.0, "{other} bit/s");
    let probes = mean(&answer, "slow.forward", Metric::LinkThroughput);
    assert!(probes < 5_000.0, "{probes} bit/s of probes only");
}

#[test]
fn a_class_uses_its_own_link() {
    let class = "class.down = { flows = ['down'], links = ['slow'] }";
    let answer = run(&two_links(class, class, FAST, ""));
    // Propagation, transmission of 252 B, and nothing else after the handshake.
    close(mean(&answer, "down", Metric::DelayMedian), 0.030 + 252.0 * 8.0 / 1e6, 0.02);
    close(mean(&answer, "up", Metric::DelayMedian), 0.010 + 252.0 * 8.0 / 10e6, 0.02);
    // The acknowledgements of both flows belong to their classes as well.
    let opened_there = "class.down = { opened_by = 'peer', links = ['slow'] }";
    let one_side = run(&two_links(opened_there, "", FAST, ""));
    close(mean(&one_side, "down", Metric::DelayMedian), 0.010 + 252.0 * 8.0 / 10e6, 0.02);
    let acknowledgements = mean(&one_side, "slow.reverse", Metric::LinkThroughput);
    assert!(acknowledgements > 3_000.0, "{acknowledgements} bit/s");
    // The connection that this side has opened does not belong to the class.
    close(mean(&one_side, "up", Metric::DelayMedian), 0.010 + 252.0 * 8.0 / 10e6, 0.02);
}

#[test]
fn every_class_leaves_a_failed_link() {
    let dead = "both = { rate = '10 Mbit/s', delay = '10 ms', \
                outage = [{ start = '10 s', length = '60 s' }] }";
    let class = "class.down = { flows = ['down'], links = ['fast'] }";
    let answer = run(&two_links(class, class, dead, ""));
    // For 30 of 40 s the messages of both classes use the slow link.
    for flow in ["up", "down"] {
        close(mean(&answer, flow, Metric::DelayMedian), 0.030 + 252.0 * 8.0 / 1e6, 0.1);
        let messages = mean(&answer, flow, Metric::Messages);
        assert!(messages > 390.0, "{flow}: {messages} of 400");
    }
}

/// The router at `far` starts at a random time within its interval of 10 s. Before, it ignores the
/// probes of `near`, and so does not notice that the fast link has failed after a second.
#[test]
fn a_router_neither_sends_nor_receives_probes_before_it_starts() {
    let fast = "forward = { rate = '10 Mbit/s', outage = [{ start = '1 s', length = '60 s' }] }\n\
                reverse = { rate = '10 Mbit/s' }";
    let near = "probe_interval = '20 ms'";
    let far = "probe_interval = '10 s'\ndetection_time = '50 s'";
    let text = two_links(near, far, fast, "").replace(
        "duration = '40 s'",
        "duration = '5 s'\nreplications = 60\nrecord.each_replication = true",
    );
    let answer = run(&text);
    let row = answer.points[0].links.iter().find(|row| row.name == "slow.forward").unwrap();
    // This direction carries probes of `far` only.
    let packets = row.replications[&Metric::PacketsIn].iter().flatten();
    let silent = packets.filter(|packets| **packets == 0.0).count();
    // Binomial with one half: the standard deviation is 3.9.
    assert!((14..=46).contains(&silent), "{silent} of 60");
}

#[test]
fn the_same_seed_gives_the_same_answer_on_any_number_of_threads() {
    let scenario = Scenario::from_toml(FAILOVER, "failover.toml").expect("a scenario");
    let [one, two] = [1, 2].map(|threads| Sim { threads }.run(&scenario, &NoProgress).unwrap());
    assert_eq!(one, two);
    assert!(!one.points[0].deterministic, "the first probes are sent at random times");
}

#[test]
fn keys_that_the_simulator_does_not_honour_are_refused_by_name() {
    let refused = |text: &str, key: &str| {
        let scenario = Scenario::from_toml(text, "test.toml").unwrap();
        let found = Sim::default().supports(&scenario).expect_err(key);
        let keys: Vec<_> = found.iter().map(|unsupported| unsupported.key.as_str()).collect();
        assert!(keys.contains(&key), "{keys:?}");
    };
    let class = "class.acks = { acknowledgements = true, links = ['slow'] }";
    let key = "node.near.router.class.acks.acknowledgements";
    refused(&two_links(class, "", FAST, ""), key);
    let one_way = "forward = { rate = '10 Mbit/s' }";
    refused(&two_links("", "", one_way, ""), "node.near.router.links[0]");
    let shaper = "both = { rate = '10 Mbit/s', shaper = { rate = '9 Mbit/s' } }";
    refused(&two_links("", "", shaper, ""), "link.fast.forward.shaper");
    let mtu = "both = { rate = '10 Mbit/s', mtu = '1280 B' }";
    refused(&two_links("", "", mtu, ""), "link.fast.reverse.mtu");
}
