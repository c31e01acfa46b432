//! An agent in another network namespace, with a clock that has known errors. The clocks are
//! compared over a link of their own, so that one-way latencies of an asymmetric path are known.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gridhaul_emu::StandaloneNetwork;
use gridhaul_linux::Clock;
use gridhaul_measure::agent::{
    Agent, AgentAddress, AgentClock, AgentKey, Controller, ListeningPublisher, RemoteLogs,
    RemoteOutcome, SILENCE, Token, connect_ends, measure_with_agent,
};
use gridhaul_measure::clock::InjectedClock;
use gridhaul_measure::method::{Schedule, findings};
use gridhaul_measure::transfer::Plan;
use gridhaul_protocols::control_channel::{ReceiverProtocol, ReceiverSpec};
use gridhaul_protocols::settings::ReconnectPolicy;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;

use crate::{TOKEN, turn};

const RUN: u32 = 0x6167_656e;

pub(crate) const SCENARIO: &str = r#"
title = "a link for the control channel and a link under test"
duration = "60 s"
[node]
here = {}
there = {}
[link.control]
from = "here"
to = "there"
both = { rate = "100 Mbit/s", queue = "1000 packets", delay = "100 us" }
[link.test]
from = "here"
to = "there"
forward = { rate = "100 Mbit/s", queue = "1000 packets", delay = "30 ms" }
reverse = { rate = "100 Mbit/s", queue = "1000 packets", delay = "10 ms" }
[flow]
control = { from = "here", to = "there", load = "bulk", route = ["control"], reverse_route = ["control"] }
test = { from = "here", to = "there", load = "bulk", route = ["test"], reverse_route = ["test"] }
"#;

/// A run over the test link; the control channel uses `control`, a flow of the scenario.
fn run(network: &StandaloneNetwork, control: &str) -> RemoteOutcome {
    let token = || Token::new(TOKEN, "test".into()).unwrap();
    let to = |flow: &str| network.ends(flow).unwrap()[1].1;
    let (clock, stop) = (Clock::starts_in(Duration::ZERO), AtomicBool::new(false));
    let injected = Some(InjectedClock { offset: -5_000_000_000, drift: 80e-6, step: None });
    let (key, clock_there) = (AgentKey::generate().unwrap(), AgentClock { clock, injected });
    let listen = SocketAddr::new(to(control), 0);
    let bind = || Agent::bind(listen, token(), &key, clock_there).unwrap();
    let agent = network.enter("there", bind).unwrap();
    let (address, fingerprint) = (agent.address().unwrap(), agent.fingerprint());
    let agent_address = AgentAddress { address, fingerprint, token: token() };
    let protocol = ReceiverProtocol::Udp { echo: true };
    let spec = ReceiverSpec { run: RUN, address: Some(to("test")), protocol, silence: SILENCE };
    let plan = Plan {
        schedule: Schedule::new(200.0, 300),
        bytes: 132,
        horizon: Duration::from_secs(1),
        processor: None,
        run: RUN,
        capture: None,
    };
    let measure = || {
        let mut controller = Controller::connect(&agent_address).unwrap();
        let started = controller.start(&spec).unwrap();
        let (listening, policy) = (ListeningPublisher::default(), ReconnectPolicy::default());
        let ends = connect_ends(&spec, &started, listening, clock, true, policy).unwrap();
        let logs = RemoteLogs { one_way: &mut |_| Ok(()), round_trip: &mut |_| Ok(()) };
        measure_with_agent(&plan, &mut controller, ends, clock, logs, &|_| {}, &stop)
    };
    thread::scope(|scope| {
        scope.spawn(|| network.run(clock, || stop.load(Ordering::Relaxed)).unwrap());
        let serve = scope.spawn(|| network.enter("there", || agent.run(&stop, &|_| {})));
        let outcome = network.enter("here", measure);
        stop.store(true, Ordering::Relaxed);
        serve.join().unwrap().unwrap();
        outcome.unwrap()
    })
}

pub(crate) fn network(scenario: &str) -> Option<StandaloneNetwork> {
    let scenario = Scenario::from_toml(scenario, "two-links.toml").unwrap();
    match StandaloneNetwork::unnamed(&scenario) {
        Ok(network) => Some(network),
        Err(error) => {
            let _ = gridhaul_testing::has_tool(false, &error.to_string());
            None
        }
    }
}

fn median(distribution: &gridhaul_measure::method::Distribution) -> f64 {
    distribution.quantile(0.5).unwrap().value.as_secs_f64() * 1e3
}

#[test]
fn one_way_latencies_are_those_of_the_link_where_the_clock_error_supports_them() {
    let _turn = turn();
    let Some(network) = network(SCENARIO) else { return };
    // Other programs delay messages and exchanges: a run on a busy machine is repeated.
    let mut last = run(&network, "control");
    for _ in 0..4 {
        let summary = &last.outcome.summary;
        if findings(summary).is_empty() && median(&summary.from_send) < 33.0 {
            break;
        }
        last = run(&network, "control");
    }
    let RemoteOutcome { outcome, bounds, round_trip, clock, .. } = last;
    assert_eq!((outcome.fault, outcome.summary.counts.lost), (None, 0));
    let (one_way, clock) = (median(&outcome.summary.from_send), clock.unwrap());
    let error = clock.error.unwrap().as_secs_f64() * 1e3;
    let supported = outcome.summary.from_send.quantile(0.5).map(|quantile| quantile.value);
    assert_eq!(clock.supports_one_way(supported), Ok(()), "{clock:?}");
    // The delay of the link, within the stated error.
    assert!((30.0 - error..33.0 + error).contains(&one_way), "{one_way} +- {error}");
    let [low, high] = [&bounds.from_send, &bounds.from_schedule].map(median);
    assert!(low <= one_way && one_way <= high && high >= 30.0, "{low} {one_way} {high}");
    assert!(median(&round_trip.unwrap().from_send) >= 40.0);
    let drift = clock.drift_bounds.unwrap();
    assert!(drift.min <= 80e-6 && 80e-6 <= drift.max, "{drift:?}");
}

#[test]
fn over_the_asymmetric_path_itself_only_bounds_are_known() {
    let _turn = turn();
    let Some(network) = network(SCENARIO) else { return };
    let RemoteOutcome { outcome, bounds, round_trip, clock, .. } = run(&network, "test");
    assert_eq!((outcome.fault, outcome.summary.counts.lost), (None, 0));
    let supported = outcome.summary.from_send.quantile(0.5).map(|quantile| quantile.value);
    assert!(clock.unwrap().supports_one_way(supported).is_err());
    // Whatever the load of the machine: no message is faster than the link, and the bounds contain
    // the truth.
    let [low, high] = [&bounds.from_send, &bounds.from_schedule].map(median);
    let returned = median(&round_trip.unwrap().from_send);
    assert!(low < high && high >= 30.0 && returned >= 40.0, "{low} {high} {returned}");
    assert!(low <= returned - 10.0, "{low} {returned}");
}
