//! Messages through aggregators, compared with values by hand and of the simulator.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
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

/// 40 meters with 50 B in 60 s behind four aggregators. A segment of 102 B takes 0.8 ms and 40.8
/// ms, besides 5 and 50 ms: 96.6 ms, and a full one would take 0.6 s. In the round trip of 0.16 s,
/// 2.7 % of the messages find an earlier one unacknowledged, for which Nagle's algorithm delays
/// them by 80 ms in the mean. The simulator has 99.1 ms, 140 ms (98th percentile) and 544 bit/s.
#[test]
fn short_messages_are_segments_of_their_own() {
    let answer = answer(
        "title = \"short\"\nduration = \"3000 s\"\n[node]\nmeter = { count = 40 }\nhead = {}\n\
         [node.agg]\ncount = 4\naggregator = { buffer = \"100 messages\" }\n\
         [link.acc]\nfrom = \"meter\"\nto = \"agg\"\n\
         both = { rate = \"1 Mbit/s\", delay = \"5 ms\" }\n\
         [link.wan]\nfrom = \"agg\"\nto = \"head\"\nshared = true\n\
         both = { rate = \"20 kbit/s\", delay = \"50 ms\" }\n\
         [flow.f]\nfrom = \"meter\"\nto = \"head\"\n\
         load.poisson = { size = \"50 B\", every = \"60 s\" }\n",
    );
    let point = &answer.points[0];
    let mean_s = point.flows[0].mean(Metric::DelayMean).unwrap();
    assert!((mean_s - 0.0991).abs() < 0.002, "{mean_s}");
    let percentile_s = point.flows[0].mean(Metric::DelayP98).unwrap();
    assert!((0.12..0.18).contains(&percentile_s), "{percentile_s}");
    let wan = point.links.iter().find(|row| row.name == "wan.forward").unwrap();
    // 40 messages of 102 B in 60 s.
    let throughput = wan.mean(Metric::LinkThroughput).unwrap();
    assert!((throughput - 544.0).abs() < 1.0, "{throughput}");
}

/// Above the capacity of the line for segments of one message, segments contain several: 200
/// messages/s of 50 B need 163 kbit/s alone, and 83 kbit/s in segments of 1,448 B.
#[test]
fn messages_that_wait_share_segments() {
    let answer = answer(
        "title = \"full\"\nduration = \"300 s\"\n[node]\nmeter = { count = 200 }\nhead = {}\n\
         agg = { aggregator = { buffer = \"1000 messages\" } }\n\
         [link.acc]\nfrom = \"meter\"\nto = \"agg\"\n\
         both = { rate = \"1 Mbit/s\", delay = \"5 ms\" }\n\
         [link.wan]\nfrom = \"agg\"\nto = \"head\"\n\
         both = { rate = \"100 kbit/s\", delay = \"50 ms\" }\n\
         [stack.s]\nmss = \"1448 B\"\n[flow.f]\nfrom = \"meter\"\nto = \"head\"\nstack = \"s\"\n\
         load.poisson = { size = \"50 B\", every = \"1 s\" }\n",
    );
    let point = &answer.points[0];
    let wan = point.links.iter().find(|row| row.name == "wan.forward").unwrap();
    let used = wan.mean(Metric::Utilisation).unwrap();
    assert!((0.82..0.9).contains(&used), "{used}");
    let goodput = point.flows[0].mean(Metric::Goodput).unwrap();
    assert!((goodput / 80e3 - 1.0).abs() < 0.01, "{goodput}");
}

