//! A client of MQTT 3.1.1 and 5.0, as a machine without input or output. The packets are those of rumqttc.

mod packet;

use std::collections::BTreeSet;

use bytes::BytesMut;
use gridhaul_protocols::endpoint::{Endpoint, EndpointError, NotSent, Queues};
use gridhaul_scenario::units::{Duration, Instant};

use super::client::Role;
use crate::broker::BrokerAddress;
use crate::settings::{ClientSettings, Mqtt, QualityOfService};

use packet::{Incoming, Outgoing, PACKET_MAX, Packets};

/// Name of the protocol in errors.
const NAME: &str = "mqtt";

/// Messages without an acknowledgement, for QoS 1: enough for 10,000 messages per second over a round-trip time of one
/// second, so that the window does not limit the rate.
const IN_FLIGHT: u16 = 10_000;

/// Bytes of a packet besides topic and message: the longest fixed header, lengths, identifier and an empty list of properties.
const HEADERS_MAX: usize = 16;

/// Packet identifier of the subscription. Messages have others, so that an acknowledgement is unambiguous.
const SUBSCRIPTION: u16 = u16::MAX;

/// The client. Each connection is a session of its own (clean session, MQTT 3.1.1, section 3.1.2.4): messages that are not
/// acknowledged when it is lost are not retransmitted.
#[derive(Debug)]
pub(super) struct Client {
    packets: Packets,
    subscribes: bool,
    queues: Queues,
    input: BytesMut,
    output: BytesMut,
    state: State,
    /// Packet identifiers of messages without an acknowledgement.
    in_flight: BTreeSet<u16>,
    window: u16,
    last_identifier: u16,
    last_output: Instant,
    last_input: Instant,
    keep_alive: Duration,
    /// Time of a ping that is not answered.
    pinged: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Subscribing,
    Ready,
}

impl Client {
    /// A client that is not connected.
    pub(super) fn new(
        settings: &ClientSettings,
        mqtt: Mqtt,
        broker: &BrokerAddress,
        role: Role,
    ) -> Self {
        let seconds = settings.keep_alive.as_secs_f64().ceil();
        Self {
            packets: Packets {
                version: mqtt.version,
                qos: mqtt.qos,
                client: format!("{}-{}", settings.name, role.name),
                topic: settings.name.clone(),
                // 0 would turn the detection of lost clients off.
                keep_alive_s: seconds.clamp(1.0, f64::from(u16::MAX)) as u16,
                credentials: broker.credentials.clone(),
            },
            subscribes: role.subscribes,
            queues: Queues::default(),
            input: BytesMut::new(),
            output: BytesMut::new(),
            state: State::Connecting,
            in_flight: BTreeSet::new(),
            window: IN_FLIGHT,
            last_identifier: 0,
            last_output: Instant::ZERO,
            last_input: Instant::ZERO,
            keep_alive: settings.keep_alive,
            pinged: None,
        }
    }

    fn handle(&mut self, packet: Incoming) -> Result<(), EndpointError> {
        match (self.state, packet) {
            (State::Connecting, Incoming::Accepted(maximum)) => {
                self.window = IN_FLIGHT.min(maximum);
                if self.subscribes {
                    self.state = State::Subscribing;
                    return self.write(Outgoing::Subscribe(SUBSCRIPTION));
                }
                self.state = State::Ready;
            }
            (State::Subscribing, Incoming::Subscribed) => self.state = State::Ready,
            // A message may arrive before the subscription is confirmed (MQTT 3.1.1, section 3.8.4).
            (State::Subscribing | State::Ready, Incoming::Message(identifier, message)) => {
                self.queues.messages.push_back(message.into());
                return match identifier {
                    Some(identifier) => self.write(Outgoing::Acknowledge(identifier)),
                    None => Ok(()),
                };
            }
            (State::Ready, Incoming::Acknowledged(identifier)) => {
                if !self.in_flight.remove(&identifier) {
                    return Err(invalid(format!("{identifier} is acknowledged and was not sent")));
                }
            }
            (_, Incoming::Pong) => self.pinged = None,
            (_, Incoming::Refused(reason)) => {
                return Err(invalid(format!("the broker has refused the {reason}")));
            }
            (state, packet) => {
                return Err(invalid(format!("{packet:?} in the state {state:?}")));
            }
        }
        Ok(())
    }

    fn write(&mut self, packet: Outgoing<'_>) -> Result<(), EndpointError> {
        self.packets.write(packet, &mut self.output).map_err(invalid)?;
        self.queues.output.extend_from_slice(&self.output);
        self.output.clear();
        Ok(())
    }

    /// The next packet identifier that no unacknowledged message has.
    fn identifier(&mut self) -> u16 {
        loop {
            self.last_identifier = self.last_identifier % (SUBSCRIPTION - 1) + 1;
            if self.in_flight.insert(self.last_identifier) {
                return self.last_identifier;
            }
        }
    }
}

impl Endpoint for Client {
    fn open(&mut self, now: Instant) {
        self.queues.clear();
        self.input.clear();
        self.in_flight.clear();
        self.state = State::Connecting;
        (self.last_output, self.last_input) = (now, now);
        self.pinged = None;
        // The first packet is shorter than the limit, because names and passwords are.
        let _ = self.write(Outgoing::Connect);
    }

    fn handle_input(&mut self, bytes: &[u8], now: Instant) -> Result<(), EndpointError> {
        self.last_input = now;
        self.input.extend_from_slice(bytes);
        while let Some(packet) = self.packets.read(&mut self.input).map_err(invalid)? {
            self.handle(packet)?;
        }
        Ok(())
    }

    fn handle_time(&mut self, now: Instant) -> Result<(), EndpointError> {
        if self.pinged.is_some_and(|at| now >= at + self.keep_alive) {
            let within_s = self.keep_alive.as_secs_f64().ceil() as u64;
            return Err(EndpointError::Timeout { protocol: NAME, timer: "keep alive", within_s });
        }
        // The broker expects a packet within the interval (section 3.1.2.10). A client that only publishes at most once receives nothing
        // and would not notice that the broker is gone: it expects a packet within the interval as well.
        let is_due = now >= self.last_output.min(self.last_input) + self.keep_alive;
        if self.state == State::Ready && self.pinged.is_none() && is_due {
            self.last_output = now;
            self.pinged = Some(now);
            return self.write(Outgoing::Ping);
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    fn publish(&mut self, message: &[u8], now: Instant) -> Result<(), NotSent> {
        if !self.is_ready() {
            return Err(NotSent::NotReady);
        }
        let most = (PACKET_MAX as usize).saturating_sub(HEADERS_MAX + self.packets.topic.len());
        if message.len() > most {
            return Err(NotSent::TooLong(most));
        }
        let identifier = match self.packets.qos {
            QualityOfService::AtMostOnce => 0,
            QualityOfService::AtLeastOnce if self.in_flight.len() >= usize::from(self.window) => {
                return Err(NotSent::WindowFull);
            }
            QualityOfService::AtLeastOnce => self.identifier(),
        };
        self.last_output = now;
        self.write(Outgoing::Publish(identifier, message)).map_err(|_| NotSent::TooLong(most))
    }

    fn queues(&mut self) -> &mut Queues {
        &mut self.queues
    }

    fn close(&mut self) {
        // The packet has no contents that could be too long.
        let _ = self.write(Outgoing::Disconnect);
    }
}

fn invalid(reason: impl Into<String>) -> EndpointError {
    EndpointError::Invalid { protocol: NAME, reason: reason.into() }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
