//! Delays of messages with managed connections, compared with values of the simulator.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// Devices with one-way delays of 300 ms and profile `linux`.
fn answer(devices: u32, rate: &str, flow: &str) -> Answer {
    let text = format!(
        "title = \"connections\"\nduration = \"4000 s\"\n[node]\na = {{ count = {devices} }}\n\
         b = {{}}\n[link.l]\nshared = true\nfrom = \"a\"\nto = \"b\"\n\
         both = {{ rate = \"{rate}\", delay = \"300 ms\", queue = \"1000 packets\" }}\n\
         [stack.s]\nprofile = \"linux\"\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\nstack = \"s\"\n{flow}\n"
    );
    let scenario =
        Scenario::from_toml(&text, "connections.toml").unwrap_or_else(|error| panic!("{error}"));
    Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
}

fn delay_s(answer: &Answer) -> Option<f64> {
    answer.points[0].flows[0].mean(Metric::DelayMean)
}

fn warns(answer: &Answer, about: &str) -> bool {
    answer.warnings.iter().any(|warning| warning.message.contains(about))
}

/// A device is occupied for 1.2 s by each message. The simulator has 1.447 s and 1.083 s, and
/// 0.900 s without other messages.
#[test]
fn messages_wait_for_the_connections_of_earlier_ones() {
    let poisson = |every: &str| {
        let load = format!("load.poisson = {{ size = \"200 B\", every = \"{every}\" }}");
        answer(1, "10 Mbit/s", &format!("{load}\nconnection = \"per_message\""))
    };
    for (every, simulated_s) in [("2.5 s", 1.447), ("5 s", 1.083), ("20 s", 0.939)] {
        let delay_s = delay_s(&poisson(every)).unwrap();
        assert!((delay_s / simulated_s - 1.0).abs() < 0.01, "{every}: {delay_s}");
    }
}

/// The simulator has a goodput of 1,333 bit/s of 1,600 bit/s, and delays of minutes.
#[test]
fn connections_that_take_longer_than_the_messages_have_no_delay() {
    let periodic = |every: &str| {
        let load = format!("load.periodic = {{ size = \"200 B\", every = \"{every}\" }}");
        answer(1, "10 Mbit/s", &format!("{load}\nconnection = \"per_message\""))
    };
    let full = periodic("1 s");
    assert_eq!(delay_s(&full), None);
    assert!(warns(&full, "opens one connection after another"));
    let goodput = full.points[0].flows[0].mean(Metric::Goodput).unwrap();
    assert!((goodput / 1_332.6 - 1.0).abs() < 0.01, "{goodput}");
    assert!((delay_s(&periodic("3 s")).unwrap() - 0.9003).abs() < 1e-3);
}

/// The segments of a message wait for those of other messages together. The simulator has 1.644 s
/// and 1.901 s at a use of 27 % and 45 %, and 1.687 s with ten devices, which also wait for their
/// own connections; independent packets would give 1.50 s and 1.58 s.
#[test]
fn segments_of_a_message_arrive_at_a_queue_together() {
    let poisson = |devices: u32, every: &str| {
        let load = format!("load.poisson = {{ size = \"4000 B\", every = \"{every}\" }}");
        answer(devices, "64 kbit/s", &format!("{load}\nconnection = \"per_message\""))
    };
    for (devices, every, simulated_s) in
        [(100, "200 s", 1.644), (100, "120 s", 1.901), (10, "20 s", 1.687)]
    {
        let answer = poisson(devices, every);
        let delay_s = delay_s(&answer).unwrap();
        assert!((delay_s / simulated_s - 1.0).abs() < 0.04, "{every}: {delay_s}");
        assert!(!warns(&answer, "a link is used for"));
    }
    // Simulated: 3.35 s, and 3.06 s by the equations.
    assert!(warns(&poisson(100, "72.5 s"), "a link is used for"));
}

