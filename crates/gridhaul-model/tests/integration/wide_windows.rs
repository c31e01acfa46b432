//! Messages that need more than the two segments of the chain of a meter.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// Messages of 972 B over 1 Mbit/s and a round trip of 101 ms.
fn answer(senders: u32, every: &str, stack: &str) -> Answer {
    let text = format!(
        "title = \"messages\"\nduration = \"400 s\"\n[node]\n\
         a = {{ count = {senders} }}\nb = {{}}\n\
         [link.l]\nshared = true\nfrom = \"a\"\nto = \"b\"\n\
         reverse = {{ rate = \"10 Mbit/s\", delay = \"1 ms\" }}\n\
         forward = {{ rate = \"1 Mbit/s\", delay = \"100 ms\", queue = \"100 packets\" }}\n\
         [stack.s]\n{stack}\n[flow.f]\nfrom = \"a\"\nto = \"b\"\nstack = \"s\"\n\
         load.poisson = {{ size = \"972 B\", every = \"{every}\" }}\n"
    );
    let scenario =
        Scenario::from_toml(&text, "messages.toml").unwrap_or_else(|error| panic!("{error}"));
    Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

fn warns(answer: &Answer, about: &str) -> bool {
    answer.warnings.iter().any(|warning| warning.message.contains(about))
}

/// Two messages in each round trip of 0.11 s are 141 kbit/s. The simulator carries all of the 777
/// and 484 kbit/s, with mean delays of 0.140 and 0.133 s.
#[test]
fn a_backlog_of_the_window_of_the_equations_is_no_answer() {
    for every in ["10 ms", "16 ms"] {
        let answer = answer(1, every, "");
        let point = &answer.points[0];
        for metric in [Metric::Goodput, Metric::DelayMean, Metric::OfferedLoad] {
            assert_eq!(point.flows[0].mean(metric), None, "{every}");
        }
        assert_eq!(point.links[0].mean(Metric::Utilisation), None, "{every}");
        assert!(warns(&answer, "the largest window of the equations"), "{every}");
        assert!(!warns(&answer, "grows without bound"), "{every}");
    }
}

/// With a receive window of two segments, and with 100 senders of 1.6 Mbit/s, the backlog is real.
#[test]
fn a_backlog_of_the_window_or_the_link_is_an_answer() {
    let window = "receive_window = \"2 segments\"";
    for (senders, every, stack) in [(1, "10 ms", window), (100, "500 ms", "")] {
        let answer = answer(senders, every, stack);
        assert!(!warns(&answer, "the largest window of the equations"), "{every}");
        assert!(warns(&answer, "grows without bound"), "{every}");
        assert!(answer.points[0].flows[0].mean(Metric::Goodput).is_some(), "{every}");
    }
}
