//! AMQP 0-9-1 with lapin: a client that publishes, consumes a queue of the broker, or both.

use std::future::Future;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time;

use async_compat::{Compat, CompatExt};
use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures_lite::{AsyncRead, AsyncWrite, Stream, StreamExt};
use gridhaul_protocols::settings::{Amqp091, ClientSettings, VILLAS_EXCHANGE, VILLAS_ROUTING_KEY};
use gridhaul_scenario::units::Duration;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::tcp::AsyncTcpStream;
use lapin::types::FieldTable;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, Consumer, ExchangeKind};
use tokio::net::TcpStream;

use super::client::{Library, Ports, Role};
use super::connection::{BrokerStream, Connector};

/// Name of the protocol.
pub(super) const NAME: &str = "amqp-0-9-1";

/// `delivery-mode` of a message that the broker stores (AMQP 0-9-1, section 1.8.2 of the
/// reference).
const PERSISTENT: u8 = 2;

/// The exchange that passes messages to each queue that is bound to their routing key (AMQP 0-9-1,
/// section 3.1.3.3).
const TOPIC: &str = "amq.topic";

/// One connection.
pub(super) struct Client {
    pub(super) connector: Connector,
    pub(super) settings: ClientSettings,
    pub(super) amqp: Amqp091,
    pub(super) role: Role,
}

/// Seconds, as the protocol negotiates heartbeats; 0 would turn them off.
pub(super) fn heartbeat_seconds(keep_alive: Duration) -> u16 {
    keep_alive.as_secs_f64().ceil().clamp(1.0, f64::from(u16::MAX)) as u16
}

impl Library for Client {
    fn name(&self) -> &'static str {
        NAME
    }

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
        let broker = self.connector.broker();
        let userinfo = broker.credentials.as_ref().map_or_else(AMQPUserInfo::default, |login| {
            AMQPUserInfo { username: login.user.clone(), password: login.password.clone() }
        });
        let address = broker.address;
        let heartbeat = Some(heartbeat_seconds(self.settings.keep_alive));
        let uri = AMQPUri {
            // The library sees a stream that is already encrypted where TLS is requested.
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority {
                userinfo,
                host: address.ip().to_string(),
                port: address.port(),
            },
            vhost: "/".into(),
            query: AMQPQueryString { heartbeat, ..AMQPQueryString::default() },
        };
        let connector = self.connector.clone();
        let connect = async move |_, _| {
            let stream = connector.open().await?;
            Ok(AsyncTcpStream::Plain(stream.compat()))
        };
        Connection::connector(uri, runtime(), connect, ConnectionProperties::default()).await
    }

    /// The queue of this client.
    fn queue(&self) -> String {
        if self.amqp.fan_out {
            format!("{}-{}", self.settings.name, self.role.name)
        } else {
            self.settings.name.clone()
        }
    }

    /// Exchange and routing key of the messages. The default exchange passes a message to the queue
    /// that its routing key names.
    fn route(&self) -> (&str, &str) {
        match self.amqp {
            Amqp091 { villas_names: true, .. } => (VILLAS_EXCHANGE, VILLAS_ROUTING_KEY),
            Amqp091 { fan_out: true, .. } => (TOPIC, &self.settings.name),
            _ => ("", &self.settings.name),
        }
    }

    /// Declares the queue, and consumes its messages if this client subscribes.
    async fn consume(&self, channel: &Channel) -> lapin::Result<Option<Consumer>> {
        let Amqp091 { prefetch, persistent, fan_out, villas_names } = self.amqp;
        // Without a subscriber, a queue of its own would keep the messages of a publisher.
        if fan_out && !self.role.subscribes {
            return Ok(None);
        }
        let queue = self.queue();
        let declare = QueueDeclareOptions { durable: persistent, ..QueueDeclareOptions::default() };
        channel.queue_declare(queue.as_str().into(), declare, FieldTable::default()).await?;
        let (exchange, key) = self.route();
        if villas_names {
            let (kind, options) = (ExchangeKind::Direct, ExchangeDeclareOptions::default());
            channel.exchange_declare(exchange.into(), kind, options, FieldTable::default()).await?;
        }
        // The default exchange has a binding to each queue (AMQP 0-9-1, section 3.1.3.1).
        if fan_out || villas_names {
            let (options, none) = (QueueBindOptions::default(), FieldTable::default());
            let queue = queue.as_str().into();
            channel.queue_bind(queue, exchange.into(), key.into(), options, none).await?;
        }
        if !self.role.subscribes {
            return Ok(None);
        }
        if prefetch > 0 {
            channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
        }
        let options =
            BasicConsumeOptions { no_ack: prefetch == 0, ..BasicConsumeOptions::default() };
        let none = FieldTable::default();
        channel.basic_consume(queue.as_str().into(), "".into(), options, none).await.map(Some)
    }

    /// Hands messages over until the measurement ends, and then deletes the queue.
    async fn transfer(&self, channel: &Channel, ports: &mut Ports) -> lapin::Result<()> {
        let mut consumer = self.consume(channel).await?;
        let (messages, report) = ports.split();
        report.established();
        loop {
            let delivery = async {
                match &mut consumer {
                    Some(consumer) => consumer.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) if self.role.publishes => self.publish(channel, &message).await?,
                    Some(_) => {}
                    None => break,
                },
                delivery = delivery => match delivery {
                    Some(delivery) => {
                        let delivery = delivery?;
                        let at = report.now();
                        if self.amqp.prefetch > 0 {
                            delivery.ack(BasicAckOptions::default()).await?;
                        }
                        report.arrived(at, delivery.data);
                    }
                    None => return Err(lapin::ErrorKind::InvalidConnectionState(
                        lapin::ConnectionState::Closed,
                    ).into()),
                },
            }
        }
        if self.role.subscribes {
            let options = QueueDeleteOptions::default();
            channel.queue_delete(self.queue().as_str().into(), options).await?;
        }
        Ok(())
    }

    async fn publish(&self, channel: &Channel, message: &[u8]) -> lapin::Result<()> {
        let properties = if self.amqp.persistent {
            BasicProperties::default().with_delivery_mode(PERSISTENT)
        } else {
            BasicProperties::default()
        };
        let (exchange, key) = self.route();
        channel
            .basic_publish(
                exchange.into(),
                key.into(),
                BasicPublishOptions::default(),
                message,
                properties,
            )
            .await
            .map(drop)
    }
}

/// The runtime of the thread of this client, with connections of this program.
fn runtime() -> Runtime<RuntimeParts<Tokio, BrokerReactor>> {
    Runtime::new(RuntimeParts::new(Tokio::current(), BrokerReactor(Tokio::current())))
}

/// The timers of tokio, and connections with or without TLS.
#[derive(Debug, Clone)]
struct BrokerReactor(Tokio);

impl Reactor for BrokerReactor {
    type TcpStream = Compat<BrokerStream>;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Read + Write + Send + 'static>(
        &self,
        _socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        // The library opens no sockets of its own.
        Err::<Self::TcpStream, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, duration: time::Duration) -> Self::Sleep {
        self.0.sleep(duration)
    }

    fn interval(
        &self,
        duration: time::Duration,
    ) -> impl Stream<Item = time::Instant> + Send + 'static {
        self.0.interval(duration)
    }

    #[expect(clippy::manual_async_fn, reason = "the future must not borrow the reactor")]
    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        async move {
            let stream: BrokerStream = Box::new(TcpStream::connect(address).await?);
            Ok(stream.compat())
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
