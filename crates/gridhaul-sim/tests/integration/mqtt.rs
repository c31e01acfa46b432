//! MQTT publications through a broker.

use gridhaul_scenario::answer::Metric;

use crate::schedulers::{close, mean, run};

const QOS: &str = include_str!("../../../../scenarios/mqtt-qos.toml");

#[test]
fn a_message_takes_the_time_of_its_packets_on_both_connections() {
    for (qos, version, publish) in
        [(0, "3.1.1", 229.0), (1, "3.1.1", 231.0), (2, "3.1.1", 231.0), (1, "5.0", 232.0)]
    {
        let answer = run(&format!(
            "title = 't'\nduration = '20 s'\n[node]\na = {{}}\nb = {{}}\nc = {{}}\n\
             [link.l]\nfrom = 'a'\nto = 'b'\nboth = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n\
             [link.m]\nfrom = 'b'\nto = 'c'\nboth = {{ rate = '1 Mbit/s', delay = '20 ms' }}\n\
             [flow.p]\nfrom = 'a'\nto = 'b'\nload.mqtt = {{ size = '200 B', every = '1 s', \
             synchronised = true, qos = {qos}, version = '{version}', keep_alive = '0 s' }}\n\
             [flow.s]\nfrom = 'c'\nto = 'b'\nload.mqtt_subscription.publications = 'p'"
        ));
        let hop = |delay| delay + (publish + 52.0) * 8.0 / 1e6;
        close(mean(&answer, "p", Metric::DelayMedian), hop(0.010), 1e-3);
        close(mean(&answer, "s", Metric::DelayMedian), hop(0.010) + hop(0.020), 1e-3);
        for flow in ["p", "s"] {
            let count = |metric| mean(&answer, flow, metric);
            assert_eq!((count(Metric::MessagesDue), count(Metric::Messages)), (20.0, 20.0));
            assert_eq!((count(Metric::MessageLoss), count(Metric::DuplicateMessages)), (0.0, 0.0));
            let acknowledged = if qos == 0 { 0.0 } else { 20.0 };
            assert_eq!(count(Metric::Acknowledged), acknowledged, "QoS {qos}");
        }
        // The first message waits for TCP, CONNECT and CONNACK.
        assert!(mean(&answer, "p", Metric::DelayMax) > 0.050);
    }
}

#[test]
fn a_message_takes_the_bytes_of_its_packets_in_both_directions() {
    // With headers of 52 B. PUBLISH, and the acknowledgement by TCP; with QoS 1 PUBLISH and the
    // acknowledgement of PUBACK, and PUBACK; with QoS 2 PUBLISH, the acknowledgement of PUBREC,
    // PUBREL and the acknowledgement of PUBCOMP, and PUBREC and PUBCOMP. Linux acknowledges PUBREC
    // at once, since the delayed acknowledgement of PUBCOMP has ended its interactive mode.
    for (qos, bytes) in [
        (0, [229 + 52, 52]),
        (1, [231 + 52 + 52, 4 + 52]),
        (2, [231 + 52 + 52 + 4 + 52 + 52, 2 * (4 + 52)]),
    ] {
        let answer = run(&format!(
            "title = 't'\nduration = '110500 ms'\nwarmup = '10500 ms'\n\
             [node]\na = {{}}\nb = {{}}\n[link.l]\nfrom = 'a'\nto = 'b'\n\
             both = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n\
             [flow.p]\nfrom = 'a'\nto = 'b'\nload.mqtt = {{ size = '200 B', every = '1 s', \
             synchronised = true, qos = {qos}, keep_alive = '0 s' }}"
        ));
        for (direction, bytes) in ["l.forward", "l.reverse"].iter().zip(bytes) {
            let carried = mean(&answer, direction, Metric::LinkThroughput) * 100.0 / 8.0;
            close(carried / 100.0, f64::from(bytes), 1e-9);
        }
    }
}

