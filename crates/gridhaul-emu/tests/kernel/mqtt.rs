//! MQTT publications through a broker, over connections of the kernel.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;

use crate::{mean, run_with};

/// A client with this quality of service, whose link has an outage from 3 s to 7 s, and a
/// subscriber.
fn client(qos: u8, interrupted: [bool; 2]) -> String {
    let direction = |is_interrupted: bool| {
        let outage =
            if is_interrupted { ", outage = [{ start = '3 s', length = '4 s' }]" } else { "" };
        format!("{{ rate = '1 Mbit/s', delay = '20 ms'{outage} }}")
    };
    let [forward, reverse] = interrupted.map(direction);
    format!(
        "[link.radio-{qos}]\nfrom = 'client-{qos}'\nto = 'broker'\n\
         forward = {forward}\nreverse = {reverse}\n\
         [flow.publish-{qos}]\nfrom = 'client-{qos}'\nto = 'broker'\n\
         load.mqtt = {{ size = '200 B', every = '500 ms', synchronised = true, qos = {qos}, \
         keep_alive = '1 s' }}\n\
         reconnect = {{ timeout = '500 ms', pause = '500 ms', factor = 1 }}\n\
         [flow.deliver-{qos}]\nfrom = 'centre'\nto = 'broker'\n\
         load.mqtt_subscription.publications = 'publish-{qos}'\n"
    )
}

#[test]
fn the_quality_of_service_decides_over_losses_and_duplicates() {
    let text = format!(
        "title = 't'\nduration = '12 s'\n\
         [node]\nclient-0 = {{}}\nclient-1 = {{}}\nclient-2 = {{}}\nbroker = {{}}\ncentre = {{}}\n\
         [link.lan]\nfrom = 'broker'\nto = 'centre'\n\
         both = {{ rate = '10 Mbit/s', delay = '1 ms' }}\n\
         {}{}{}",
        client(0, [true; 2]),
        client(1, [false, true]),
        client(2, [false, true])
    );
    let Some(answer) = run_with(&text, Emu::default()) else { return };
    let count = |name: &str, qos: u8, metric| mean(&answer, &format!("{name}-{qos}"), metric);
    for qos in 0..3 {
        assert!(count("publish", qos, Metric::ConnectionsLost) >= 1.0, "QoS {qos}");
        assert_eq!(count("deliver", qos, Metric::MessagesDue), 24.0, "QoS {qos}");
        // Messages before and after the outage.
        let arrived = count("deliver", qos, Metric::Messages);
        assert!(arrived >= 10.0, "QoS {qos}: {arrived} messages");
        assert!(count("publish", qos, Metric::Messages) >= arrived, "QoS {qos}");
        let response = if qos == 0 { 0.0 } else { 1.0 };
        assert!(count("publish", qos, Metric::Acknowledged) >= response, "QoS {qos}");
    }
    let losses = [0, 1, 2].map(|qos| count("deliver", qos, Metric::MessageLoss));
    let duplicates = [0, 1, 2].map(|qos| count("deliver", qos, Metric::DuplicateMessages));
    // The message of 3.5 s is written before the client aborts its connection, a second after a
    // probe without a response. It does not arrive, or arrives and is not acknowledged.
    assert!(losses[0] > 0.0 && losses[1..] == [0.0; 2], "{losses:?}");
    assert!(duplicates[1] >= 1.0 && [duplicates[0], duplicates[2]] == [0.0; 2], "{duplicates:?}");
    for qos in [1, 2] {
        // The messages of the outage wait for its end.
        assert!(count("deliver", qos, Metric::DelayMax) >= 2.0, "QoS {qos}");
    }
}
