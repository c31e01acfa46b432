//! Protocols under test with their settings.

use gridhaul_protocols::settings::{BrokerProgram, BrokerSettings, LIGHT_EDITION_MESSAGE};
use serde::{Deserialize, Serialize};

use super::connection::RequestedBroker;
use super::{
    Amqp10Settings, Amqp091Settings, BrokerConnection, BrokerSource, DirectConnection,
    Dnp3Settings, GivenBroker, GooseSettings, Iec104Settings, Mqtt5Settings, MqttBrokerSource,
    MqttSettings, NullSettings, SampledValuesSettings, StreamSettings, UdpSettings, VlanTag,
    XmppSettings,
};

/// Protocol under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub enum ProtocolUnderTest {
    /// Messages between two threads of the program: the floor.
    #[serde(rename = "null")]
    Null(NullSettings),
    /// One datagram for each message.
    #[serde(rename = "udp")]
    Udp(UdpSettings),
    /// MQTT 3.1.1 through a broker.
    #[serde(rename = "mqtt")]
    Mqtt(MqttSettings),
    /// MQTT 5.0 through a broker.
    #[serde(rename = "mqtt5")]
    Mqtt5(Mqtt5Settings),
    /// AMQP 0-9-1 through a broker.
    #[serde(rename = "amqp-0-9-1")]
    Amqp091(Amqp091Settings),
    /// AMQP 1.0 through a broker.
    #[serde(rename = "amqp-1.0")]
    Amqp10(Amqp10Settings),
    /// XMPP through a server, with a payload in XML Encoding Rules (XER).
    #[serde(rename = "xmpp")]
    Xmpp(XmppSettings),
    /// Modbus/TCP: a client writes registers of a server.
    #[serde(rename = "modbus-tcp")]
    ModbusTcp(StreamSettings),
    /// IEC 60870-5-104: spontaneous measured values with time tag.
    #[serde(rename = "iec-104")]
    Iec104(Iec104Settings),
    /// DNP3: events of an outstation, unsolicited or polled.
    #[serde(rename = "dnp3")]
    Dnp3(Dnp3Settings),
    /// Synchrophasors of IEEE C37.118.2 over TCP.
    #[serde(rename = "c37.118")]
    C37118(StreamSettings),
    /// ZeroMQ (ZMTP 3.0): PUSH and PULL.
    #[serde(rename = "zeromq")]
    Zeromq(StreamSettings),
    /// ZeroMQ (ZMTP 3.0): PUB and SUB.
    #[serde(rename = "zeromq-pub-sub")]
    ZeromqPubSub(StreamSettings),
    /// Scalability Protocols of nanomsg and nng: PUSH and PULL.
    #[serde(rename = "nanomsg")]
    Nanomsg(StreamSettings),
    /// Sampled Values (IEC 61850-9-2) over Ethernet.
    #[serde(rename = "sv")]
    SampledValues(SampledValuesSettings),
    /// GOOSE (IEC 61850-8-1) over Ethernet: each message is an event.
    #[serde(rename = "goose")]
    Goose(GooseSettings),
}

