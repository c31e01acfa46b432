//! The clients of rumqttc for MQTT 3.1.1 and 5.0, which have types of their own, behind one interface.

use std::net::SocketAddr;
use std::time;

use bytes::Bytes;
use rumqttc::v5;
use rumqttc::{Client, Connection, Event, MqttOptions, NetworkOptions, Packet, QoS};

use super::{Mqtt, QualityOfService, Version};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Least time for which a client waits for a connection, and for space in its send buffer.
const WRITE_WITHIN_SECONDS: u64 = 10;

/// Messages that a client queues.
const QUEUE: usize = 100_000;

/// Messages without an acknowledgement, for QoS 1: enough for 10,000 messages per second over a round-trip time of one
/// second, so that the window does not limit the rate.
const IN_FLIGHT: u16 = 10_000;

/// Largest packet.
const PACKET_MAX: u32 = 1 << 20;

/// What an event loop reports.
pub(super) enum Notice {
    /// The broker has accepted the connection.
    Connected,
    /// The broker has accepted the subscription.
    Subscribed,
    /// A message.
    Message(Bytes),
    /// Anything else.
    Other,
}

/// The sending handle of a client.
#[derive(Clone)]
pub(super) enum Handle {
    V3(Client),
    V5(v5::Client),
}

/// The event loop of a client.
pub(super) enum EventLoop {
    V3(Box<Connection>),
    V5(Box<v5::Connection>),
}

/// A client that is not connected yet.
pub(super) fn client(settings: &Mqtt, role: &str) -> (Handle, EventLoop) {
    let name = format!("{}-{role}", settings.topic);
    let (host, port) = (host(settings.broker.address), settings.broker.address.port());
    let keep_alive = time::Duration::from_nanos(settings.keep_alive.as_nanos());
    let mut network = NetworkOptions::new();
    network.set_tcp_nodelay(settings.nodelay);
    // rumqttc closes a connection on which it cannot write for this long, and its default of 5 s would lose what TCP
    // delivers after an outage. A broker waits for one and a half keep-alive intervals (MQTT 3.1.1, section 3.1.2.10).
    let patience = settings.keep_alive.mul_f64(1.5).as_nanos().div_ceil(NANOS_PER_SECOND);
    network.set_connection_timeout(patience.max(WRITE_WITHIN_SECONDS));
    let credentials = settings.broker.credentials.as_ref();
    match settings.version {
        Version::V3 => {
            let mut options = MqttOptions::new(name, host, port);
            let packet_max = PACKET_MAX as usize;
            options.set_keep_alive(keep_alive).set_inflight(IN_FLIGHT);
            options.set_max_packet_size(packet_max, packet_max);
            if let Some(it) = credentials {
                options.set_credentials(&it.user, &it.password);
            }
            let (client, mut connection) = Client::new(options, QUEUE);
            connection.eventloop.set_network_options(network);
            (Handle::V3(client), EventLoop::V3(Box::new(connection)))
        }
        Version::V5 => {
            let mut options = v5::MqttOptions::new(name, host, port);
            options.set_keep_alive(keep_alive).set_outgoing_inflight_upper_limit(IN_FLIGHT);
            options.set_max_packet_size(Some(PACKET_MAX)).set_network_options(network);
            if let Some(it) = credentials {
                options.set_credentials(&it.user, &it.password);
            }
            let (client, connection) = v5::Client::new(options, QUEUE);
            (Handle::V5(client), EventLoop::V5(Box::new(connection)))
        }
    }
}

/// The host as rumqttc parses it, with brackets around an IPv6 address.
fn host(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

/// A request that the client did not accept: its queue is full, or its event loop has ended.
pub(super) struct NotAccepted;

impl Handle {
    pub(super) fn publish(
        &self,
        topic: &str,
        qos: QualityOfService,
        message: &[u8],
    ) -> Result<(), NotAccepted> {
        match self {
            Self::V3(client) => {
                client.try_publish(topic, qos.v3(), false, message).map_err(|_| NotAccepted)
            }
            Self::V5(client) => {
                let message = Bytes::copy_from_slice(message);
                client.try_publish(topic, qos.v5(), false, message).map_err(|_| NotAccepted)
            }
        }
    }

    pub(super) fn subscribe(&self, topic: &str, qos: QualityOfService) -> Result<(), NotAccepted> {
        match self {
            Self::V3(client) => client.try_subscribe(topic, qos.v3()).map_err(|_| NotAccepted),
            Self::V5(client) => client.try_subscribe(topic, qos.v5()).map_err(|_| NotAccepted),
        }
    }

    pub(super) fn disconnect(&self) {
        // Without a connection the event loop notices the end at its next attempt.
        match self {
            Self::V3(client) => drop(client.try_disconnect()),
            Self::V5(client) => drop(client.try_disconnect()),
        }
    }
}

impl EventLoop {
    /// Waits for an event; `None` if all handles of the client are gone.
    pub(super) fn next(&mut self) -> Option<Result<Notice, String>> {
        match self {
            Self::V3(connection) => Some(match connection.recv().ok()? {
                Ok(Event::Incoming(packet)) => Ok(match packet {
                    Packet::ConnAck(_) => Notice::Connected,
                    Packet::SubAck(_) => Notice::Subscribed,
                    Packet::Publish(publish) => Notice::Message(publish.payload),
                    _ => Notice::Other,
                }),
                Ok(Event::Outgoing(_)) => Ok(Notice::Other),
                Err(error) => Err(error.to_string()),
            }),
            Self::V5(connection) => Some(match connection.recv().ok()? {
                Ok(v5::Event::Incoming(packet)) => Ok(match packet {
                    v5::mqttbytes::v5::Packet::ConnAck(_) => Notice::Connected,
                    v5::mqttbytes::v5::Packet::SubAck(_) => Notice::Subscribed,
                    v5::mqttbytes::v5::Packet::Publish(publish) => Notice::Message(publish.payload),
                    _ => Notice::Other,
                }),
                Ok(v5::Event::Outgoing(_)) => Ok(Notice::Other),
                Err(error) => Err(error.to_string()),
            }),
        }
    }
}

impl QualityOfService {
    const fn v3(self) -> QoS {
        match self {
            Self::AtMostOnce => QoS::AtMostOnce,
            Self::AtLeastOnce => QoS::AtLeastOnce,
        }
    }

    const fn v5(self) -> v5::mqttbytes::QoS {
        match self {
            Self::AtMostOnce => v5::mqttbytes::QoS::AtMostOnce,
            Self::AtLeastOnce => v5::mqttbytes::QoS::AtLeastOnce,
        }
    }
}
