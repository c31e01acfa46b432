//! Links of simulations, estimated from their captures.

use gridhaul_capture::{Estimate, LinkEstimate};

use crate::support::{Numbers, connection, simulate};

/// A link with its known values.
struct Known {
    rate: f64,
    round_trip: f64,
    loss: f64,
    scenario: String,
}

fn known(seed: u64) -> Known {
    let mut numbers = Numbers(seed);
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
