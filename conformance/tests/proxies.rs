//! Flows through proxies: what the equations say, and what the packets do.

use gridhaul_model::{Model, PaperModel};
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, Quiet};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

/// A file of 29 MB over two hops of 100 Mbit/s and 50 ms (round trip) with one unit between them.
fn line(mode: &str, loss: [f64; 2]) -> Scenario {
    let text = format!(
        r#"
title = "line"
duration = "600 s"
repeat = 4
[node]
source = {{}}
sink = {{}}
unit.proxy = {{ mode = "{mode}", buffer = "64 MiB" }}
[link.near]
from = "source"
to = "unit"
forward = {{ rate = "100 Mbit/s", delay = "25 ms", queue = "1000 packets", loss.bernoulli = "{} %" }}
backward = {{ rate = "100 Mbit/s", delay = "25 ms" }}
[link.far]
from = "unit"
to = "sink"
forward = {{ rate = "100 Mbit/s", delay = "25 ms", queue = "1000 packets", loss.bernoulli = "{} %" }}
backward = {{ rate = "100 Mbit/s", delay = "25 ms" }}
[stack.reno]
profile = "ns2"
variant = "reno"
handshake = false
receive_window = "30000 segments"
[flow.file]
from = "source"
to = "sink"
stack = "reno"
load.transfer.size = "29 MB"
"#,
        loss[0], loss[1]
    );
    Scenario::from_toml(&text, "line.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn rate(backend: &dyn Backend, scenario: &Scenario) -> f64 {
    let answer: Answer = backend.run(scenario, &Quiet).unwrap_or_else(|error| panic!("{error}"));
    answer.points[0].flows[0].mean(Metric::TransferRate).unwrap()
}

#[test]
fn a_hop_that_decides_gives_the_chain_its_rate() {
    // Loss on one hop only, so that it alone decides: equation 3 of paper `plc` without the chance
    // which of the hops is the slowest at each moment.
    for loss in [[0.0, 0.5], [0.5, 0.0]] {
        for (mode, round_trip) in [("none", 1.0), ("split", 2.0), ("reflect", 2.0)] {
            let scenario = line(mode, loss);
            let sim = rate(&Sim::default(), &scenario);
            let by = |backend: &dyn Backend| sim / rate(backend, &scenario);
            let (paper, model) = (by(&PaperModel), by(&Model));
            assert!((0.88..1.02).contains(&paper), "{mode} {loss:?}: {paper}");
            assert!((0.92..1.06).contains(&model), "{mode} {loss:?}: {model}");
            // And the equation itself: 12,000 · 1460 / 1500 bit / (RTT √(2 p / 3)).
            let root = (2.0 * 0.005 / 3.0_f64).sqrt();
            let by_hand = 11_680.0 * round_trip / (0.1 * root) * 0.995;
            let said = rate(&PaperModel, &scenario);
            assert!((said / by_hand - 1.0).abs() < 1e-3, "{said} {by_hand}");
        }
    }
}
