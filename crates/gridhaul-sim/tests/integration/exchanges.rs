//! Exchanges and polling profiles.

use gridhaul_scenario::answer::{Answer, Metric};

use crate::schedulers::{close, mean, run};

const GPRS: &str = include_str!("../../../../scenarios/iec104-gprs.toml");
const OUTAGE: &str = include_str!("../../../../scenarios/iec104-outage.toml");

/// A flow over 1 Mbit/s and 10 ms in each direction, on a connection that is open.
fn answer(duration: &str, flow: &str) -> Answer {
    run(&format!(
        "title = 't'\nduration = '{duration}'\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nboth = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n\
         [stack.open]\nhandshake = false\nnagle = false\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\nstack = 'open'\n{flow}"
    ))
}

/// Two writes of the `from` end, and an answer after a time to think.
const STEPS: &str = "steps = [{ writer = 'from', size = '20 B' }, \
                     { writer = 'from', size = '60 B', after = '50 ms' }, \
                     { writer = 'to', size = '200 B', after = '10 ms' }]";

/// 50 ms between the writes; 112 B and 10 ms to the other end; 10 ms to think; 252 B and 10 ms.
const EXCHANGE_S: f64 = 0.050 + 0.000_896 + 0.010 + 0.010 + 0.002_016 + 0.010;

#[test]
fn the_delay_of_an_exchange_is_that_of_all_its_steps() {
    for (time, count) in [("every = '1 s'", 10.0), ("pause = '417.088 ms'", 20.0)] {
        let answer = answer("10 s", &format!("load.exchange = {{ {STEPS}, {time} }}"));
        assert_eq!(mean(&answer, "f", Metric::MessagesDue), count);
        assert_eq!(mean(&answer, "f", Metric::Messages), count);
        close(mean(&answer, "f", Metric::DelayMedian), EXCHANGE_S, 1e-6);
        close(mean(&answer, "f", Metric::DelayMax), EXCHANGE_S, 1e-6);
        // The payload of both ends.
        close(mean(&answer, "f", Metric::Goodput), count * 280.0 * 8.0 / 10.0, 1e-6);
    }
}

#[test]
fn an_exchange_that_is_late_delays_the_following_ones() {
    let keys = format!("deadline = '1 s'\nload.exchange = {{ {STEPS}, every = '50 ms' }}");
    let answer = answer("10 s", &keys);
    let complete = (10.0 / EXCHANGE_S).floor();
    assert_eq!(mean(&answer, "f", Metric::MessagesDue), 200.0);
    assert_eq!(mean(&answer, "f", Metric::Messages), complete);
    // The delay of exchange n counts from its due time.
    let delay = |n: f64| n * EXCHANGE_S - (n - 1.0) * 0.050;
    close(mean(&answer, "f", Metric::DelayMax), delay(complete), 1e-3);
    let in_time = (1..200).take_while(|n| delay(f64::from(*n)) <= 1.0).count();
    // Exchanges that were due in the last second may still meet the deadline.
    close(mean(&answer, "f", Metric::DeadlineMet), in_time as f64 / 180.0, 0.02);
}

#[test]
fn polls_have_the_sizes_of_their_protocols() {
    for (load, request, response) in [
        ("modbus = { registers = 20, every = '1 s', think = '5 ms' }", 12.0, 49.0),
        ("dlms = { data = '300 B', every = '1 s', think = '5 ms' }", 21.0, 312.0),
    ] {
        let answer = answer("10 s", &format!("load.{load}"));
        assert_eq!(mean(&answer, "f", Metric::Messages), 10.0);
        let bytes = request + response;
        close(mean(&answer, "f", Metric::Goodput), bytes * 8.0, 1e-6);
        let delay = (bytes + 2.0 * 52.0) * 8.0 / 1e6 + 0.025;
        close(mean(&answer, "f", Metric::DelayMean), delay, 1e-6);
    }
}

#[test]
fn polls_open_connections_of_their_own() {
    let keys = "load.dlms = { data = '5 B', every = '10 s' }\nconnection = 'per_message'\ntls = {}";
    let answer = run(&format!(
        "title = 't'\nduration = '60 s'\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nboth = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\n{keys}"
    ));
    for metric in [Metric::MessagesDue, Metric::Messages, Metric::ConnectionsOpened] {
        assert_eq!(mean(&answer, "f", metric), 6.0, "{metric:?}");
    }
}

