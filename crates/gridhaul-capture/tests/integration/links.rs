//! Links of simulations, estimated from their captures.

use gridhaul_capture::{Estimate, LinkEstimate, Position};
use gridhaul_testing::Numbers;

use crate::handshake::without_first;
use crate::support::{captures, connection, explained, simulate};

/// A link with its known values.
struct Known {
    rate: f64,
    round_trip: f64,
    loss: f64,
    scenario: String,
}

fn known(seed: u64) -> Known {
    let mut numbers = Numbers::new(seed);
    let rate = numbers.scale(0.3e6, 10e6).round();
    let delay_us = numbers.scale(2e3, 80e3).round();
    let loss = (numbers.scale(0.002, 0.03) * 1e5).round() / 1e5;
    let scenario = format!(
        "title = 'link'\nduration = '20 s'\nwarmup = '0 s'\nreplications = 1\nseed = {seed}\n\
         record = {{ pcap = ['access'] }}\n\
         [node]\na = {{}}\nm = {{}}\nb = {{}}\n\
         [link.access]\nfrom = 'a'\nto = 'm'\nboth = {{ rate = '10000 Gbit/s', queue = '10000 \
         packets' }}\n\
         [link.line]\nfrom = 'm'\nto = 'b'\n\
         forward = {{ rate = '{rate} bit/s', delay = '{delay_us} us', queue = '1000 packets', \
         loss = {{ bernoulli = '{} %' }} }}\n\
         reverse = {{ rate = '{rate} bit/s', delay = '{delay_us} us', queue = '1000 packets' }}\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n",
        loss * 100.0
    );
    Known { rate, round_trip: 2e-6 * delay_us, loss, scenario }
}

fn runs() -> std::ops::Range<u64> {
    let Ok(range) = std::env::var("GRIDHAUL_LINKS") else { return 5_000..5_020 };
    let (first, end) = range.split_once("..").unwrap();
    first.parse().unwrap()..end.parse().unwrap()
}

/// Values that are outside of their interval or unknown, as texts.
fn missed(known: &Known, link: &LinkEstimate) -> Vec<String> {
    let check = |name: &str, truth: f64, estimate: Option<Estimate>| match estimate {
        Some(estimate) if estimate.interval.contains(truth) => None,
        other => Some(format!("{name} {truth}: {other:?}")),
    };
    let checks = [
        check("rate", known.rate, link.rate_bit_per_s),
        check("round trip", known.round_trip, link.round_trip_s),
        check("loss", known.loss, link.loss),
    ];
    checks.into_iter().flatten().collect()
}

#[test]
fn known_links_are_found_within_their_intervals() {
    let mut failures = Vec::new();
    let count = runs().count();
    for seed in runs() {
        let known = known(seed);
        let found = connection(&simulate(&known.scenario), &["access"]);
        let missed = missed(&known, &found.link);
        if !missed.is_empty() {
            failures.push(format!("seed {seed}: {}\n{}", missed.join("; "), found.details()));
        }
    }
    println!("{} of {count} links found\n{}", count - failures.len(), failures.join("\n"));
    assert!(failures.len() * 20 <= count, "{}", failures.join("\n"));
}

/// A line of 40 ms in each direction between two fast networks, which are captured.
fn line(rate: &str, flow: &str) -> String {
    format!(
        "title = 'line'\nduration = '10 s'\nwarmup = '0 s'\nreplications = 1\n\
         record = {{ pcap = ['access', 'middle', 'exit'] }}\n\
         [node]\na = {{}}\nm = {{}}\nn = {{}}\nb = {{}}\n\
         [link.access]\nfrom = 'a'\nto = 'm'\nboth = {{ rate = '{rate}' }}\n\
         [link.middle]\nfrom = 'm'\nto = 'n'\nboth = {{ rate = '1 Gbit/s', delay = '40 ms' }}\n\
         [link.exit]\nfrom = 'n'\nto = 'b'\nboth = {{ rate = '1 Gbit/s' }}\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\n{flow}\n"
    )
}

