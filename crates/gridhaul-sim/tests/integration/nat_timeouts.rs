//! Idle connections that a NAT forgets, keep-alive and user timeout, by hand.
//!
//! A meter keeps one connection open and sends 200 B at 0 s, 900 s, 1,800 s, …, over a link of
//! 1 Mbit/s and 20 ms. With headers, a message has 252 B (2.016 ms), an acknowledgement, SYN,
//! SYN-ACK and a probe 52 B (0.416 ms, 20.416 ms with the delay), RST of the NAT 40 B (0.32 ms).

use gridhaul_scenario::answer::{Metric, Point, Row};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

/// Delay of a message on an open connection.
const DELAY: f64 = 0.022_016;
/// Handshake: SYN and SYN-ACK; the message follows the ACK.
const HANDSHAKE: f64 = 2.0 * 0.020_416;
/// Delay of a message that waits for a new connection after the pause of 1 s.
const RECONNECTED: f64 = 1.0 + HANDSHAKE + 0.000_416 + DELAY;

fn point(duration: &str, keys: &str) -> Point {
    let load = "load.periodic = { size = '200 B', every = '15 min', synchronised = true }";
    point_with(duration, &format!("{load}\n{keys}"))
}

fn point_with(duration: &str, keys: &str) -> Point {
    let text = format!(
        "title = 't'\nduration = '{duration}'\n[node]\nmeter = {{}}\nhead = {{}}\n\
         [link.line]\nfrom = 'meter'\nto = 'head'\n\
         both = {{ rate = '1 Mbit/s', delay = '20 ms' }}\n\
         [flow.reading]\nfrom = 'meter'\nto = 'head'\n{keys}"
    );
    let scenario = Scenario::from_toml(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut answer = Sim::default().run(&scenario, &NoProgress).unwrap();
    answer.points.remove(0)
}

fn reading(duration: &str, keys: &str) -> Row {
    point(duration, keys).flows.remove(0)
}

fn value(row: &Row, metric: Metric) -> f64 {
    row.mean(metric).unwrap_or_else(|| panic!("{metric} of {row:?}"))
}

fn assert_values<const N: usize>(row: &Row, expected: [(Metric, f64); N]) {
    for (metric, expected) in expected {
        let measured = value(row, metric);
        assert!((measured - expected).abs() < 1e-5, "{metric}: {measured} in place of {expected}");
    }
}

/// Each message but the first finds its connection forgotten, is discarded, and is answered.
#[test]
fn rst_of_a_nat_costs_a_round_trip_and_a_new_connection() {
    let row = reading("1 h", "nat = { idle_timeout = '5 min', answers = 'reset' }");
    let notice = 0.02 + 0.000_32;
    let late = DELAY + notice + RECONNECTED;
    assert_values(
        &row,
        [
            (Metric::Messages, 4.0),
            (Metric::ConnectionsOpened, 4.0),
            (Metric::ConnectionsLost, 3.0),
            (Metric::MessagesInterrupted, 3.0),
            (Metric::LossNoticeMean, notice),
            (Metric::DelayMax, late),
            (Metric::KeepAliveBytes, 0.0),
        ],
    );
}

/// The message of 900 s is discarded, and the connection is given up at 900 s + 924.6 s, after the
/// message of 1,800 s. The next one, 874 s after both have arrived, is discarded again.
#[test]
fn a_silent_nat_delays_every_second_message_by_a_quarter_of_an_hour() {
    let row = reading("7170 s", "nat = { idle_timeout = '5 min' }");
    assert_values(
        &row,
        [
            // 0 s to 6,300 s; the one of 6,300 s waits.
            (Metric::Messages, 7.0),
            (Metric::ConnectionsOpened, 4.0),
            (Metric::ConnectionsLost, 3.0),
            (Metric::MessagesInterrupted, 6.0),
            (Metric::LossNoticeMean, 924.6 - DELAY),
            // Both messages share a segment: 200 B more, 1.6 ms.
            (Metric::DelayMax, 924.6 + RECONNECTED + 0.001_6),
        ],
    );
}

#[test]
fn a_user_timeout_bounds_the_notice() {
    let keys = "nat = { idle_timeout = '5 min' }\nuser_timeout = '30 s'";
    let row = reading("1 h", keys);
    assert_values(
        &row,
        [
            (Metric::Messages, 4.0),
            (Metric::ConnectionsLost, 3.0),
            (Metric::MessagesInterrupted, 3.0),
            (Metric::LossNoticeMean, 30.0 - DELAY),
            (Metric::DelayMax, 30.0 + RECONNECTED),
        ],
    );
}

/// Probes after 240 s, 480 s and 720 s without a segment of the head: twelve an hour. Each has
/// 52 B, as its answer.
#[test]
fn keep_alive_below_the_timeout_keeps_the_connection() {
    let nat = "nat = { idle_timeout = '5 min' }\n";
    let answered = point("1 h", &format!("{nat}keep_alive.idle = '4 min'"));
    assert_values(
        &answered.flows[0],
        [
            (Metric::Messages, 4.0),
            (Metric::ConnectionsOpened, 1.0),
            (Metric::ConnectionsLost, 0.0),
            (Metric::MessagesInterrupted, 0.0),
            (Metric::KeepAliveBytes, 12.0 * 52.0),
            (Metric::DelayMax, HANDSHAKE + 0.000_416 + DELAY),
        ],
    );
    // To the head: SYN, ACK, 4 messages and 12 probes. To the meter: SYN-ACK, 4 acknowledgements
    // and 12 answers.
    let packets = [0, 1].map(|link| value(&answered.links[link], Metric::PacketsOut));
    assert_eq!(packets, [18.0, 17.0]);
    // Above the timeout, each probe finds the connection forgotten.
    let row = reading("1 h", &format!("{nat}keep_alive.idle = '6 min'"));
    assert!(value(&row, Metric::ConnectionsLost) > 0.0);
}

/// The NAT forgets the connection at 120 s. Three probes are discarded from 240 s on, and the meter
/// gives the connection up 30 s after the first, before it has a message to send.
#[test]
fn keep_alive_notices_a_lost_connection_without_a_message() {
    let keys = "nat = { idle_timeout = '2 min' }\n\
                keep_alive = { idle = '4 min', interval = '10 s', probes = 3 }";
    let row = reading("890 s", keys);
    assert_values(
        &row,
        [
            (Metric::Messages, 1.0),
            (Metric::ConnectionsOpened, 4.0),
            (Metric::ConnectionsLost, 3.0),
            (Metric::MessagesInterrupted, 0.0),
            (Metric::LossNoticeMean, 30.0 - 0.020_416),
            (Metric::KeepAliveBytes, 9.0 * 52.0),
        ],
    );
}

/// The FIN of 600 s is discarded; without a user timeout, the connection would still be closing at
/// 900 s.
#[test]
fn a_forgotten_connection_that_closes_is_given_up() {
    let keys = "connection = { idle_timeout = '10 min' }\n\
                nat = { idle_timeout = '5 min' }\nuser_timeout = '30 s'";
    let row = reading("1 h", keys);
    assert_values(
        &row,
        [
            (Metric::Messages, 4.0),
            (Metric::ConnectionsOpened, 4.0),
            (Metric::ConnectionsLost, 0.0),
            (Metric::DelayMax, HANDSHAKE + 0.000_416 + DELAY),
        ],
    );
}

/// A device that waits for the response of the head: a NAT that forgets the connection meanwhile
/// resets the head, and the meter notices nothing until its next request.
#[test]
fn a_response_after_the_timeout_does_not_arrive() {
    let text = |think: &str| {
        format!(
            "load.request_response = {{ request = '50 B', response = '100 B', think = '{think}', \
             pause = '1 min' }}\nnat = {{ idle_timeout = '5 min', answers = 'reset' }}"
        )
    };
    let exchange = |think: &str| value(&point_with("2 h", &text(think)).flows[0], Metric::Messages);
    // Cycles of 5 min 0.1 s, and one that never ends.
    assert_eq!((exchange("4 min"), exchange("6 min")), (24.0, 0.0));
}

/// The head has written a response that the NAT discards, and the meter notices at its first probe.
#[test]
fn a_response_in_transit_is_interrupted_as_well() {
    let point = point_with(
        "11 min",
        "load.request_response = { request = '50 B', response = '100 B', think = '6 min', \
         pause = '1 min' }\nnat = { idle_timeout = '5 min', answers = 'reset' }\n\
         keep_alive.idle = '10 min'",
    );
    let row = &point.flows[0];
    assert_values(row, [(Metric::ConnectionsLost, 1.0), (Metric::MessagesInterrupted, 1.0)]);
}