/// A flow over two links of 20 ms and 100 ms, with segments of 1,448 B.
fn over_two_links(rates: [u32; 2], flow: &str) -> f64 {
    let text = format!(
        "title = \"two links\"\nduration = \"4000 s\"\n[node]\na = {{}}\nb = {{}}\nc = {{}}\n\
         [link.access]\nfrom = \"a\"\nto = \"b\"\n\
         both = {{ rate = \"{} kbit/s\", delay = \"20 ms\" }}\n\
         [link.wan]\nfrom = \"b\"\nto = \"c\"\n\
         both = {{ rate = \"{} kbit/s\", delay = \"100 ms\" }}\n\
         [stack.s]\nmss = \"1448 B\"\n\
         [flow.f]\nfrom = \"a\"\nto = \"c\"\nstack = \"s\"\n{flow}\n",
        rates[0], rates[1]
    );
    let scenario =
        Scenario::from_toml(&text, "links.toml").unwrap_or_else(|error| panic!("{error}"));
    let answer = Model::REFINED.run(&scenario, &NoProgress);
    delay_s(&answer.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

/// Packets of 52 B take 8.32 ms at 50 kbit/s and 6.93 ms at 60 kbit/s: SYN and SYN-ACK take
/// 270.5 ms. The ACK of 52 B and the full segment of 1,500 B leave the first link after 8.32 and
/// 240 ms, and the latter occupies the second one for 200 ms. The last segment of 104 B arrives
/// there in the meantime, waits, and takes 13.87 ms: 270.5 + 8.32 + 240 + 200 + 13.87 + 120 ms. At
/// 50 kbit/s twice: 273.28 + 8.32 + 480 + 16.64 + 120 ms. The simulator has 852.7 ms and 898 ms.
#[test]
fn a_short_last_segment_waits_for_a_full_one_on_each_link() {
    let load = "load.periodic = { size = \"1500 B\", every = \"10000 s\" }\n\
                connection = \"per_message\"";
    for (rates, by_hand_s) in [([50, 60], 0.8527), ([50, 50], 0.8982)] {
        let delay_s = over_two_links(rates, load);
        assert!((delay_s - by_hand_s).abs() < 1e-4, "{rates:?}: {delay_s}");
    }
}

/// A message of 2,500 B in segments of 1,000 B with headers of 52 B, in profile `rfc`.
fn delayed_last_segment_s(kbit_per_s: u32) -> f64 {
    let text = format!(
        "title = \"slow line\"\nduration = \"4000 s\"\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = \"a\"\nto = \"b\"\n\
         both = {{ rate = \"{kbit_per_s} kbit/s\", delay = \"50 ms\" }}\n\
         [stack.s]\nprofile = \"rfc\"\nmss = \"1000 B\"\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\nstack = \"s\"\n\
         load.periodic = {{ size = \"2500 B\", every = \"10000 s\" }}\n\
         connection = {{ idle_timeout = \"20000 s\" }}\n"
    );
    let scenario =
        Scenario::from_toml(&text, "line.toml").unwrap_or_else(|error| panic!("{error}"));
    let answer = Model::REFINED.run(&scenario, &NoProgress);
    delay_s(&answer.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

/// A full segment takes 420.8 ms at 20 kbit/s, longer than the timer of 200 ms for its
/// acknowledgement, so that both full ones wait for it. The second one arrives after 891.6 ms, its
/// acknowledgement of 20.8 ms after 1,162.4 ms, and the last segment of 552 B after 1,433.2 ms. At
/// 42 kbit/s a segment takes 200.4 ms: 450.8 + 200 + 59.9 + 155.1 ms. At 64 kbit/s the second one
/// (131.5 ms after the first) is acknowledged at once: 313 + 56.5 + 119 ms. The
/// simulator has 1.433 s, 866 ms and the same.
#[test]
fn each_segment_waits_for_its_acknowledgement_if_it_takes_longer_than_the_timer() {
    for (rate, by_hand_s) in [(20, 1.4332), (42, 0.8658), (64, 0.4885)] {
        let delay_s = delayed_last_segment_s(rate);
        assert!((delay_s - by_hand_s).abs() < 1e-4, "{rate}: {delay_s}");
    }
}

/// In profile `rfc`, 1,452 B at 10 kbit/s take 1.16 s, and the timer after a handshake of 123 ms is
/// the minimum of 1 s. The simulator transmits all data twice: 49.8 bit/s on the link instead of
/// 26.6 bit/s. 900 B (952 B in 0.76 s, and 0.08 s for the header and its acknowledgement) arrive in
/// time.
#[test]
fn a_flight_that_takes_longer_than_the_timer_has_a_warning() {
    let of_size = |bytes: u32| {
        let text = format!(
            "title = \"slow line\"\nduration = \"4000 s\"\n[node]\na = {{}}\nb = {{}}\n\
             [link.l]\nfrom = \"a\"\nto = \"b\"\n\
             both = {{ rate = \"10 kbit/s\", delay = \"20 ms\" }}\n\
             [stack.s]\nprofile = \"rfc\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\nstack = \"s\"\n\
             load.periodic = {{ size = \"{bytes} B\", every = \"500 s\" }}\n\
             connection = \"per_message\"\n"
        );
        let scenario =
            Scenario::from_toml(&text, "line.toml").unwrap_or_else(|error| panic!("{error}"));
        Model::REFINED.run(&scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"))
    };
    assert!(warns(&of_size(1_400), "later than the timer of its sender (1.00 s)"));
    assert!(!warns(&of_size(900), "later than the timer"));
}

/// The meters' model warns of the same load without TLS.
#[test]
fn nagles_algorithm_has_a_warning_with_tls() {
    let load = "load.periodic = { size = \"1000 B\", every = \"14 ms\" }\ntls = {}";
    assert!(warns(&answer(1, "2 Mbit/s", load), "Nagle's algorithm"));
    let rare = "load.periodic = { size = \"1000 B\", every = \"14 s\" }\ntls = {}";
    assert!(!warns(&answer(1, "2 Mbit/s", rare), "Nagle's algorithm"));
}