fn contains(estimate: Option<Estimate>, truth: f64) -> bool {
    estimate.is_some_and(|estimate| estimate.interval.contains(truth))
}

/// The bottleneck is ahead of both points: data has left it, and the handshake alone has passed it.
#[test]
fn the_delay_behind_the_bottleneck_is_that_of_the_handshake() {
    for rate in ["2 Mbit/s", "200 kbit/s"] {
        let answer = simulate(&line(rate, "load = 'bulk'"));
        for point in ["middle", "exit"] {
            let found = connection(&answer, &[point]);
            let link = &found.link;
            assert!(found.position != Position::Sender, "{}", found.details());
            assert!(contains(link.round_trip_s, 0.08), "{rate} at {point}: {link:?}");
            let value = link.round_trip_s.unwrap().value;
            assert!((0.0795..0.086).contains(&value), "{rate} at {point}: {value}");
        }
    }
    let found = connection(&simulate(&line("2 Mbit/s", "load = 'bulk'")), &["exit"]);
    assert!(contains(found.link.rate_bit_per_s, 2e6), "{}", found.details());
}

#[test]
fn messages_of_one_segment_do_not_show_the_rate_at_the_receiver() {
    let window = "load = 'bulk'\nstack = 't'\n[stack.t]\nreceive_window = '1460 B'";
    let messages = "load = { periodic = { size = '1460 B', every = '100 ms' } }";
    for flow in [messages, window] {
        let found = connection(&simulate(&line("10 Mbit/s", flow)), &["exit"]);
        assert_eq!(found.link.rate_bit_per_s, None, "{}", found.details());
        assert!(contains(found.link.round_trip_s, 0.08), "{}", found.details());
    }
}

#[test]
fn without_the_handshake_the_delay_of_the_whole_path_is_unknown() {
    let answer = simulate(&line("2 Mbit/s", "load = 'bulk'"));
    for point in ["middle", "exit"] {
        let files = captures(&answer, &[point]);
        let files = files.iter().map(|file| without_first(file, 4)).collect();
        let found = explained(files).connections.swap_remove(0);
        assert_eq!(found.position, Position::Unknown);
        assert_eq!(found.link.round_trip_s, None, "{}", found.details());
    }
}

/// Messages of 200 B every 10 s do not fill a line of 20 kbit/s, so that its rate is unknown: the
/// round trip of the handshake contains 42 ms of transmissions.
#[test]
fn transmission_times_count_as_delay_only_if_no_rate_is_known() {
    let scenario = "title = 'slow'\nduration = '100 s'\nwarmup = '0 s'\nreplications = 1\n\
                    record = { pcap = ['lan'] }\n\
                    [node]\na = {}\nm = {}\nb = {}\n\
                    [link.lan]\nfrom = 'a'\nto = 'm'\nboth = { rate = '1 Gbit/s' }\n\
                    [link.line]\nfrom = 'm'\nto = 'b'\n\
                    both = { rate = '20 kbit/s', delay = '100 ms' }\n\
                    [flow.f]\nfrom = 'a'\nto = 'b'\n\
                    load.periodic = { size = '200 B', every = '10 s' }\n";
    let found = connection(&simulate(scenario), &["lan"]);
    assert_eq!(found.link.rate_bit_per_s, None, "{}", found.details());
    let trip = found.link.round_trip_s.unwrap();
    assert!((trip.value - 0.2416).abs() < 1e-4, "{trip:?}");
    assert!(trip.interval.contains(0.2) && trip.interval.low > 0.15, "{trip:?}");
    assert!(found.details().contains("%), with transmission times"), "{}", found.details());
    // The simulator transmits SYN with 52 B and captures it with its options, 60 B.
    let known = found.round_trip_at(20_000.0).unwrap();
    assert!(known.interval.contains(0.2) && (known.value - 0.2).abs() < 0.0065, "{known:?}");
}
