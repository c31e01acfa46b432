//! Messages that the application of the receiver acknowledges.

use gridhaul_scenario::answer::{Answer, Metric};

use crate::schedulers::{close, mean, run};

const READINGS: &str = include_str!("../../../../scenarios/acknowledged-readings.toml");

/// A flow over 1 Mbit/s and 10 ms in each direction, with these keys of the link.
fn answer(link: &str, flow: &str) -> Answer {
    run(&format!(
        "title = 't'\nduration = '20 s'\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nforward = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n\
         reverse = {{ rate = '1 Mbit/s', delay = '10 ms'{link} }}\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\n\
         load.periodic = {{ size = '200 B', every = '1 s', synchronised = true }}\n{flow}"
    ))
}

#[test]
fn without_losses_each_message_is_acknowledged_once() {
    let acknowledgement = "acknowledgement = { size = '20 B', timeout = '5 s', think = '30 ms' }";
    for (policy, opened) in [
        ("connection = 'persistent'", 1.0),
        ("connection = 'per_message'", 20.0),
        ("connection = { idle_timeout = '500 ms' }", 20.0),
        ("tls = {}", 1.0),
    ] {
        let answer = answer("", &format!("{acknowledgement}\n{policy}"));
        let count = |metric| mean(&answer, "f", metric);
        assert_eq!(count(Metric::MessagesDue), 20.0, "{policy}");
        assert_eq!(count(Metric::Messages), 20.0, "{policy}");
        assert_eq!(count(Metric::Acknowledged), 20.0, "{policy}");
        assert_eq!((count(Metric::AcknowledgedRatio), count(Metric::MessageLoss)), (1.0, 0.0));
        let none = [
            Metric::GivenUp,
            Metric::MessageRetransmissions,
            Metric::DuplicateMessages,
            Metric::ConnectionsLost,
        ];
        assert_eq!(none.map(count), [0.0; 4], "{policy}");
        assert_eq!(count(Metric::ConnectionsOpened), opened, "{policy}");
        // Only messages count, not their acknowledgements.
        close(count(Metric::Goodput), 20.0 * 200.0 * 8.0 / 20.0, 1e-9);
        if policy == "connection = 'persistent'" {
            // 252 B and 72 B with headers, two propagation delays, and the time to think.
            let there = 0.010 + 252.0 * 8.0 / 1e6;
            let back = 0.010 + 72.0 * 8.0 / 1e6;
            // The first message follows the acknowledgement of the handshake, of 52 B.
            let first = 52.0 * 8.0 / 1e6 / 20.0;
            close(count(Metric::ResponseTimeMean), there + 0.030 + back + first, 1e-6);
        }
    }
}

#[test]
fn a_timeout_below_the_round_trip_time_duplicates_every_message() {
    // Copies follow after 15 ms and 30 ms; the acknowledgement arrives after 22 ms.
    let keys = "acknowledgement = { size = '20 B', timeout = '15 ms' }";
    let answer = answer("", keys);
    let count = |metric| mean(&answer, "f", metric);
    assert_eq!((count(Metric::Messages), count(Metric::Acknowledged)), (20.0, 20.0));
    assert_eq!(count(Metric::MessageRetransmissions), 20.0);
    assert_eq!(count(Metric::DuplicateMessages), 20.0);
    close(count(Metric::Goodput), 20.0 * 200.0 * 8.0 / 20.0, 1e-9);
}

#[test]
fn messages_arrive_that_their_sender_gives_up() {
    // Nothing arrives at the sender from 5.5 s on. A window of data has no acknowledgement by TCP.
    let outage = ", outage = [{ start = '5500 ms', length = '1 h' }]";
    let keys = "acknowledgement = { size = '20 B', timeout = '450 ms', retransmissions = 1 }";
    let answer = answer(outage, keys);
    let count = |metric| mean(&answer, "f", metric);
    // The readings of 0 s to 5 s are acknowledged; those of 6 s to 19 s are given up after 0.9 s.
    assert_eq!((count(Metric::Acknowledged), count(Metric::GivenUp)), (6.0, 14.0));
    close(count(Metric::AcknowledgedRatio), 6.0 / 20.0, 1e-9);
    let arrived = count(Metric::Messages);
    assert!(arrived > 6.0, "{arrived}");
    assert!(count(Metric::MessageLoss) < 14.0 / 20.0);
}

#[test]
fn readings_over_an_outage_agree_with_the_calculation_by_hand() {
    let answer = run(READINGS);
    let metrics = [
        Metric::MessagesDue,
        Metric::Messages,
        Metric::Acknowledged,
        Metric::GivenUp,
        Metric::MessageRetransmissions,
        Metric::DuplicateMessages,
        Metric::ConnectionsLost,
    ];
    let count = |flow: &str| metrics.map(|metric| mean(&answer, flow, metric));
    let [due, arrived, acknowledged, given_up, again, duplicates, lost] = count("same-connection");
    assert_eq!([due, arrived, acknowledged, given_up, lost], [12.0, 12.0, 11.0, 1.0, 0.0]);
    // The copy of 88 s is written unless TCP retransmits before.
    assert!((5.0..=6.0).contains(&duplicates) && again == duplicates, "{again}, {duplicates}");
    assert_eq!(count("new-connection"), [12.0, 12.0, 12.0, 0.0, 1.0, 0.0, 1.0]);
    close(mean(&answer, "same-connection", Metric::AcknowledgedRatio), 11.0 / 12.0, 1e-9);
    for flow in ["same-connection", "new-connection"] {
        assert_eq!(mean(&answer, flow, Metric::MessageLoss), 0.0);
    }
    let latest = mean(&answer, "same-connection", Metric::DelayMax);
    assert!((26.3..30.1).contains(&latest), "{latest}");
    close(mean(&answer, "new-connection", Metric::DelayMax), 29.33, 0.001);
}

/// The columns follow from the keys of a flow: without results, they are null.
#[test]
fn columns_of_messages_that_nothing_acknowledges_are_null() {
    let keys = "acknowledgement = { size = '20 B', timeout = '5 s' }\n\
                keep_alive = { idle = '4 min', interval = '10 s', probes = 3 }";
    let columns = |answer: &Answer| {
        let columns = answer.points[0].flows[0].metrics.keys().copied();
        columns.collect::<Vec<_>>()
    };
    let nothing = answer(", outage = [{ start = '0 s', length = '1 h' }]", keys);
    assert_eq!(columns(&nothing), columns(&answer("", keys)));
    for metric in [Metric::AcknowledgedRatio, Metric::ConnectTimeMean, Metric::LossNoticeMean] {
        let estimate = nothing.points[0].flows[0].metrics.get(&metric);
        assert_eq!(estimate.map(|estimate| estimate.mean), Some(None), "{metric}");
    }
}
