//! Delay of messages after losses on the connections of aggregators: the analytical model compared
//! with the simulation.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

fn answer(backend: &dyn Backend, scenario: &Scenario) -> Answer {
    backend.run(scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

/// A lost segment delays the messages that follow on the connection of its aggregator, so that the
/// 98th percentile depends on the loss although fewer than 2 % of the segments are lost.
#[test]
fn losses_upstream_delay_the_messages_that_follow() {
    for (aggregators, loss, delay_ms) in
        [(3, 1.0, 100), (3, 0.3, 100), (10, 1.5, 100), (3, 1.0, 300)]
    {
        let scenario = few_messages(aggregators, loss, delay_ms);
        let model = answer(&Model::REFINED, &scenario);
        let simulated = answer(&Sim::default(), &scenario);
        let [modelled, simulated] = [&model, &simulated]
            .map(|answer| answer.points[0].flows[0].mean(Metric::DelayP98).unwrap());
        let mut warnings = model.warnings.iter();
        let marked =
            warnings.any(|warning| warning.message.contains("outside the range of the equations"));
        let is_near = (0.85..1.15).contains(&(modelled / simulated));
        let case = format!("{aggregators} aggregators, {loss} %, {delay_ms} ms");
        assert!(marked || is_near, "{case}: {modelled} {simulated}");
    }
}

/// 300 meters that send 10 messages/s through aggregators, with little data in flight.
fn few_messages(aggregators: u32, loss: f64, delay_ms: u32) -> Scenario {
    let text = format!(
        r#"
title = "few messages"
duration = "1200 s"
warmup = "300 s"
replications = 2
[node]
meter = {{ count = 300 }}
centre = {{}}
[node.agg]
count = {aggregators}
aggregator = {{ buffer = "100 messages", stack = "up", when_full = "drop" }}
[link.plc]
from = "meter"
to = "agg"
both = {{ rate = "32 kbit/s", delay = "50 ms", queue = "20 packets" }}
[link.wan]
from = "agg"
to = "centre"
shared = true
both = {{ rate = "128 kbit/s", delay = "{delay_ms} ms", queue = "40 packets", loss.bernoulli = "{loss} %" }}
[stack.m]
profile = "ns2"
congestion_control = "reno"
mss = "400 B"
receive_window = "2 segments"
[stack.up]
profile = "ns2"
congestion_control = "new_reno"
mss = "400 B"
receive_window = "32 segments"
[flow.f]
from = "meter"
to = "centre"
stack = "m"
load.poisson = {{ size = "400 B", every = "30 s" }}
"#
    );
    Scenario::from_toml(&text, "few.toml").unwrap_or_else(|error| panic!("{error}"))
}
