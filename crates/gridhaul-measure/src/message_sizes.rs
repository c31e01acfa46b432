//! Bytes of a message in each protocol by layer, on the publisher's leg, by formula.
//!
//! Names of topics and streams, which are a part of each message, are those of the report RESERVE
//! D4.6, so that its tables and other messages are comparable.

use gridhaul_protocols::modbus;
use gridhaul_protocols::overhead::{
    LayerBytes, LowerLayers, amqp_0_9_1, amqp_1_0, direct, mqtt, sampled_values, xmpp,
};

/// Topic `test-topic`, MQTT 3.1.1, QoS 0.
pub const MQTT_PUBLISH: mqtt::Publish =
    mqtt::Publish { topic: 10, version_5: false, identified: false };

/// Exchange `mytestexchange` and routing key `abc`, both with the terminating NUL that VILLASnode
/// sends, and a consumer tag of RabbitMQ.
pub const AMQP_NAMES: amqp_0_9_1::Names =
    amqp_0_9_1::Names { exchange: 15, routing_key: 4, consumer_tag: 31 };

/// `svID` and `datSet` of 8 characters together, such as `1234` and a node name of 4.
pub const SAMPLED_VALUES_NAMES: sampled_values::Names =
    sampled_values::Names { id: 4, data_set: Some(4) };

/// Address of a receiver of XMPP: `gridhaul@localhost/subscriber`. One that only sends does not
/// appear in its stanzas.
const STANZA: xmpp::Stanza = xmpp::Stanza { to: 29, from: 28, language: 2 };

/// A message of this payload in each protocol: one packet without acknowledgement, with the names
/// of the report, and for AMQP 1.0 link 0 and delivery numbers above 255 with a tag of 4 bytes.
#[must_use]
pub fn message_sizes(payload: u64) -> Vec<(&'static str, LayerBytes)> {
    let version_5 = mqtt::Publish { version_5: true, ..MQTT_PUBLISH };
    let transfer = amqp_1_0::Transfer { handle: 0, delivery: 256, tag: 4 };
    let (frame, udp, tcp) = (LowerLayers::ETHERNET, LowerLayers::UDP_IPV4, LowerLayers::TCP_IPV4);
    let protocols = [
        ("Sampled Values", frame, SAMPLED_VALUES_NAMES.overhead(payload)),
        ("UDP", udp, 0),
        ("MQTT 3.1.1, QoS 0", tcp, MQTT_PUBLISH.overhead(payload)),
        ("MQTT 5.0, QoS 0", tcp, version_5.overhead(payload)),
        ("AMQP 1.0", tcp, transfer.overhead(payload)),
        ("AMQP 0-9-1", tcp, AMQP_NAMES.publish_overhead()),
        ("IEC 60870-5-104", tcp, direct::iec104(payload)),
        ("DNP3", tcp, direct::dnp3(payload)),
        ("C37.118.2", tcp, direct::synchrophasor(payload)),
        ("ZeroMQ", tcp, direct::zeromq(payload)),
        ("nanomsg", tcp, direct::nanomsg(payload)),
        ("XMPP, XER", tcp, STANZA.publish_overhead(payload)),
    ];
    // Modbus has no requests for longer messages.
    let modbus = (payload <= modbus::MESSAGE_MAX as u64)
        .then(|| ("Modbus/TCP", tcp, direct::modbus(payload)));
    let bytes = |(name, lower, protocol): (_, _, u64)| {
        (name, LayerBytes::new(lower, 1.0, protocol as f64, payload as f64))
    };
    protocols.into_iter().chain(modbus).map(bytes).collect()
}
