//! Confirmable messages of CoAP over sockets of the kernel.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;

use crate::{mean, run, run_with};

/// An excerpt of the scenario: 100 meters with a reading in 6 s and a timeout of 200 ms, above the
/// round-trip time of 165 ms. A busy machine may delay responses, which adds
/// retransmissions and takes nothing away.
#[test]
fn readings_over_a_lossy_link_are_retransmitted_and_delivered_once() {
    let text = include_str!("../../../../scenarios/coap-readings.toml")
        .replace("warmup = \"30 min\"\nduration = \"100 h\"", "duration = \"18 s\"")
        .replace("count = 200", "count = 100")
        .replace("every = \"15 min\"", "every = \"6 s\"")
        .replace("\ndeadline", "\ncoap = { ack_timeout = \"200 ms\" }\ndeadline");
    let Some(answer) = run_with(&text, Emu::default()) else { return };
    let value = |metric| mean(&answer, "reading", metric);
    let due = value(Metric::MessagesDue);
    assert_eq!(due, 300.0);
    // One of 15,600 messages is given up.
    assert!(value(Metric::GivenUp) <= 3.0);
    assert!(value(Metric::AcknowledgedRatio) >= 0.98);
    assert!(value(Metric::MessageLoss) <= 0.01);
    let acknowledged = value(Metric::Acknowledged);
    assert!(value(Metric::Messages) >= acknowledged && acknowledged >= 150.0);
    // At least 14.5 % of the attempts fail: 51 on average, with a standard deviation of 8.
    assert!(value(Metric::MessageRetransmissions) >= 15.0);
    // Each copy that reaches the server has a response.
    let copies = value(Metric::Messages) + value(Metric::DuplicateMessages);
    assert!(mean(&answer, "radio.reverse", Metric::PacketsIn) >= copies);
    // The handshake of a meter without success after 7 s fails once more with 0.04 %.
    assert!(value(Metric::DtlsHandshakes) >= 97.0);
    // No reading is faster than the link: 118 B at 20 kbit/s, and 50 ms.
    assert!(value(Metric::DelayMedian) >= 0.097_2);
}

#[test]
fn a_server_answers_with_a_handshake_for_each_message() {
    let text = "title = 'coap'\n[node]\na = {}\nb = {}\n\
        [link.l]\nfrom = 'a'\nto = 'b'\nboth = { rate = '1 Mbit/s', delay = '10 ms' }\n\
        [flow.f]\nfrom = 'a'\nto = 'b'\ntransport = 'coap'\nip = 6\n\
        load.periodic = { size = '100 B', every = '500 ms' }\n\
        dtls = { version = '1.2', session = 'per_message' }";
    let Some(answer) = run("duration = '3 s'", text) else { return };
    let value = |metric| mean(&answer, "f", metric);
    assert!(value(Metric::Messages) >= 3.0);
    assert!(value(Metric::DtlsHandshakes) >= value(Metric::Messages));
    // Seven datagrams of 533 B + 144 B and 48 B of headers each, and as many times 10 ms.
    assert!(value(Metric::DelayMedian) >= (677.0 + 7.0 * 48.0) * 8e-6 + 0.07);
}
