//! Inconsistent values of protocols.

use gridhaul_protocols::settings::{GOOSE_MESSAGE_MAX, SAMPLED_VALUES_MESSAGE_MAX};
use gridhaul_protocols::{c37_118, dnp3, iec104, modbus};

use super::Findings;
use crate::measurement::{
    GivenBroker, GooseRetransmission, Measurement, ProtocolUnderTest, Reconnect, limits,
};

pub(super) fn check(measurement: &Measurement, found: &mut Findings) {
    let protocol = &measurement.protocol;
    let key = protocol.key();
    if let Some(connection) = protocol.broker_connection() {
        let key = format!("{key}.connection");
        found.within(format!("{key}.connections"), connection.connections, &(1..=2));
        found.range(format!("{key}.keep_alive"), limits::whole_seconds(connection.keep_alive));
        check_reconnect(&key, connection.reconnect, found);
    }
    if let Some(connection) = protocol.direct_connection() {
        check_reconnect(&format!("{key}.connection"), connection.reconnect, found);
    }
    if let Some(broker) = protocol.given_broker() {
        check_broker(protocol, broker, found);
    }
    if let Some(vlan) = protocol.vlan() {
        found.within(format!("{key}.vlan.id"), vlan.id, &(0..=limits::VLAN_MAX));
        found.within(format!("{key}.vlan.priority"), vlan.priority, &(0..=7));
    }
    match protocol {
        ProtocolUnderTest::Mqtt(mqtt) => found.within(format!("{key}.qos"), mqtt.qos, &(0..=1)),
        ProtocolUnderTest::Mqtt5(mqtt) => found.within(format!("{key}.qos"), mqtt.qos, &(0..=1)),
        ProtocolUnderTest::Iec104(settings) => {
            found.range(format!("{key}.k"), settings.window().check());
        }
        ProtocolUnderTest::Dnp3(settings) => {
            if let Some(interval) = settings.poll {
                found.range(format!("{key}.poll"), limits::poll_interval(interval));
            }
        }
        ProtocolUnderTest::Goose(settings) => {
            check_retransmission(&key, settings.retransmission, found);
        }
        _ => {}
    }
}

fn check_reconnect(key: &str, reconnect: Reconnect, found: &mut Findings) {
    if let Reconnect::After(time) = reconnect {
        found.range(format!("{key}.reconnect.after"), limits::positive(time));
    }
}

fn check_retransmission(key: &str, retransmission: GooseRetransmission, found: &mut Findings) {
    let GooseRetransmission::Doubling(intervals) = retransmission else { return };
    let key = format!("{key}.retransmission.doubling");
    found.range(format!("{key}.after"), limits::packet_interval(intervals.after));
    found.range(format!("{key}.every"), limits::packet_interval(intervals.every));
    if intervals.after > intervals.every {
        found.add(
            format!("{key}.after"),
            format!(
                "the first retransmission after {} is later than the longest interval of {}",
                intervals.after, intervals.every
            ),
            "choose a shorter time, or a longer interval (--retransmit-every)",
        );
    }
}

/// Scheme and certificate of a running broker.
fn check_broker(protocol: &ProtocolUnderTest, broker: &GivenBroker, found: &mut Findings) {
    let key = format!("{}.broker.given", protocol.key());
    let expected = protocol.scheme();
    if let Some(scheme) = broker.url.scheme()
        && scheme.strip_suffix('s').unwrap_or(scheme) != expected
    {
        found.add(
            format!("{key}.url"),
            format!("{scheme}:// is not a scheme of {}", protocol.name()),
            format!("use {expected}://, {expected}s:// with TLS, or HOST:PORT"),
        );
    }
    match (&broker.ca, broker.url.requests_tls()) {
        (None, true) => found.add(
            format!("{key}.url"),
            "a scheme with TLS needs the certificate of an authority",
            "add --ca FILE or the key `ca`, such as /etc/ssl/certs/ca-certificates.crt for the \
             authorities of this system",
        ),
        (Some(_), false) => found.add(
            format!("{key}.ca"),
            "the scheme of the broker does not request TLS",
            "use mqtts://, amqps:// or xmpps://",
        ),
        _ => {}
    }
}

impl ProtocolUnderTest {
    /// The key of its table.
    pub(super) fn key(&self) -> String {
        let name = self.name();
        if name.contains('.') { format!("protocol.\"{name}\"") } else { format!("protocol.{name}") }
    }

    /// Bytes of the longest message.
    pub(super) const fn longest_message(&self) -> usize {
        match self {
            Self::Iec104(_) => iec104::MESSAGE_MAX,
            Self::Dnp3(_) => dnp3::MESSAGE_MAX,
            Self::C37118(_) => c37_118::MESSAGE_MAX,
            Self::ModbusTcp(_) => modbus::MESSAGE_MAX,
            Self::SampledValues(_) => SAMPLED_VALUES_MESSAGE_MAX,
            Self::Goose(_) => GOOSE_MESSAGE_MAX,
            // The range of `message.bytes`.
            Self::Null(_) | Self::Udp(_) | Self::Mqtt(_) | Self::Mqtt5(_) | Self::Amqp091(_) => {
                usize::MAX
            }
            Self::Amqp10(_) | Self::Xmpp(_) | Self::Zeromq(_) => usize::MAX,
            Self::ZeromqPubSub(_) | Self::Nanomsg(_) => usize::MAX,
        }
    }

    /// Scheme in the URL of a broker, without TLS.
    const fn scheme(&self) -> &'static str {
        match self {
            Self::Amqp091(_) | Self::Amqp10(_) => "amqp",
            Self::Xmpp(_) => "xmpp",
            _ => "mqtt",
        }
    }

    /// Whether the simulator can carry the messages.
    pub(super) const fn can_be_simulated(&self) -> bool {
        match self {
            Self::Udp(_) | Self::Mqtt(_) | Self::Mqtt5(_) | Self::Amqp091(_) | Self::C37118(_) => {
                true
            }
            Self::Zeromq(_) | Self::ZeromqPubSub(_) | Self::Nanomsg(_) => true,
            Self::Null(_) | Self::Amqp10(_) | Self::Xmpp(_) | Self::ModbusTcp(_) => false,
            Self::Iec104(_) | Self::Dnp3(_) | Self::SampledValues(_) | Self::Goose(_) => false,
        }
    }
}
