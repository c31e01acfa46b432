//! AMQP 1.0 with fe2o3-amqp: a client that sends to a node of the broker, receives from it, or
//! both.

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::types::definitions::SenderSettleMode;
use fe2o3_amqp::types::messaging::{Data, Message};
use fe2o3_amqp::types::primitives::Binary;
use fe2o3_amqp::{Connection, Receiver, Sendable, Sender, Session};
use gridhaul_protocols::settings::{Amqp10, ClientSettings};

use super::client::{Library, Ports, Role};
use super::connection::Connector;

/// Name of the protocol.
pub(super) const NAME: &str = "amqp-1.0";

/// One connection.
pub(super) struct Client {
    pub(super) connector: Connector,
    pub(super) settings: ClientSettings,
    pub(super) amqp: Amqp10,
    pub(super) role: Role,
}

/// Address of the node at the broker. The default is a node of the exchange `amq.topic` of
/// RabbitMQ, with a queue of each receiver's own that ends with the receiver.
pub(super) fn node(settings: &ClientSettings, amqp: &Amqp10) -> String {
    amqp.node.clone().unwrap_or_else(|| format!("/topic/{}", settings.name))
}

impl Library for Client {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn session(&self, ports: &mut Ports) -> Result<(), String> {
        let mut connection = self.open().await?;
        let mut session = Session::begin(&mut connection).await.map_err(text)?;
        let node = node(&self.settings, &self.amqp);
        let node = node.as_str();
        let mut receiver = None;
        if self.role.subscribes {
            let attached = Receiver::builder()
                .name(format!("{node}-receiver"))
                .source(node)
                .credit_mode(CreditMode::Auto(self.amqp.credit))
                .auto_accept(true)
                .attach(&mut session);
            receiver = Some(attached.await.map_err(text)?);
        }
        let mut sender = None;
        if self.role.publishes {
            let mode = if self.amqp.settled {
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
        let broker = self.connector.broker();
        let stream = self.connector.open().await.map_err(text)?;
        let profile = broker.credentials.as_ref().map_or(SaslProfile::Anonymous, |login| {
            SaslProfile::Plain { username: login.user.clone(), password: login.password.clone() }
        });
        let host = broker.address.ip().to_string();
        Connection::builder()
            .container_id(format!("{}-{}", self.settings.name, self.role.name))
            // The library sees a stream that is already encrypted where TLS is requested.
            .scheme("amqp")
            .hostname(host.as_str())
            .sasl_profile(profile)
            .idle_time_out(self.settings.keep_alive.as_nanos().div_ceil(1_000_000) as u32)
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
