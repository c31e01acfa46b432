//! A client as a machine without input or output.

use std::collections::BTreeSet;
use std::fmt;

use gridhaul_scenario::units::{Duration, Instant};

use super::{BrokerPacket, ClientPacket, Login, PacketReader, QualityOfService, Version};
use crate::endpoint::{Endpoint, EndpointError, NotSent, Queues};

/// Name of the protocol in errors.
const NAME: &str = "mqtt";

/// Longest packet, so that memory stays bounded.
const PACKET_MAX: usize = 1 << 20;

/// Messages without an acknowledgement, for QoS 1: enough for 10,000 messages per second over a
/// round-trip time of one second, so that the window does not limit the rate.
const IN_FLIGHT: u16 = 10_000;

/// Bytes of a packet besides topic and message: the longest fixed header, lengths, identifier and
/// an empty list of properties.
const HEADERS_MAX: usize = 16;

/// Packet identifier of the subscription. Messages have others, so that an acknowledgement is
/// unambiguous.
const SUBSCRIPTION: u16 = u16::MAX;

/// A client, its account and its topic.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Version of the protocol.
    pub version: Version,
    /// Quality of service of the messages and of the subscription.
    pub quality: QualityOfService,
    /// Name of the client, which no other client of the broker has.
    pub client: String,
    /// Topic to which messages are sent, and which a subscriber receives.
    pub topic: String,
    /// Whether the client subscribes to the topic.
    pub subscribes: bool,
    /// User name and password; `None` for an anonymous client.
    pub login: Option<(String, String)>,
    /// Time without a packet after which the client sends a ping.
    pub keep_alive: Duration,
}

impl Settings {
    /// The interval in CONNECT. 0 would turn the detection of lost clients off.
    fn keep_alive_s(&self) -> u16 {
        self.keep_alive.as_secs_f64().ceil().clamp(1.0, f64::from(u16::MAX)) as u16
    }
}

/// Passwords are not for logs.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Settings");
        fields.field("version", &self.version).field("quality", &self.quality);
        fields.field("client", &self.client).field("topic", &self.topic);
        fields.field("subscribes", &self.subscribes).field("keep_alive", &self.keep_alive);
        fields.finish_non_exhaustive()
    }
}