#[test]
fn the_window_of_iec_104_limits_the_rate_over_gprs() {
    let (base, _) = GPRS.split_once("\n[[sweep]]").expect("a sweep");
    let answer = run(base);
    // The calculation is in the comment of the scenario; frames of the last second are in transit.
    close(mean(&answer, "values", Metric::Goodput), 72.0 * 8.0 * 8.0 / 0.9628, 0.005);
    assert_eq!(mean(&answer, "values", Metric::MessagesDue), 5_400.0);
    assert_eq!(answer.points[0].deadline_checks[0].met, Some(false));
    let answer = run(&base.replace("w = 8 }", "w = 4 }"));
    close(mean(&answer, "values", Metric::Messages), 5_400.0, 1e-3);
    close(mean(&answer, "values", Metric::DelayMedian), 0.3996, 1e-4);
    close(mean(&answer, "values", Metric::DelayMax), 0.3996, 1e-4);
}

/// The calculation is in the comment of the scenario.
#[test]
fn the_timers_of_iec_104_end_a_connection_that_an_outage_has_interrupted() {
    let (base, _) = OUTAGE.split_once("\n[[sweep]]").expect("a sweep");
    let answer = run(base);
    let value = |metric| mean(&answer, "values", metric);
    close(value(Metric::DelayMax), 67.2424, 1e-6);
    close(value(Metric::DelayMedian), 0.3996, 1e-4);
    // The frame of the last second is in transit.
    assert_eq!((value(Metric::MessagesDue), value(Metric::Messages)), (240.0, 240.0));
    let counts = [
        (Metric::MessageRetransmissions, 12.0),
        (Metric::DuplicateMessages, 4.0),
        (Metric::ConnectionsLost, 1.0),
        (Metric::ConnectionsOpened, 2.0),
        (Metric::ConnectionsFailed, 5.0),
        (Metric::GivenUp, 0.0),
    ];
    for (metric, count) in counts {
        assert_eq!(value(metric), count, "{metric:?}");
    }
    // Copies are no goodput.
    close(value(Metric::Goodput), 240.0 * 72.0 * 8.0 / 240.0, 1e-9);
    let base =
        base.replace("t1 = \"15 s\"", "t1 = \"1 h\"").replace("t3 = \"20 s\"", "t3 = \"2 h\"");
    let answer = run(&base);
    let value = |metric| mean(&answer, "values", metric);
    assert!((120.0..140.0).contains(&value(Metric::DelayMax)), "{}", value(Metric::DelayMax));
    assert_eq!((value(Metric::ConnectionsLost), value(Metric::DuplicateMessages)), (0.0, 0.0));
}

/// The controlled station opens the connection: its RST and that of the centre cross the link.
#[test]
fn a_station_that_opens_connections_starts_data_transfer_on_request() {
    let keys = "load.iec_104 = { values = 1, every = '1 s', synchronised = true, t1 = '15 s' }";
    let answer = run(&format!(
        "title = 't'\nduration = '60 s'\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nboth = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\n{keys}"
    ));
    // SYN, SYN-ACK and ACK of 52 B; STARTDT act and its ACK; STARTDT con, and the first values in
    // the same segment.
    let first = 3.0 * 52.0 + (52.0 + 6.0) + 52.0 + (52.0 + 6.0 + 27.0);
    close(mean(&answer, "f", Metric::DelayMax), 0.05 + first * 8.0 / 1e6, 1e-6);
    assert_eq!(mean(&answer, "f", Metric::Messages), 60.0);
    assert_eq!(mean(&answer, "f", Metric::ConnectionsLost), 0.0);
    assert_eq!(mean(&answer, "f", Metric::MessageRetransmissions), 0.0);
}

/// Acknowledgements are lost for 20 s. The controlled station closes the connection 15 s after its
/// oldest frame without one, and its RST arrives: the centre need not wait for its own timers,
/// which would end after 35 s.
#[test]
fn the_rst_of_a_station_that_closes_the_connection_arrives() {
    let answer = run("title = 't'\nduration = '80 s'\n[node]\na = {}\nb = {}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nreverse = { rate = '1 Mbit/s', delay = '10 ms' }\n\
         forward = { rate = '1 Mbit/s', delay = '10 ms', \
         outage = [{ start = '20 s', length = '20 s', mode = 'drop' }] }\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\n\
         load.iec_104 = { values = 4, every = '1 s', synchronised = true, controlled = 'to', \
         t1 = '15 s' }\nreconnect = { timeout = '1 s', pause = '1 s', factor = 1 }");
    assert_eq!(mean(&answer, "f", Metric::ConnectionsLost), 1.0);
    // Values of the outage arrive on the first connection after it.
    let latest = mean(&answer, "f", Metric::DelayMax);
    assert!((12.0..22.0).contains(&latest), "{latest}");
    assert_eq!(mean(&answer, "f", Metric::Messages), 80.0);
}
