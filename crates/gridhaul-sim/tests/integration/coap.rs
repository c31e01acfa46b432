//! Confirmable messages of CoAP.

use gridhaul_scenario::answer::{Answer, Metric};

use crate::schedulers::{close, mean, run};

const READINGS: &str = include_str!("../../../../scenarios/coap-readings.toml");

/// Two hosts with a link of 1 Mbit/s and 10 ms in each direction.
fn pair(keys: &str, flow: &str) -> Answer {
    run(&format!(
        "title = 'coap'\nduration = '1000 s'\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nboth = {{ rate = '1 Mbit/s', delay = '10 ms', {keys} }}\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\ntransport = 'coap'\n{flow}"
    ))
}

/// The calculation is in the comment of the scenario.
#[test]
fn readings_over_a_lossy_link_are_those_of_the_hand_calculation() {
    let answer = run(READINGS);
    let value = |metric| mean(&answer, "reading", metric);
    let (p, q) = (0.1, 0.05);
    let r: f64 = 1.0 - (1.0 - p) * (1.0 - q);
    let due = value(Metric::MessagesDue);
    close(due, 200.0 * 4.0 * 99.5, 1e-2);
    // 5.1 of 79,600 messages are given up on average, with a standard deviation of 2.3; 0.8 are
    // lost.
    assert!(value(Metric::GivenUp) <= 17.0, "{}", value(Metric::GivenUp));
    close(value(Metric::AcknowledgedRatio), 1.0 - r.powi(5), 2e-4);
    assert!(value(Metric::MessageLoss) < 1e-4);
    let retransmissions = r + r * r + r.powi(3) + r.powi(4);
    // The standard deviation of these means is below 0.6 %.
    close(value(Metric::MessageRetransmissions) / due, retransmissions, 0.03);
    let copies = (1.0 - p) * (1.0 + retransmissions);
    close(value(Metric::DuplicateMessages) / due, copies - 1.0, 0.06);
    close(value(Metric::DelayMean), 0.408_8, 0.03);
    close(value(Metric::ResponseTimeMean), 0.669_8, 0.03);
    close(value(Metric::DelayMedian), 0.097_2, 1e-3);
    close(value(Metric::DeadlineMet), 0.9, 0.01);
    assert_eq!(value(Metric::DtlsHandshakes), 200.0);
    assert!(value(Metric::DtlsHandshakeBytes) >= 200.0 * 360.0);
    // Every message that has ended was answered or given up; a few may be in progress.
    let ended = value(Metric::Acknowledged) + value(Metric::GivenUp);
    assert!(ended <= due && due - ended < 200.0, "{ended} of {due}");
    assert!(value(Metric::Messages) >= value(Metric::Acknowledged));
}

#[test]
fn a_handshake_per_message_adds_its_round_trips_and_bytes() {
    let load = "load.periodic = { size = '100 B', every = '10 s' }\n";
    let per_message = "dtls = { version = '1.2', session = 'per_message' }\n";
    let answer = pair("", &format!("{load}{per_message}"));
    // Six flights of 533 B, and a message of 100 B + 15 B + 29 B, each with 28 B of headers, at
    // 1 Mbit/s; and seven times 10 ms.
    let bytes = 533.0 + 144.0 + 7.0 * 28.0;
    close(mean(&answer, "f", Metric::DelayMean), bytes * 8e-6 + 0.07, 1e-6);
    let handshake = (533.0 + 6.0 * 28.0) * 8e-6 + 0.06;
    close(mean(&answer, "f", Metric::DtlsHandshakeTime), handshake, 1e-6);
    assert_eq!(mean(&answer, "f", Metric::DtlsHandshakes), 100.0);
    assert_eq!(mean(&answer, "f", Metric::DtlsHandshakeBytes), 53_300.0);
    assert_eq!(mean(&answer, "f", Metric::AcknowledgedRatio), 1.0);
    // The `from` end sends flights 1, 3 and 5 of 280 B, and the message.
    let offered = (280.0 + 144.0 + 4.0 * 28.0) * 8.0 / 10.0;
    close(mean(&answer, "f", Metric::OfferedLoad), offered, 1e-6);
    close(mean(&answer, "f", Metric::Goodput), 80.0, 1e-6);
}

#[test]
fn messages_wait_for_the_one_in_progress() {
    // NSTART = 1: one message per round trip of 22.2 ms, while 100 are ready in a second.
    let load = "load.burst = { size = '50 B', at = '1 s', count = 100, gap = '10 ms' }\n";
    let answer = pair("", load);
    let exchange = (93.0 + 34.0) * 8e-6 + 0.02;
    close(mean(&answer, "f", Metric::LastCompletion), 99.0 * exchange + 93.0 * 8e-6 + 0.01, 1e-6);
    assert_eq!(mean(&answer, "f", Metric::Messages), 100.0);
}

#[test]
fn copies_that_the_link_makes_are_answered_and_not_delivered() {
    let load = "load.periodic = { size = '50 B', every = '1 s' }\n";
    let answer = pair("duplicate = '100 %'", load);
    assert_eq!(mean(&answer, "f", Metric::Messages), 1_000.0);
    assert_eq!(mean(&answer, "f", Metric::DuplicateMessages), 1_000.0);
    assert_eq!(mean(&answer, "f", Metric::MessageRetransmissions), 0.0);
    // Each message and its copy have a response, which the link duplicates.
    assert_eq!(mean(&answer, "l.reverse", Metric::PacketsIn), 2_000.0);
}

#[test]
fn messages_of_several_fragments_are_retransmitted_as_a_whole() {
    let load = "load.periodic = { size = '3000 B', every = '10 s' }\n";
    let answer = pair("mtu = '1280 B', loss.bernoulli = '10 %'", load);
    assert!(mean(&answer, "f", Metric::Messages) >= 90.0);
    let sent = 100.0 + mean(&answer, "f", Metric::MessageRetransmissions);
    // 3,015 B + 8 B of UDP in fragments of 1,256 B.
    assert_eq!(mean(&answer, "l.forward", Metric::PacketsIn), 3.0 * sent);
}

#[test]
fn messages_that_wait_in_an_outage_count_as_undelivered() {
    let load = "load.periodic = { size = '50 B', every = '100 s' }\n";
    let answer = pair("loss.bernoulli = '100 %'", load);
    assert_eq!(mean(&answer, "f", Metric::Messages), 0.0);
    assert_eq!(mean(&answer, "f", Metric::MessageLoss), 1.0);
    assert_eq!(mean(&answer, "f", Metric::AcknowledgedRatio), 0.0);
}