/// The client. Each connection is a session of its own (clean session, section 3.1.2.4): messages
/// that are not acknowledged when it is lost are not retransmitted.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    queues: Queues,
    reader: PacketReader,
    state: State,
    /// Packet identifiers of messages without an acknowledgement.
    in_flight: BTreeSet<u16>,
    window: u16,
    last_identifier: u16,
    last_output: Instant,
    last_input: Instant,
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
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            reader: PacketReader::new(settings.version, PACKET_MAX),
            settings,
            queues: Queues::default(),
            state: State::Connecting,
            in_flight: BTreeSet::new(),
            window: IN_FLIGHT,
            last_identifier: 0,
            last_output: Instant::ZERO,
            last_input: Instant::ZERO,
            pinged: None,
        }
    }

    fn handle(&mut self, packet: BrokerPacket) -> Result<(), EndpointError> {
        match (self.state, packet) {
            (State::Connecting, BrokerPacket::Accepted { receive_maximum }) => {
                self.window = IN_FLIGHT.min(receive_maximum);
                if self.settings.subscribes {
                    self.state = State::Subscribing;
                    self.subscribe();
                } else {
                    self.state = State::Ready;
                }
            }
            (State::Subscribing, BrokerPacket::Subscribed) => self.state = State::Ready,
            // A message may arrive before the subscription is confirmed (section 3.8.4).
            (State::Subscribing | State::Ready, BrokerPacket::Message { identifier, payload }) => {
                self.queues.messages.push_back(payload);
                if let Some(identifier) = identifier {
                    self.write(ClientPacket::Acknowledge(identifier));
                }
            }
            (State::Ready, BrokerPacket::Acknowledged(identifier)) => {
                if !self.in_flight.remove(&identifier) {
                    return Err(invalid(format!("{identifier} is acknowledged and was not sent")));
                }
            }
            (_, BrokerPacket::Pong) => self.pinged = None,
            (_, BrokerPacket::Refused(reason)) => {
                return Err(invalid(format!("the broker refuses the connection: {reason}")));
            }
            (_, BrokerPacket::SubscriptionRefused(reason)) => {
                return Err(invalid(format!("the broker refuses the subscription: {reason}")));
            }
            (_, BrokerPacket::Disconnected(reason)) => {
                return Err(invalid(format!("the broker ends the connection: {reason}")));
            }
            (state, packet) => {
                return Err(invalid(format!("{packet:?} in the state {state:?}")));
            }
        }
        Ok(())
    }

    fn connect(&mut self) {
        let Settings { version, client, login, .. } = &self.settings;
        let login =
            login.as_ref().map(|(user, password)| Login { user, password: password.as_bytes() });
        let keep_alive_s = self.settings.keep_alive_s();
        let packet = ClientPacket::Connect { client, keep_alive_s, login };
        packet.encode(*version, &mut self.queues.output);
    }

    fn subscribe(&mut self) {
        let Settings { version, quality, topic, .. } = &self.settings;
        let (identifier, quality) = (SUBSCRIPTION, *quality);
        let packet = ClientPacket::Subscribe { identifier, topic, quality };
        packet.encode(*version, &mut self.queues.output);
    }

    fn write(&mut self, packet: ClientPacket<'_>) {
        packet.encode(self.settings.version, &mut self.queues.output);
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
        self.reader = PacketReader::new(self.settings.version, PACKET_MAX);
        self.in_flight.clear();
        self.state = State::Connecting;
        (self.last_output, self.last_input) = (now, now);
        self.pinged = None;
        self.connect();
    }

    fn handle_input(&mut self, bytes: &[u8], now: Instant) -> Result<(), EndpointError> {
        self.last_input = now;
        self.reader.handle_input(bytes);
        while let Some(packet) =
            self.reader.poll_packet().map_err(|error| invalid(error.to_string()))?
        {
            self.handle(packet)?;
        }
        Ok(())
    }

    fn handle_time(&mut self, now: Instant) -> Result<(), EndpointError> {
        if self.pinged.is_some_and(|at| now >= at + self.settings.keep_alive) {
            let within = self.settings.keep_alive;
            return Err(EndpointError::Timeout { protocol: NAME, timer: "keep alive", within });
        }
        // The broker expects a packet within the interval (section 3.1.2.10). A client that only
        // publishes at most once receives nothing and would not notice that the broker is gone: it
        // expects a packet within the interval as well.
        let is_due = now >= self.last_output.min(self.last_input) + self.settings.keep_alive;
        if self.state == State::Ready && self.pinged.is_none() && is_due {
            self.last_output = now;
            self.pinged = Some(now);
            self.write(ClientPacket::Ping);
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
        let longest = PACKET_MAX.saturating_sub(HEADERS_MAX + self.settings.topic.len());
        if message.len() > longest {
            return Err(NotSent::TooLong(longest));
        }
        let identifier = match self.settings.quality {
            QualityOfService::AtMostOnce => None,
            QualityOfService::AtLeastOnce if self.in_flight.len() >= usize::from(self.window) => {
                return Err(NotSent::WindowFull);
            }
            QualityOfService::AtLeastOnce => Some(self.identifier()),
        };
        self.last_output = now;
        let Settings { version, topic, .. } = &self.settings;
        let packet = ClientPacket::Publish { topic, identifier, payload: message };
        packet.encode(*version, &mut self.queues.output);
        Ok(())
    }

    fn queues(&mut self) -> &mut Queues {
        &mut self.queues
    }

    fn close(&mut self) {
        self.write(ClientPacket::Disconnect);
    }
}

fn invalid(reason: impl Into<String>) -> EndpointError {
    EndpointError::Invalid { protocol: NAME, reason: reason.into() }
}

#[cfg(test)]
mod tests;