#[test]
fn messages_wait_for_a_subscriber_that_starts_later() {
    let answer = run("title = 't'\nduration = '10500 ms'\n[node]\na = {}\nb = {}\nc = {}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nboth = { rate = '1 Mbit/s', delay = '10 ms' }\n\
         [link.m]\nfrom = 'c'\nto = 'b'\nboth = { rate = '1 Mbit/s', delay = '10 ms' }\n\
         [flow.p]\nfrom = 'a'\nto = 'b'\n\
         load.mqtt = { size = '200 B', every = '1 s', synchronised = true, qos = 1 }\n\
         [flow.s]\nfrom = 'c'\nto = 'b'\nstart = '5 s'\n\
         load.mqtt_subscription = { publications = 'p', qos = 0 }");
    let count = |metric| mean(&answer, "s", metric);
    assert_eq!((count(Metric::MessagesDue), count(Metric::Messages)), (11.0, 11.0));
    assert_eq!(count(Metric::Acknowledged), 0.0);
    // The message of 0 s follows CONNECT, CONNACK, SUBSCRIBE and SUBACK.
    let latest = count(Metric::DelayMax);
    assert!((5.070..5.090).contains(&latest), "{latest}");
}

#[test]
fn the_quality_of_service_decides_over_losses_and_duplicates() {
    let answer = run(QOS);
    let metrics = [Metric::Messages, Metric::DuplicateMessages, Metric::ConnectionsLost];
    let count = |flow: &str| metrics.map(|metric| mean(&answer, flow, metric));
    for (qos, [arrived, duplicates]) in [[11.0, 0.0], [12.0, 1.0], [12.0, 0.0]].iter().enumerate() {
        // At the broker, and at the subscriber, whose connection has no outage.
        assert_eq!(count(&format!("publish-{qos}")), [*arrived, *duplicates, 1.0], "QoS {qos}");
        let deliver = format!("deliver-{qos}");
        assert_eq!(count(&deliver), [*arrived, *duplicates, 0.0], "QoS {qos}");
        assert_eq!(mean(&answer, &deliver, Metric::MessagesDue), 12.0);
        let lost = (12.0 - arrived) / 12.0;
        assert!((mean(&answer, &deliver, Metric::MessageLoss) - lost).abs() < 1e-9, "QoS {qos}");
        let latest = mean(&answer, &deliver, Metric::DelayMax);
        close(latest, [11.56, 25.76, 25.97][qos], 0.001);
    }
    for qos in [1, 2] {
        let publish = format!("publish-{qos}");
        assert_eq!(mean(&answer, &publish, Metric::Acknowledged), 12.0);
        assert_eq!(mean(&answer, &publish, Metric::MessageRetransmissions), 3.0);
    }
}

/// PUBACK of the reading at 60 s and both connections are lost in an outage. The broker gets and
/// forwards this reading twice; with QoS 0, its first copy ends with the subscriber's connection.
#[test]
fn a_reading_that_arrives_with_its_second_copy_is_neither_lost_nor_a_duplicate() {
    for (qos, duplicates) in [(0, 0.0), (1, 1.0)] {
        let outage = "outage = [{ start = '58 s', length = '32.5 s' }]";
        let reconnect = "reconnect = { timeout = '5 s', pause = '5 s', factor = 1 }";
        let answer = run(&format!(
            "title = 't'\nduration = '120 s'\n[node]\nmeter = {{}}\nbroker = {{}}\ncentre = {{}}\n\
             [link.radio]\nfrom = 'meter'\nto = 'broker'\n\
             forward = {{ rate = '200 kbit/s', delay = '100 ms' }}\n\
             reverse = {{ rate = '200 kbit/s', delay = '100 ms', {outage} }}\n\
             [link.lan]\nfrom = 'broker'\nto = 'centre'\n\
             both = {{ rate = '10 Mbit/s', delay = '1 ms', {outage} }}\n\
             [flow.pub]\nfrom = 'meter'\nto = 'broker'\n{reconnect}\n\
             load.mqtt = {{ size = '200 B', every = '10 s', synchronised = true, qos = 1, \
             keep_alive = '15 s' }}\n\
             [flow.sub]\nfrom = 'centre'\nto = 'broker'\n{reconnect}\n\
             load.mqtt_subscription = {{ publications = 'pub', qos = {qos} }}"
        ));
        let count = |metric| mean(&answer, "sub", metric);
        assert_eq!((count(Metric::Messages), count(Metric::MessageLoss)), (12.0, 0.0), "{qos}");
        assert_eq!(count(Metric::DuplicateMessages), duplicates, "{qos}");
    }
}
