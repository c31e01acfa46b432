//! Aggregators that close receive windows, and links that the regions of several aggregators share.

use gridhaul_model::Model;
use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

use super::case::{Case, FIGURE_10};

const CLOSED: Case = Case { backpressure: true, ..FIGURE_10 };

#[test]
fn flow_control_moves_the_overload_from_losses_to_waiting_times() {
    for (drop, wait) in FIGURE_10.both(50).into_iter().zip(CLOSED.both(50)) {
        assert!(drop.loss(&Model::REFINED) > 0.8 && wait.loss(&Model::REFINED) < 0.1);
        // Little's law for one region: 8,000 meters, of which 60 s times the rate of the readings
        // are silent; all others wait.
        let per_second = wait.metric(&Model::REFINED, Metric::Goodput) / 1600.0 / 50.0;
        let expected = (8000.0 - 60.1 * per_second) / per_second;
        let delay = wait.metric(&Model::REFINED, Metric::SegmentDelayTotal);
        assert!((delay / expected - 1.0).abs() < 0.01, "{delay} {expected}");
        // The path is full: 1,042 packets/s, some of them retransmissions.
        assert!((850.0..1042.0).contains(&(50.0 * per_second)), "{per_second}");
    }
}

/// Section 5 of the paper, which its own equations explain by another rule: less loss than over one
/// hop, less with Vegas than with Reno up to some hundred aggregators, and more again with many.
#[test]
fn flow_control_gives_the_shape_of_figure_10() {
    let loss = |aggregators| CLOSED.both(aggregators).map(|case| case.loss(&Model::REFINED));
    let one_hop = FIGURE_10.both(0).map(|case| case.loss(&Model::REFINED));
    for aggregators in [1, 5, 50, 100, 300, 600, 1000] {
        let [reno, vegas] = loss(aggregators);
        assert!(reno < one_hop[0] && vegas < one_hop[1]);
    }
    assert!(loss(100)[1] < 0.1 && loss(100)[1] < loss(100)[0]);
    assert!(loss(1000)[1] > 2.0 * loss(50)[1]);
}

#[test]
fn without_congestion_flow_control_changes_nothing() {
    let light = |case: Case| Case { meters: 5_000, ..case };
    for (drop, wait) in light(FIGURE_10).both(20).into_iter().zip(light(CLOSED).both(20)) {
        let delay = |case: Case| case.metric(&Model::REFINED, Metric::SegmentDelayTotal);
        assert!((delay(wait) / delay(drop) - 1.0).abs() < 0.02);
        // With one segment in flight instead of two, a burst sends half as many segments.
        let load = |case: Case| case.metric(&Model::REFINED, Metric::Goodput);
        assert!((0.45..0.7).contains(&(load(wait) / load(drop))), "{}", load(wait) / load(drop));
        assert!(wait.loss(&Model::REFINED) < 1e-3);
    }
}

#[test]
fn the_papers_equations_have_no_flow_control() {
    for backend in [&Model::PAPER as &dyn Backend, &Model::PRINTED] {
        let keys = backend.supports(&CLOSED.both(50)[0].scenario()).unwrap_err();
        assert!(keys[0].key.ends_with("aggregator.when_full"), "{keys:?}");
    }
}

/// The printed queues hold one packet less, and Vegas counts its own transmission.
#[test]
fn printed_equations_differ_little() {
    for case in FIGURE_10.both(100) {
        let (corrected, printed) = (case.loss(&Model::PAPER), case.loss(&Model::PRINTED));
        assert!(corrected != printed && (printed / corrected - 1.0).abs() < 0.02);
    }
}

fn shared_channel(aggregators: u64, own: bool) -> Scenario {
    let rate = 1_000_000 / if own { aggregators } else { 1 };
    let channel =
        if own { "shared = true\nto = \"region\"" } else { "shared = true\nto = \"cell\"" };
    let rest = if own {
        String::new()
    } else {
        "[node.cell]\n[link.rest]\nfrom = \"cell\"\nto = \"region\"\nboth = { rate = \"1 Gbit/s\", \
         delay = \"0 s\" }\n"
            .to_owned()
    };
    let text = format!(
        "title = \"channel\"\nduration = \"300 s\"\n[node]\nmeter = {{ count = 12000 }}\nhead = \
         {{}}\n\
         [node.region]\ncount = {aggregators}\naggregator = {{ buffer = \"100 messages\", stack \
         = \"upstream\" }}\n\
         {rest}[link.channel]\nfrom = \"meter\"\n{channel}\n\
         both = {{ rate = \"{rate} bit/s\", delay = \"25 ms\", queue = \"100 packets\" }}\n\
         [link.wan]\nfrom = \"region\"\nto = \"head\"\nshared = true\nboth = {{ rate = \"10 \
         Mbit/s\", \
         delay = \"25 ms\" }}\n\
         [stack.upstream]\nprofile = \"ns2\"\nmss = \"200 B\"\nreceive_window = \"64 segments\"\n\
         [stack.s]\nprofile = \"ns2\"\nmss = \"200 B\"\nreceive_window = \"2 segments\"\n\
         [flow.reading]\nfrom = \"meter\"\nto = \"head\"\nstack = \"s\"\n\
         load.on_off = {{ on = \"100 ms\", off = \"20 s\", size = \"200 B\" }}\n"
    );
    Scenario::from_toml(&text, "channel.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// The load of a channel before several aggregators is that of all their regions.
#[test]
fn regions_may_share_a_channel() {
    let loss = |scenario: &Scenario| {
        let answer =
            Model::REFINED.run(scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"));
        answer.points[0].flows[0].mean(Metric::SegmentLoss).unwrap()
    };
    let one = loss(&shared_channel(1, true));
    assert!(one > 0.3, "{one}");
    for aggregators in [2, 10] {
        let shared = loss(&shared_channel(aggregators, false));
        assert!((shared - one).abs() < 1e-3, "{shared} {one}");
    }
}

#[test]
fn a_link_before_aggregators_that_carries_other_flows_is_refused() {
    let mut scenario = shared_channel(10, false);
    assert!(Model::REFINED.supports(&scenario).is_ok());
    let direct = scenario.flow["reading"].clone();
    scenario.flow.insert(
        "direct".to_owned(),
        gridhaul_scenario::scenario::Flow { to: "cell".to_owned(), ..direct },
    );
    let keys = Model::REFINED.supports(&scenario).unwrap_err();
    assert_eq!(keys[0].key, "link.channel");
}
