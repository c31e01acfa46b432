//! Messages through aggregators, compared with values by hand and of the simulator.

use gridhaul_model::Model;
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

fn answer(text: &str) -> Answer {
    let scenario =
        Scenario::from_toml(text, "aggregators.toml").unwrap_or_else(|error| panic!("{error}"));
    Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

fn warns(answer: &Answer, about: &str) -> bool {
    answer.warnings.iter().any(|warning| warning.message.contains(about))
}

/// 114 messages/s arrive at a buffer for 100 messages. A lost segment upstream stops the connection
/// for a round trip of 0.22 s and a timer of 1 s, in which 139 messages arrive. With a loss of
/// 0.02, 0.05 and 0.1 %, the meters lose 0.053, 0.142 and 0.268 of their segments in the simulator.
#[test]
fn rare_losses_upstream_overflow_a_buffer() {
    let with_loss = |loss: &str| {
        answer(&format!(
            "title = \"buffer\"\nduration = \"500 s\"\n[node]\nmeter = {{ count = 200 }}\n\
             head = {{}}\n[node.c]\n\
             aggregator = {{ buffer = \"100 messages\", when_full = \"drop\" }}\n\
             [link.access]\nfrom = \"meter\"\nto = \"c\"\n\
             both = {{ rate = \"1 Mbit/s\", delay = \"14 ms\" }}\n\
             [link.wan]\nfrom = \"c\"\nto = \"head\"\nshared = true\n\
             reverse = {{ rate = \"1 Mbit/s\", delay = \"133 ms\" }}\n\
             forward = {{ rate = \"1 Mbit/s\", delay = \"89 ms\"{loss} }}\n\
             [stack.s]\nprofile = \"rfc\"\ncongestion_control = \"sack\"\nmss = \"50 B\"\n\
             [flow.f]\nfrom = \"meter\"\nto = \"head\"\nstack = \"s\"\n\
             load.poisson = {{ size = \"50 B\", every = \"1760 ms\" }}\n"
        ))
    };
    let marked = "messages arrive while the upstream connection waits";
    for loss in ["0.02 %", "0.05 %", "0.1 %", "0.11 %"] {
        let text = format!(", loss.bernoulli = \"{loss}\"");
        assert!(warns(&with_loss(&text), marked), "{loss}");
    }
    assert!(!warns(&with_loss(""), marked));
}