impl ProtocolUnderTest {
    /// Name in files and on the command line.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Null(_) => "null",
            Self::Udp(_) => "udp",
            Self::Mqtt(_) => "mqtt",
            Self::Mqtt5(_) => "mqtt5",
            Self::Amqp091(_) => "amqp-0-9-1",
            Self::Amqp10(_) => "amqp-1.0",
            Self::Xmpp(_) => "xmpp",
            Self::ModbusTcp(_) => "modbus-tcp",
            Self::Iec104(_) => "iec-104",
            Self::Dnp3(_) => "dnp3",
            Self::C37118(_) => "c37.118",
            Self::Zeromq(_) => "zeromq",
            Self::ZeromqPubSub(_) => "zeromq-pub-sub",
            Self::Nanomsg(_) => "nanomsg",
            Self::SampledValues(_) => "sv",
            Self::Goose(_) => "goose",
        }
    }

    /// Connections to the broker; `None` for a protocol without one.
    #[must_use]
    pub const fn broker_connection(&self) -> Option<&BrokerConnection> {
        match self {
            Self::Mqtt(mqtt) => Some(&mqtt.connection),
            Self::Mqtt5(mqtt) => Some(&mqtt.connection),
            Self::Amqp091(amqp) => Some(&amqp.connection),
            Self::Amqp10(amqp) => Some(&amqp.connection),
            Self::Xmpp(xmpp) => Some(&xmpp.connection),
            _ => None,
        }
    }

    /// The connection of a protocol over TCP without a broker.
    #[must_use]
    pub const fn direct_connection(&self) -> Option<&DirectConnection> {
        match self {
            Self::ModbusTcp(stream)
            | Self::C37118(stream)
            | Self::Zeromq(stream)
            | Self::ZeromqPubSub(stream)
            | Self::Nanomsg(stream) => Some(&stream.connection),
            Self::Iec104(settings) => Some(&settings.connection),
            Self::Dnp3(settings) => Some(&settings.connection),
            _ => None,
        }
    }

    /// Whether messages pass through a broker.
    #[must_use]
    pub const fn has_broker(&self) -> bool {
        self.broker_connection().is_some()
    }

    /// Whether the protocol runs over TCP.
    #[must_use]
    pub const fn is_stream(&self) -> bool {
        self.has_broker() || self.direct_connection().is_some()
    }

    /// Whether the protocol runs over Ethernet.
    #[must_use]
    pub const fn has_frames(&self) -> bool {
        matches!(self, Self::SampledValues(_) | Self::Goose(_))
    }

    /// VLAN tag of the frames.
    #[must_use]
    pub const fn vlan(&self) -> Option<VlanTag> {
        match self {
            Self::SampledValues(settings) => settings.vlan,
            Self::Goose(settings) => settings.vlan,
            _ => None,
        }
    }

    /// Whether the receiver polls its socket.
    #[must_use]
    pub const fn busy_poll(&self) -> bool {
        matches!(self, Self::Udp(UdpSettings { busy_poll: true }))
    }

    /// Bytes of a message that the data set determines.
    pub(crate) fn fixed_bytes(&self) -> Option<usize> {
        match self {
            Self::SampledValues(settings) => {
                settings.data_set.light_edition().map(|_| LIGHT_EDITION_MESSAGE)
            }
            _ => None,
        }
    }

    /// The broker that the measurement requests; `None` for a protocol without one.
    pub(crate) fn requested_broker(&self) -> Option<RequestedBroker<'_>> {
        let nodelay = self.broker_connection()?.nodelay.at_broker();
        let started =
            |program, tls| Some(RequestedBroker::Started(program, BrokerSettings { nodelay, tls }));
        let source = |broker: &'_ BrokerSource, program| match broker {
            BrokerSource::Started(broker) => started(program, broker.tls),
            BrokerSource::Given(_) => None,
        };
        let given = self.given_broker().map(RequestedBroker::Given);
        given.or_else(|| match self {
            Self::Mqtt(mqtt) => match &mqtt.broker {
                MqttBrokerSource::Mosquitto(broker) => {
                    started(BrokerProgram::Mosquitto, broker.tls)
                }
                MqttBrokerSource::Rabbitmq(broker) => started(BrokerProgram::RabbitMq, broker.tls),
                MqttBrokerSource::Given(_) => None,
            },
            Self::Mqtt5(mqtt) => source(&mqtt.broker, BrokerProgram::Mosquitto),
            Self::Amqp091(amqp) => source(&amqp.broker, BrokerProgram::RabbitMq),
            Self::Amqp10(amqp) => source(&amqp.broker, BrokerProgram::RabbitMq),
            Self::Xmpp(xmpp) => source(&xmpp.broker, BrokerProgram::Prosody),
            _ => None,
        })
    }

    /// Whether the connections to the broker use TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        match self.requested_broker() {
            Some(RequestedBroker::Started(_, settings)) => settings.tls,
            Some(RequestedBroker::Given(broker)) => broker.url.requests_tls(),
            None => false,
        }
    }

    /// The running broker that is given, for changes.
    pub(crate) const fn given_broker_mut(&mut self) -> Option<&mut GivenBroker> {
        let source = match self {
            Self::Mqtt(mqtt) => {
                return match &mut mqtt.broker {
                    MqttBrokerSource::Given(broker) => Some(broker),
                    _ => None,
                };
            }
            Self::Mqtt5(mqtt) => &mut mqtt.broker,
            Self::Amqp091(amqp) => &mut amqp.broker,
            Self::Amqp10(amqp) => &mut amqp.broker,
            Self::Xmpp(xmpp) => &mut xmpp.broker,
            _ => return None,
        };
        match source {
            BrokerSource::Given(broker) => Some(broker),
            BrokerSource::Started(_) => None,
        }
    }

    /// The running broker that is given.
    pub(crate) const fn given_broker(&self) -> Option<&GivenBroker> {
        let source = match self {
            Self::Mqtt(mqtt) => {
                return match &mqtt.broker {
                    MqttBrokerSource::Given(broker) => Some(broker),
                    _ => None,
                };
            }
            Self::Mqtt5(mqtt) => &mqtt.broker,
            Self::Amqp091(amqp) => &amqp.broker,
            Self::Amqp10(amqp) => &amqp.broker,
            Self::Xmpp(xmpp) => &xmpp.broker,
            _ => return None,
        };
        match source {
            BrokerSource::Given(broker) => Some(broker),
            BrokerSource::Started(_) => None,
        }
    }
}
