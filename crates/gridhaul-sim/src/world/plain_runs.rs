//! The event loop of plain runs gives the results of the event loop of all runs, and the common
//! path of senders those of the general path.

use gridhaul_core::tcp::Connection;
use gridhaul_scenario::backend::NoProgress;
use gridhaul_scenario::scenario::Scenario;
use proptest::prelude::*;

use super::*;
use crate::build::build;

/// A scenario of several flows of two kinds over two links.
fn network(keys: &[String; 4]) -> Scenario {
    let [stack, link, loads, seed] = keys;
    let text = format!(
        r#"
        title = "random network"
        seed = {seed}
        duration = "20 s"
        warmup = "2 s"
        [node]
        meter = {{ count = 3 }}
        router = {{}}
        head = {{}}
        [link.access]
        from = "meter"
        to = "router"
        shared = true
        both = {{ rate = "2 Mbit/s", delay = "7 ms" }}
        [link.wan]
        from = "router"
        to = "head"
        both = {{ {link} }}
        [stack.s]
        {stack}
        {loads}
        "#
    );
    Scenario::from_toml(&text, "random.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn networks() -> impl Strategy<Value = Scenario> {
    let stacks = (
        prop::sample::select(vec!["rfc", "ns2", "linux"]),
        prop::sample::select(vec!["reno", "sack", "cubic", "vegas", "bbr", "new_reno"]),
        prop::sample::select(vec![1, 2, 4, 64]),
    );
    let links = (
        100_u32..3_000,
        1_u32..80,
        1_u32..30,
        prop::sample::select(vec!["", ", loss.bernoulli = '3 %'", ", duplicate = '2 %'"]),
    );
    let loads = prop::sample::subsequence(
        vec![
            "load = 'bulk'",
            "load.transfer.size = '40 kB'",
            "load.periodic = { size = '700 B', every = '300 ms' }",
            "load.request_response = { request = '90 B', response = '3 kB', pause = '1 s' }",
            "transport = 'datagram'\nload.poisson = { size = '200 B', every = '100 ms' }",
        ],
        1..4,
    );
    (stacks, links, loads, 0_u32..1_000).prop_map(|(stack, link, loads, seed)| {
        let (profile, algorithm, window) = stack;
        let (kbps, ms, queue, impairment) = link;
        let flow = |(number, load): (usize, &str)| {
            let stack = if load.contains("datagram") { "" } else { "stack = 's'" };
            format!("[flow.f{number}]\nfrom = 'meter'\nto = 'head'\n{stack}\n{load}\n")
        };
        network(&[
            format!(
                "profile = '{profile}'\ncongestion_control = '{algorithm}'\nreceive_window = \
                 '{window} segments'"
            ),
            format!(
                "rate = '{kbps} kbit/s', delay = '{ms} ms', queue = '{queue} packets'{impairment}"
            ),
            loads.into_iter().enumerate().map(flow).collect(),
            seed.to_string(),
        ])
    })
}

/// The rows of a run in one of the two event loops.
fn rows_of(scenario: &Scenario, is_plain: bool) -> RunRows {
    rows_of_changed(scenario, is_plain, |_| ())
}

/// [`rows_of`] with a change of each connection before the run.
fn rows_of_changed(
    scenario: &Scenario,
    is_plain: bool,
    change: impl Fn(&mut Connection),
) -> RunRows {
    let layout = Layout::new(scenario).unwrap();
    let mut world = build(scenario, &layout, 0, &NoProgress).unwrap();
    assert!(world.is_plain());
    for flow in &mut world.flows {
        if let Ends::Tcp(ends) = &mut flow.ends {
            ends.iter_mut().for_each(&change);
        }
    }
    world.begin();
    let end = world.counters.measured.end;
    world.run_until(end, is_plain).unwrap();
    world.counters.finish_handshakes(&world.flows);
    world.rows(&layout)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn both_event_loops_give_the_same_rows(scenario in networks()) {
        prop_assert_eq!(rows_of(&scenario, true), rows_of(&scenario, false));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn the_common_path_gives_the_rows_of_the_general_path(scenario in networks()) {
        let general = rows_of_changed(&scenario, true, Connection::leave_common_path);
        prop_assert_eq!(rows_of(&scenario, true), general);
    }
}
