//! AMQP 0-9-1 with lapin: a publisher and a subscriber through a queue of the broker.

use async_compat::CompatExt;
use futures_lite::StreamExt;
use gridhaul_scenario::units::Duration;
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, QueueDeclareOptions,
    QueueDeleteOptions,
};
use lapin::tcp::AsyncTcpStream;
use lapin::types::FieldTable;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tokio::net::TcpStream;

use super::client::{Library, Ports, connect_to_broker};
use super::{Connected, Protocol, ProtocolError, ReconnectPolicy};
use crate::broker::BrokerAddress;
use crate::network::Sites;

/// `delivery-mode` of a message that the broker stores (AMQP 0-9-1, section 1.8.2 of the reference).
const PERSISTENT: u8 = 2;

/// AMQP 0-9-1 with its settings.
#[derive(Debug, Clone)]
pub struct Amqp091 {
    /// Address of the broker.
    pub broker: BrokerAddress,
    /// Whether the clients set `TCP_NODELAY`, which turns Nagle's algorithm (RFC 896) off.
    pub nodelay: bool,
    /// Messages that the broker sends ahead of their acknowledgements; 0 for delivery without acknowledgements.
    pub prefetch: u16,
    /// Whether the broker stores queue and messages on disk.
    pub persistent: bool,
    /// Whether publisher and subscriber share one connection.
    pub one_connection: bool,
    /// Interval of heartbeats.
    pub heartbeat: Duration,
    /// Behaviour without a connection.
    pub reconnect: ReconnectPolicy,
    /// Name of the queue, which no other client of the broker uses.
    pub queue: String,
}

impl Protocol for Amqp091 {
    fn name(&self) -> &'static str {
        Client::NAME
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("broker", self.broker.address.to_string()),
            ("nodelay", self.nodelay.to_string()),
            ("prefetch", self.prefetch.to_string()),
            ("acknowledgements", (self.prefetch > 0).to_string()),
            ("persistent", self.persistent.to_string()),
            ("connections", if self.one_connection { "1" } else { "2" }.into()),
            ("heartbeat", format!("{} s", self.heartbeat_seconds())),
        ];
        settings.extend(self.reconnect.settings());
        settings
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let connections = (self.one_connection, self.reconnect);
        connect_to_broker(sites, self.broker.address, connections, |publishes, subscribes| Client {
            settings: self.clone(),
            publishes,
            subscribes,
        })
    }
}

impl Amqp091 {
    /// Seconds, as the protocol negotiates them; 0 would turn heartbeats off.
    fn heartbeat_seconds(&self) -> u16 {
        self.heartbeat.as_secs_f64().ceil().clamp(1.0, f64::from(u16::MAX)) as u16
    }
}

/// One connection.
struct Client {
    settings: Amqp091,
    publishes: bool,
    subscribes: bool,
}

impl Library for Client {
    const NAME: &'static str = "amqp-0-9-1";

    async fn session(&self, ports: &mut Ports) -> Result<(), String> {
        let connection = self.open().await.map_err(text)?;
        let channel = connection.create_channel().await.map_err(text)?;
        let done = self.transfer(&channel, ports).await.map_err(text);
        if done.is_ok() {
            let _ = connection.close(200, "end of the measurement".into()).await;
        }
        done
    }
}

impl Client {
    async fn open(&self) -> lapin::Result<Connection> {
        let (broker, nodelay) = (&self.settings.broker, self.settings.nodelay);
        let userinfo = broker.credentials.as_ref().map_or_else(AMQPUserInfo::default, |it| {
            AMQPUserInfo { username: it.user.clone(), password: it.password.clone() }
        });
        let address = broker.address;
        let heartbeat = Some(self.settings.heartbeat_seconds());
        let uri = AMQPUri {
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority {
                userinfo,
                host: address.ip().to_string(),
                port: address.port(),
            },
            vhost: "/".into(),
            query: AMQPQueryString { heartbeat, ..AMQPQueryString::default() },
        };
        let runtime = lapin::runtime::default_runtime()?;
        let connect = async move |_, _| {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(nodelay)?;
            Ok(AsyncTcpStream::Plain(stream.compat()))
        };
        Connection::connector(uri, runtime, connect, ConnectionProperties::default()).await
    }

    /// Hands messages over until the measurement ends, and then deletes the queue.
    async fn transfer(&self, channel: &Channel, ports: &mut Ports) -> lapin::Result<()> {
        let Amqp091 { prefetch, persistent, queue, .. } = &self.settings;
        let declare =
            QueueDeclareOptions { durable: *persistent, ..QueueDeclareOptions::default() };
        let none = FieldTable::default();
        channel.queue_declare(queue.as_str().into(), declare, none.clone()).await?;
        let mut consumer = None;
        if self.subscribes {
            if *prefetch > 0 {
                channel.basic_qos(*prefetch, BasicQosOptions::default()).await?;
            }
            let options =
                BasicConsumeOptions { no_ack: *prefetch == 0, ..BasicConsumeOptions::default() };
            let name = queue.as_str().into();
            consumer = Some(channel.basic_consume(name, "".into(), options, none).await?);
        }
        let (messages, report) = ports.split();
        report.established();
        let acknowledges = *prefetch > 0;
        loop {
            let delivery = async {
                match &mut consumer {
                    Some(consumer) => consumer.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) if self.publishes => self.publish(channel, &message).await?,
                    Some(_) => {}
                    None => break,
                },
                delivery = delivery => match delivery {
                    Some(delivery) => {
                        let delivery = delivery?;
                        let at = report.now();
                        if acknowledges {
                            delivery.ack(lapin::options::BasicAckOptions::default()).await?;
                        }
                        report.arrived(at, delivery.data);
                    }
                    None => return Err(lapin::ErrorKind::InvalidConnectionState(
                        lapin::ConnectionState::Closed,
                    ).into()),
                },
            }
        }
        if self.subscribes {
            let options = QueueDeleteOptions::default();
            channel.queue_delete(queue.as_str().into(), options).await?;
        }
        Ok(())
    }

    async fn publish(&self, channel: &Channel, message: &[u8]) -> lapin::Result<()> {
        let properties = if self.settings.persistent {
            BasicProperties::default().with_delivery_mode(PERSISTENT)
        } else {
            BasicProperties::default()
        };
        let key = self.settings.queue.as_str().into();
        // The default exchange passes a message to the queue that its routing key names.
        channel
            .basic_publish("".into(), key, BasicPublishOptions::default(), message, properties)
            .await
            .map(drop)
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
