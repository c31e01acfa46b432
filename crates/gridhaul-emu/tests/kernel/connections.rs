//! Connections that open and close during a run.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::{Answer, Metric};

use crate::pair::pair;
use crate::{close, mean, run, run_with};

/// An excerpt of scenarios/tls-per-reading.toml with 300 meters at the same load of the link: a
/// reading every 30 min · 300 / 5,000.
const EXCERPT: &str = "title = 't'\nduration = '18 s'\n[node]\nmeter = { count = 300 }\nhead = {}\n\
    [link.cell]\nfrom = 'meter'\nto = 'head'\nshared = true\n\
    both = { rate = '64 kbit/s', delay = '50 ms', queue = '200 packets' }\n\
    [flow.reading]\nfrom = 'meter'\nto = 'head'\n\
    load.periodic = { size = '200 B', every = '108 s' }\nconnection = 'per_message'\n\
    tls = { version = '1.3', certificate = '1000 B', client_hello = '220 B' }";

/// Readings per hour if the direction to the meters is always busy.
fn capacity(answer: &Answer, secs: f64) -> f64 {
    let per_second = mean(answer, "reading", Metric::Goodput) / 8.0 / 200.0;
    assert!(per_second * secs > 30.0, "{per_second}");
    per_second * 3_600.0 / mean(answer, "cell.reverse", Metric::Utilisation)
}

#[test]
fn the_capacity_of_a_cell_with_tls_for_each_reading_is_that_of_the_hand_calculation() {
    let Some(answer) = run_with(EXCERPT, Emu::default()) else { return };
    close(capacity(&answer, 18.0), 17_021.0, 0.1);
    let handshakes = mean(&answer, "reading", Metric::TlsHandshakes);
    let bytes = mean(&answer, "reading", Metric::TlsHandshakeBytes);
    // A handshake may be in progress at the end.
    close(bytes, handshakes * (220.0 + 1_356.0 + 64.0), 0.05);
    assert_eq!(mean(&answer, "reading", Metric::ConnectionsFailed), 0.0);
}

#[test]
fn an_idle_timeout_closes_connections_of_the_kernel() {
    let link = "both = { rate = '1 Mbit/s', delay = '10 ms' }";
    let flow = "[flow.up]\nfrom = 'near'\nto = 'far'\n\
        load.periodic = { size = '200 B', every = '500 ms', synchronised = true }\n\
        connection = { idle_timeout = '200 ms' }";
    let Some(answer) = run("duration = '2800 ms'", &pair(link, flow)) else { return };
    // At 0, 0.5, 1, 1.5, 2 and 2.5 s: a round trip of 20 ms and half of one for the message.
    assert_eq!(mean(&answer, "up", Metric::ConnectionsOpened), 6.0);
    assert_eq!(mean(&answer, "up", Metric::Messages), 6.0);
    let delay = mean(&answer, "up", Metric::DelayMedian);
    assert!((0.030..0.040).contains(&delay), "{delay}");
}

#[test]
fn each_request_has_a_connection_with_tls() {
    let link = "both = { rate = '1 Mbit/s', delay = '10 ms' }";
    let flow = "[flow.poll]\nfrom = 'near'\nto = 'far'\n\
        load.request_response = { request = '50 B', response = '500 B', pause = '400 ms' }\n\
        connection = 'per_message'\ntls.resumption = 'after_first'";
    let Some(answer) = run("duration = '2800 ms'", &pair(link, flow)) else { return };
    let polls = mean(&answer, "poll", Metric::Messages);
    // A poll takes three round trips of 20 ms, some milliseconds of transmission, and the pause.
    assert!((5.0..=6.0).contains(&polls), "{polls}");
    let handshakes = [Metric::TlsHandshakes, Metric::TlsResumptions];
    let [full, resumed] = handshakes.map(|metric| mean(&answer, "poll", metric));
    assert_eq!(full, 1.0);
    assert!((polls - 1.0..=polls).contains(&resumed), "{resumed}");
}

#[test]
fn a_retransmission_counts_where_a_connection_closes_with_its_only_message() {
    let link = "forward = { rate = '8 Mbit/s', delay = '20 ms', loss.packets = [3] }\n\
        reverse = { rate = '8 Mbit/s', delay = '20 ms' }";
    let flow = "[flow.up]\nfrom = 'near'\nto = 'far'\nconnection = 'per_message'\n\
        load.periodic = { size = '20 kB', every = '5 s', synchronised = true }";
    let Some(answer) = run("duration = '2 s'", &pair(link, flow)) else { return };
    assert!(mean(&answer, "up", Metric::Retransmissions) >= 1.0);
}

#[test]
fn the_segments_of_a_connection_that_is_aborted_count() {
    // The acknowledgement of the first message is lost, with everything until 1 s.
    let link = "both = { rate = '1 Mbit/s', delay = '20 ms', \
        outage = [{ start = '50 ms', length = '950 ms' }] }";
    let flow = "[flow.up]\nfrom = 'near'\nto = 'far'\n\
        load.periodic = { size = '20 B', every = '5 s', synchronised = true }\n\
        acknowledgement = { size = '20 B', timeout = '400 ms', retransmit_on = 'new_connection' }";
    let Some(answer) = run("duration = '3 s'", &pair(link, flow)) else { return };
    // One message on the first connection, with its retransmissions by TCP, and one on the last.
    assert!(mean(&answer, "up", Metric::SegmentsSent) >= 3.0);
    assert!(mean(&answer, "up", Metric::Retransmissions) >= 1.0);
}
