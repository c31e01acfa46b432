//! AMQP 1.0 with fe2o3-amqp: a publisher and a subscriber through a node of the broker.

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::types::definitions::SenderSettleMode;
use fe2o3_amqp::types::messaging::{Data, Message};
use fe2o3_amqp::types::primitives::Binary;
use fe2o3_amqp::{Connection, Receiver, Sendable, Sender, Session};
use gridhaul_scenario::units::Duration;
use tokio::net::TcpStream;

use super::client::{Library, Ports, connect_to_broker};
use super::{Connected, Protocol, ProtocolError, ReconnectPolicy};
use crate::broker::BrokerAddress;
use crate::network::Sites;

/// AMQP 1.0 with its settings.
#[derive(Debug, Clone)]
pub struct Amqp10 {
    /// Address of the broker.
    pub broker: BrokerAddress,
    /// Whether the clients set `TCP_NODELAY`, which turns Nagle's algorithm (RFC 896) off.
    pub nodelay: bool,
    /// Link credit of the subscriber: messages that the broker may send before the subscriber grants more.
    pub credit: u32,
    /// Whether messages are sent settled, without an outcome from the broker; otherwise each is acknowledged.
    pub settled: bool,
    /// Whether publisher and subscriber share one connection.
    pub one_connection: bool,
    /// Time without a frame after which the connection is considered lost.
    pub idle_timeout: Duration,
    /// Behaviour without a connection.
    pub reconnect: ReconnectPolicy,
    /// Address of the node at the broker, such as `/topic/name` at RabbitMQ.
    pub node: String,
}

impl Protocol for Amqp10 {
    fn name(&self) -> &'static str {
        Client::NAME
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("broker", self.broker.address.to_string()),
            ("nodelay", self.nodelay.to_string()),
            ("credit", self.credit.to_string()),
            ("settled", self.settled.to_string()),
            ("connections", if self.one_connection { "1" } else { "2" }.into()),
            ("idle_timeout", format!("{} s", self.idle_timeout.as_secs_f64())),
            ("node", self.node.clone()),
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

/// One connection.
struct Client {
    settings: Amqp10,
    publishes: bool,
    subscribes: bool,
}

impl Library for Client {
    const NAME: &'static str = "amqp-1.0";

    async fn session(&self, ports: &mut Ports) -> Result<(), String> {
        let mut connection = self.open().await?;
        let mut session = Session::begin(&mut connection).await.map_err(text)?;
        let node = self.settings.node.as_str();
        let mut receiver = None;
        if self.subscribes {
            let attached = Receiver::builder()
                .name(format!("{node}-receiver"))
                .source(node)
                .credit_mode(CreditMode::Auto(self.settings.credit))
                .auto_accept(true)
                .attach(&mut session);
            receiver = Some(attached.await.map_err(text)?);
        }
        let mut sender = None;
        if self.publishes {
            let mode = if self.settings.settled {
                SenderSettleMode::Settled
            } else {
                SenderSettleMode::Unsettled
            };
            let attached = Sender::builder()
                .name(format!("{node}-sender"))
                .target(node)
                .sender_settle_mode(mode)
                .attach(&mut session);
            sender = Some(attached.await.map_err(text)?);
        }
        transfer(ports, sender.as_mut(), receiver.as_mut()).await?;
        let _ = session.end().await;
        let _ = connection.close().await;
        Ok(())
    }
}

impl Client {
    async fn open(&self) -> Result<ConnectionHandle<()>, String> {
        let broker = &self.settings.broker;
        let stream = TcpStream::connect(broker.address).await.map_err(text)?;
        stream.set_nodelay(self.settings.nodelay).map_err(text)?;
        let profile = broker.credentials.as_ref().map_or(SaslProfile::Anonymous, |it| {
            SaslProfile::Plain { username: it.user.clone(), password: it.password.clone() }
        });
        let host = broker.address.ip().to_string();
        let role = if self.subscribes { "subscriber" } else { "publisher" };
        Connection::builder()
            .container_id(format!("{}-{role}", self.settings.node))
            .scheme("amqp")
            .hostname(host.as_str())
            .sasl_profile(profile)
            .idle_time_out(self.settings.idle_timeout.as_nanos().div_ceil(1_000_000) as u32)
            .open_with_stream(stream)
            .await
            .map_err(text)
    }
}

/// Hands messages over until the measurement ends.
async fn transfer(
    ports: &mut Ports,
    mut sender: Option<&mut Sender>,
    mut receiver: Option<&mut Receiver>,
) -> Result<(), String> {
    let (messages, report) = ports.split();
    report.established();
    loop {
        let delivery = async {
            match &mut receiver {
                Some(receiver) => receiver.recv::<Data>().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = messages.recv() => match (message, &mut sender) {
                (Some(message), Some(sender)) => {
                    let body = Message::builder().data(Binary::from(message)).build();
                    // The outcome is not awaited: the next message may follow at once.
                    let sent = sender.send_batchable(Sendable::from(body)).await;
                    drop(sent.map_err(text)?);
                }
                (Some(_), None) => {}
                (None, _) => return Ok(()),
            },
            delivery = delivery => {
                let delivery = delivery.map_err(text)?;
                let at = report.now();
                report.arrived(at, delivery.into_body().0.into_vec());
            }
        }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
