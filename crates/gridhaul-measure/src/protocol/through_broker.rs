//! Protocols through a broker: a publisher and a subscriber, which are one client or two, on one
//! machine or on two.

use gridhaul_linux::Clock;
use gridhaul_protocols::mqtt::{self, QualityOfService, Version};
use gridhaul_protocols::overhead::tls::RECORD_OVERHEAD;
use gridhaul_protocols::settings::{
    BrokerAddress, BrokerProtocol, ClientSettings, Credentials, Mqtt,
};
use gridhaul_protocols::xmpp;

use super::client::{ClientStart, ClientSubscriber, Role};
use super::connection::Connector;
use super::endpoint_client::EndpointClient;
use super::reconnect::reconnect_settings;
use super::{
    Connected, Protocol, ProtocolError, Publisher, SendingEnd, Subscriber, amqp_0_9_1, amqp_1_0,
};
use crate::place::{Site, Sites};
use crate::settings::Settings;

/// Bytes of the longest message that is handed to a broker, so that the queues of a client stay
/// bounded.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Domain of a user of XMPP without one.
const DOMAIN: &str = "localhost";

/// A protocol through a broker with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThroughBroker {
    /// The clients.
    pub clients: ClientSettings,
    /// The broker.
    pub broker: BrokerAddress,
}

impl Protocol for ThroughBroker {
    fn name(&self) -> &'static str {
        match &self.clients.protocol {
            BrokerProtocol::Mqtt(mqtt) if mqtt.version == Version::V3 => "mqtt",
            BrokerProtocol::Mqtt(_) => "mqtt5",
            BrokerProtocol::Amqp091(_) => amqp_0_9_1::NAME,
            BrokerProtocol::Amqp10(_) => amqp_1_0::NAME,
            BrokerProtocol::Xmpp => "xmpp",
        }
    }

    fn settings(&self) -> Settings {
        let clients = &self.clients;
        let connections = if clients.one_connection { "1" } else { "2" };
        let encryption = if self.broker.tls.is_some() { "TLS 1.3" } else { "none" };
        let mut settings = Settings::default();
        settings.push("broker", self.broker.address.to_string());
        settings.push("encryption", encryption);
        settings.push("nodelay", clients.nodelay.to_string());
        if self.broker.tls.is_some() {
            // Each message is written as a record of its own.
            settings.push("encryption_overhead", format!("{RECORD_OVERHEAD} B"));
        }
        settings.extend(self.settings_of_protocol());
        settings.push("connections", connections);
        settings.extend(reconnect_settings(clients.reconnect));
        settings
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let start = |site, role| self.start(site, sites.clock, role);
        let (subscriber, publisher) = if self.clients.one_connection {
            let both = start(&sites.from, Role::BOTH)?;
            let publisher = self.publisher(&both);
            (both, publisher)
        } else {
            // The subscriber first: a broker drops messages without a subscriber.
            let mut subscriber = start(&sites.subscriber, Role::SUBSCRIBER)?;
            let client = start(&sites.from, Role::PUBLISHER)?;
            let publisher = self.publisher(&client);
            subscriber.report_also(client);
            (subscriber, publisher)
        };
        Ok(Connected { publisher, subscriber: Box::new(subscriber) })
    }
}

impl ThroughBroker {
    /// The subscriber alone, on a machine that does not publish.
    ///
    /// # Errors
    /// The broker does not answer, or refuses the client.
    pub fn subscriber(&self, clock: Clock) -> Result<Box<dyn Subscriber>, ProtocolError> {
        Ok(Box::new(self.start(&Sites::loopback().from, clock, Role::SUBSCRIBER)?))
    }

    /// The publisher alone, on a machine that is not that of the subscriber, and a subscriber
    /// there as well if messages are to come back and the protocol passes them to all subscribers.
    ///
    /// # Errors
    /// The broker does not answer, or refuses a client.
    pub fn sender(&self, clock: Clock, is_returned: bool) -> Result<SendingEnd, ProtocolError> {
        let site = Sites::loopback().from;
        let is_returned = is_returned && self.clients.protocol.reaches_all_subscribers();
        let returns = is_returned.then(|| self.start(&site, clock, Role::RETURNS)).transpose()?;
        let publisher = self.publisher(&self.start(&site, clock, Role::PUBLISHER)?);
        Ok(SendingEnd { publisher, returns: returns.map(|client| Box::new(client) as _) })
    }

