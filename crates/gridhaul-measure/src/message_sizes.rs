//! Bytes of a message in each protocol by layer, on the publisher's leg, by formula.
//!
//! Names of topics and streams, which are a part of each message, are those of the report RESERVE
//! D4.6, so that its tables and other messages are comparable.

use std::net::SocketAddr;

use gridhaul_protocols::modbus;
use gridhaul_protocols::overhead::{
    LayerBytes, LowerLayers, amqp_0_9_1, amqp_1_0, direct, mqtt, sampled_values, xmpp,
};

use crate::settings::Settings;

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

/// A message of a run with these settings, whose topics and addresses contain the name `client`,
/// and its protocol; `None` if no formula or not all names are known.
pub(crate) fn message_of_run(
    protocol: &str,
    settings: &Settings,
    client: &str,
    payload: u64,
) -> Option<(String, LayerBytes)> {
    let mqtt = |version: &str| {
        let qos = settings.get("qos")?;
        let topic = client.len() as u64;
        let (version_5, identified) = (version == "5.0", qos != "0");
        let overhead = mqtt::Publish { topic, version_5, identified }.overhead(payload);
        Some((format!("MQTT {version}, QoS {qos}"), LowerLayers::TCP_IPV4, overhead))
    };
    let (name, mut lower, overhead) = match protocol {
        "udp" => ("UDP".to_owned(), LowerLayers::UDP_IPV4, 0),
        "mqtt" => mqtt("3.1.1")?,
        "mqtt5" => mqtt("5.0")?,
        "sv" if settings.get("data_set") == Some("raw") => {
            let id = settings.get("sv_id")?.len() as u64;
            let overhead = sampled_values::Names { id, data_set: None }.overhead(payload);
            ("Sampled Values".to_owned(), LowerLayers::ETHERNET, overhead)
        }
        // The account at another server is not in the settings.
        "xmpp" if settings.get("broker_program") == Some("prosody") => {
            let to = format!("gridhaul@localhost/{client}-subscriber").len() as u64;
            let overhead = xmpp::Stanza { to, ..STANZA }.publish_overhead(payload);
            ("XMPP, XER".to_owned(), LowerLayers::TCP_IPV4, overhead)
        }
        _ => return None,
    };
    if settings.get("vlan").is_some_and(|tag| tag != "none") {
        lower.ethernet += VLAN_TAG;
    }
    let broker = settings.get("broker").and_then(|broker| broker.parse::<SocketAddr>().ok());
    if broker.is_some_and(|broker| broker.is_ipv6()) {
        lower.ip = IPV6_HEADER;
    }
    Some((name, LayerBytes::new(lower, 1.0, overhead as f64, payload as f64)))
}

/// Bytes of a VLAN tag (IEEE 802.1Q).
const VLAN_TAG: u64 = 4;

/// Bytes of an IPv6 header without extensions (RFC 8200, section 3).
const IPV6_HEADER: u64 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn of_run(protocol: &str, settings: &[(&str, &str)]) -> Option<(String, LayerBytes)> {
        let settings = settings.iter().copied().collect();
        message_of_run(protocol, &settings, "gridhaul-123456", 132)
    }

    /// The names and options are those of the run, not those of the report RESERVE.
    #[test]
    fn the_bytes_of_a_message_are_those_of_the_run() {
        let (name, bytes) = of_run("mqtt", &[("qos", "1"), ("broker", "127.0.0.1:1")]).unwrap();
        // Fixed header of 3 bytes, length of the topic in 2 bytes, topic, identifier.
        assert_eq!((name.as_str(), bytes.protocol), ("MQTT 3.1.1, QoS 1", 3.0 + 2.0 + 15.0 + 2.0));
        let (name, bytes) = of_run("mqtt5", &[("qos", "0"), ("broker", "[::1]:1")]).unwrap();
        assert_eq!((name.as_str(), bytes.protocol), ("MQTT 5.0, QoS 0", 3.0 + 2.0 + 15.0 + 1.0));
        assert_eq!((bytes.ip, bytes.transport), (40.0, 32.0));
        let raw = [("sv_id", "gridhaul"), ("data_set", "raw")];
        let tagged = [&raw[..], &[("vlan", "5, priority 4")]].concat();
        let [plain, tagged] = [&raw[..], &tagged].map(|settings| of_run("sv", settings).unwrap().1);
        assert_eq!((plain.ethernet, tagged.ethernet), (14.0, 18.0));
        let names = sampled_values::Names { id: 8, data_set: None };
        assert_eq!(plain.protocol, names.overhead(132) as f64);
        assert_eq!(of_run("sv", &[("sv_id", "gridhaul"), ("data_set", "raw, datSet x")]), None);
    }

    #[test]
    fn an_address_that_is_not_known_has_no_bytes() {
        let (_, bytes) = of_run("xmpp", &[("broker_program", "prosody")]).unwrap();
        let to = "gridhaul@localhost/gridhaul-123456-subscriber".len() as u64;
        assert_eq!(bytes.protocol, xmpp::Stanza { to, ..STANZA }.publish_overhead(132) as f64);
        assert_eq!(of_run("xmpp", &[("broker", "192.0.2.1:5222")]), None);
        assert_eq!(of_run("modbus-tcp", &[]), None);
    }
}
