//! The loss ratios of links that lose packets.

use gridhaul_model::Model;
use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// Readings over two links, of which the first one loses `near` of the packets and the second one
/// `far`.
fn loss_ratios(near: &str, far: &str) -> [f64; 2] {
    let text = format!(
        "title = \"loss\"\nduration = \"4000 s\"\n\
         [node]\nmeter = {{ count = 100 }}\nrouter = {{}}\nhead = {{}}\n\
         [link.near]\nfrom = \"meter\"\nto = \"router\"\nshared = true\n\
         forward = {{ rate = \"1 Mbit/s\", delay = \"10 ms\", queue = \"100 packets\", \
         loss.bernoulli = \"{near}\" }}\nreverse = {{ rate = \"1 Mbit/s\", delay = \"10 ms\" }}\n\
         [link.far]\nfrom = \"router\"\nto = \"head\"\n\
         forward = {{ rate = \"1 Mbit/s\", delay = \"10 ms\", queue = \"100 packets\", \
         corrupt = \"{far}\" }}\nreverse = {{ rate = \"1 Mbit/s\", delay = \"10 ms\" }}\n\
         [stack.s]\nprofile = \"ns2\"\n[flow.f]\nfrom = \"meter\"\nto = \"head\"\nstack = \"s\"\n\
         load.poisson = {{ size = \"200 B\", every = \"30 s\" }}\n"
    );
    let scenario =
        Scenario::from_toml(&text, "loss.toml").unwrap_or_else(|error| panic!("{error}"));
    let answer =
        Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"));
    let links = &answer.points[0].links;
    ["near.forward", "far.forward"].map(|name| {
        let row = links.iter().find(|row| row.name == name).unwrap();
        row.mean(Metric::LossRatio).unwrap()
    })
}

/// The queues drop nothing, so that the ratios are those of the links.
#[test]
fn packets_that_a_link_loses_are_part_of_its_loss_ratio() {
    for (near, far, expected) in [
        ("5 %", "0 %", [0.05, 0.0]),
        ("0 %", "5 %", [0.0, 0.05]),
        ("2 %", "10 %", [0.02, 0.1]),
        ("100 %", "0 %", [1.0, 0.0]),
    ] {
        let ratios = loss_ratios(near, far);
        for (ratio, expected) in ratios.into_iter().zip(expected) {
            assert!((ratio - expected).abs() < 1e-6, "{near}, {far}: {ratios:?}");
        }
    }
}