    /// Settings that other protocols do not have.
    fn settings_of_protocol(&self) -> Vec<(&'static str, String)> {
        let seconds = format!("{} s", self.clients.keep_alive.as_secs_f64());
        match &self.clients.protocol {
            BrokerProtocol::Mqtt(mqtt) => {
                let qos = u8::from(mqtt.qos == QualityOfService::AtLeastOnce);
                // Every connection is a new session (MQTT 3.1.1, section 3.1.2.4).
                let session = "clean".to_owned();
                vec![("qos", qos.to_string()), ("session", session), ("keep_alive", seconds)]
            }
            BrokerProtocol::Amqp091(amqp) => {
                let heartbeat = amqp_0_9_1::heartbeat_seconds(self.clients.keep_alive);
                vec![
                    ("prefetch", amqp.prefetch.to_string()),
                    ("acknowledgements", (amqp.prefetch > 0).to_string()),
                    ("persistent", amqp.persistent.to_string()),
                    ("exchange", amqp.exchange().to_owned()),
                    ("heartbeat", format!("{heartbeat} s")),
                ]
            }
            BrokerProtocol::Amqp10(amqp) => vec![
                ("credit", amqp.credit.to_string()),
                ("settled", amqp.settled.to_string()),
                ("node", amqp_1_0::node(&self.clients, amqp)),
                ("idle_timeout", seconds),
            ],
            BrokerProtocol::Xmpp => vec![
                ("payload", "XER, OCTET STRING".into()),
                ("authentication", "SASL PLAIN".into()),
                ("keep_alive", seconds),
            ],
        }
    }

    /// A sending handle of a client.
    fn publisher(&self, client: &ClientSubscriber) -> Box<dyn Publisher> {
        Box::new(client.publisher(self.clients.reconnect.queue, MESSAGE_BYTES_MAX))
    }

    /// Starts a client at an end of the network and waits until it is connected.
    fn start(
        &self,
        site: &Site<'_>,
        clock: Clock,
        role: Role,
    ) -> Result<ClientSubscriber, ProtocolError> {
        let (name, settings) = (self.name(), self.clients.clone());
        let connector = Connector::new(name, &self.broker, settings.nodelay)?;
        let client = ClientStart {
            site,
            address: self.broker.address,
            clock,
            reconnect_after: settings.reconnect.after,
        };
        let publishes = role.publishes;
        match self.clients.protocol.clone() {
            BrokerProtocol::Mqtt(mqtt) => {
                let settings = self.mqtt_client(mqtt, role);
                let endpoint = move || mqtt::Client::new(settings.clone());
                client.start(EndpointClient { name, connector, publishes, endpoint })
            }
            BrokerProtocol::Amqp091(amqp) => {
                client.start(amqp_0_9_1::Client { connector, settings, amqp, role })
            }
            BrokerProtocol::Amqp10(amqp) => {
                client.start(amqp_1_0::Client { connector, settings, amqp, role })
            }
            BrokerProtocol::Xmpp => {
                let account = self.account(role)?;
                let endpoint = move || xmpp::Client::new(account.clone());
                client.start(EndpointClient { name, connector, publishes, endpoint })
            }
        }
    }

    fn mqtt_client(&self, mqtt: Mqtt, role: Role) -> mqtt::Settings {
        let login = self.broker.credentials.clone();
        mqtt::Settings {
            version: mqtt.version,
            quality: mqtt.qos,
            client: format!("{}-{}", self.clients.name, role.name),
            topic: self.clients.name.clone(),
            subscribes: role.subscribes,
            login: login.map(|Credentials { user, password }| (user, password)),
            keep_alive: self.clients.keep_alive,
        }
    }

    /// The account of a client of XMPP. A publisher sends to the full address of the subscriber.
    fn account(&self, role: Role) -> Result<xmpp::Settings, ProtocolError> {
        let Some(Credentials { user, password }) = &self.broker.credentials else {
            return Err(ProtocolError::Connect {
                protocol: self.name(),
                address: self.broker.address,
                reason:
                    "an account is needed, such as xmpp://user@example.org:password@127.0.0.1:5222"
                        .into(),
            });
        };
        let (user, domain) = user.rsplit_once('@').unwrap_or((user, DOMAIN));
        let account = |role: Role| xmpp::Settings {
            user: user.into(),
            domain: domain.into(),
            password: password.clone(),
            resource: format!("{}-{}", self.clients.name, role.name),
            destination: None,
            keep_alive: self.clients.keep_alive,
        };
        let destination = role.publishes.then(|| account(Role::SUBSCRIBER).address());
        Ok(xmpp::Settings { destination, ..account(role) })
    }
}
