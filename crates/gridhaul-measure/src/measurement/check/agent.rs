//! Values without an effect on two machines.

use super::Findings;
use crate::measurement::{
    Capture, Experiment, Measurement, MqttBrokerSource, ProtocolUnderTest, SubscriberEnd,
};

/// Settings of runs on one machine: with an agent, the network is that between both machines.
pub(super) fn check(measurement: &Measurement, found: &mut Findings) {
    let protocol = &measurement.protocol;
    let key = protocol.key();
    let mut without_effect = Vec::new();
    if let Some(connection) = protocol.broker_connection() {
        if connection.connections != 2 {
            without_effect.push(format!("{key}.connection.connections"));
        }
        if connection.subscriber != SubscriberEnd::From {
            without_effect.push(format!("{key}.connection.subscriber"));
        }
    }
    if let ProtocolUnderTest::Mqtt(mqtt) = protocol
        && let MqttBrokerSource::Rabbitmq(_) = mqtt.broker
    {
        without_effect.push(format!("{key}.broker.rabbitmq"));
    }
    if protocol.busy_poll() {
        without_effect.push(format!("{key}.busy_poll"));
    }
    let experiment = format!("experiment.{}", measurement.experiment.name());
    if let Some(record) = measurement.experiment.record() {
        let keys = [
            ("network_share", record.network_share),
            ("kernel_times", record.kernel_times),
            ("capture", record.capture == Capture::Packets),
        ];
        let set = keys.iter().filter(|(_, is_set)| *is_set);
        without_effect.extend(set.map(|(key, _)| format!("{experiment}.record.{key}")));
    }
    if let Experiment::Latency(run) | Experiment::Reliability(run) = &measurement.experiment
        && run.repetitions > 1
    {
        without_effect.push(format!("{experiment}.repetitions"));
    }
    for key in without_effect {
        found.add(key, "no effect with an agent", "leave it out, or measure on one machine");
    }
    let agent = measurement.place.agent();
    if agent.is_some_and(|agent| agent.interface.is_some()) && !protocol.has_frames() {
        let message = format!("no effect with {}", protocol.name());
        found.add("place.agent.interface", message, "leave it out; `sv` and `goose` send frames");
    }
    if let ProtocolUnderTest::Null(_) = protocol {
        let remedy = "choose a protocol over UDP, TCP or Ethernet";
        found.add(key, "null is not available on two machines", remedy);
    }
}