/// 49 messages in 100 s at each aggregator of profile `ns2`, and a round trip of 115 ms upstream,
/// whose window begins with one segment after a silence of 0.2 s and the round trip. Of the
/// messages, exp(-0.49 * 0.315) = 86 % follow such a silence, and 0.49 * 0.115 = 5.6 % of as many
/// arrive until the acknowledgement: 4.9 % wait for up to 115 ms, and 2 % longer than 115 (1 - 2 /
/// 4.9) = 68 ms, which is added to 48.6 ms. The simulator has 118 ms, with an interval of 23 ms.
#[test]
fn a_restarted_window_upstream_delays_messages() {
    let with = |restart: bool, size: u32, every: &str| {
        answer(&format!(
            "title = \"restart\"\nduration = \"304 s\"\n[node]\nmeter = {{ count = 50 }}\n\
             head = {{}}\n[node.c]\ncount = 5\n\
             aggregator = {{ buffer = \"100 messages\", when_full = \"drop\" }}\n\
             [link.access]\nfrom = \"meter\"\nto = \"c\"\n\
             both = {{ rate = \"1 Mbit/s\", delay = \"14 ms\" }}\n\
             [link.wan]\nfrom = \"c\"\nto = \"head\"\nshared = true\n\
             forward = {{ rate = \"256 kbit/s\", delay = \"25 ms\", queue = \"200 packets\" }}\n\
             reverse = {{ rate = \"256 kbit/s\", delay = \"81 ms\" }}\n\
             [stack.s]\nprofile = \"ns2\"\ncongestion_control = \"cubic\"\nmss = \"200 B\"\n\
             restart_after_idle = {restart}\n\
             [flow.f]\nfrom = \"meter\"\nto = \"head\"\nstack = \"s\"\n\
             load.poisson = {{ size = \"{size} B\", every = \"{every}\" }}\n"
        ))
    };
    let percentile_s = |answer: &Answer| answer.points[0].flows[0].mean(Metric::DelayP98).unwrap();
    let restarting = with(true, 200, "20312 ms");
    let marked = "restarts from one segment";
    assert!((percentile_s(&restarting) - 0.116).abs() < 0.003, "{}", percentile_s(&restarting));
    assert!(!warns(&restarting, marked));
    let steady = with(false, 200, "20312 ms");
    assert!((percentile_s(&steady) - 0.049).abs() < 0.002, "{}", percentile_s(&steady));
    // Messages of two segments wait for the window to grow.
    assert!(warns(&with(true, 400, "20312 ms"), marked));
    assert!(!warns(&with(false, 400, "20312 ms"), marked));
}

/// Two flows through the same aggregators, whose messages share a segment size: 10 of 50 B and one
/// of 1,000 B in 60 s, which are 1 kB more in 11 messages.
#[test]
fn segments_have_the_mean_size_of_different_messages() {
    let answer = answer(
        "title = \"mixed\"\nduration = \"3000 s\"\n[node]\nmeter = { count = 40 }\nhead = {}\n\
         agg = { aggregator = { buffer = \"100 kB\" } }\n\
         [link.acc]\nfrom = \"meter\"\nto = \"agg\"\n\
         both = { rate = \"1 Mbit/s\", delay = \"5 ms\" }\n\
         [link.wan]\nfrom = \"agg\"\nto = \"head\"\n\
         both = { rate = \"200 kbit/s\", delay = \"5 ms\" }\n\
         [stack.s]\nnagle = false\n\
         [flow.short]\nfrom = \"meter\"\nto = \"head\"\nstack = \"s\"\n\
         load.poisson = { size = \"50 B\", every = \"60 s\" }\n\
         [flow.long]\nfrom = \"meter\"\nto = \"head\"\nstack = \"s\"\n\
         load.poisson = { size = \"1000 B\", every = \"600 s\" }\n",
    );
    let wan = answer.points[0].links.iter().find(|row| row.name == "wan.forward").unwrap();
    // 40 * (102 B / 60 s + 1,052 B / 600 s).
    let by_hand = 40.0 * 8.0 * (102.0 / 60.0 + 1_052.0 / 600.0);
    let throughput = wan.mean(Metric::LinkThroughput).unwrap();
    assert!((throughput / by_hand - 1.0).abs() < 0.01, "{throughput} {by_hand}");
}

/// Profile `ns2` with Vegas, whose timer runs on during a silence. The simulator retransmits none
/// of the messages, the chain 3 %.
#[test]
fn periodic_messages_with_a_running_timer_have_a_warning() {
    let with = |load: &str| {
        answer(&format!(
            "title = \"timer\"\nduration = \"166 s\"\n[node]\nmeter = {{ count = 200 }}\n\
             conc = {{}}\nhead = {{}}\n[link.acc]\nfrom = \"meter\"\nto = \"conc\"\n\
             both = {{ rate = \"1 Mbit/s\", delay = \"9 ms\" }}\n\
             [link.wan]\nfrom = \"conc\"\nto = \"head\"\nshared = true\n\
             forward = {{ rate = \"1 Mbit/s\", delay = \"29 ms\", queue = \"200 packets\" }}\n\
             reverse = {{ rate = \"1 Mbit/s\", delay = \"20 ms\" }}\n\
             [stack.s]\nprofile = \"ns2\"\ncongestion_control = \"vegas\"\n\
             [flow.f]\nfrom = \"meter\"\nto = \"head\"\nstack = \"s\"\n\
             load.{load} = {{ size = \"50 B\", every = \"8800 ms\" }}\n"
        ))
    };
    let marked = "runs on during silences";
    assert!(warns(&with("periodic"), marked));
    assert!(!warns(&with("poisson"), marked));
}
