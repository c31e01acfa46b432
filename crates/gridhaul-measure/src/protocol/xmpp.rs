//! XMPP through a server: a publisher and a subscriber, which are one client or two.

use gridhaul_scenario::units::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::client::{Library, Ports, Report, connect_to_broker};
use super::{Connected, Protocol, ProtocolError, ReconnectPolicy};
use crate::broker::{BrokerAddress, Credentials};
use crate::endpoint::Endpoint;
use crate::endpoint::xmpp::{Client, Settings};
use crate::network::Sites;

/// Domain of a user without one.
const DOMAIN: &str = "localhost";

/// Output that the socket has not accepted: with more, messages stay in the queue of the client.
const OUTPUT_MAX: usize = 1 << 20;

/// Longest time between two checks of the timers.
const TICK: std::time::Duration = std::time::Duration::from_millis(100);

/// XMPP with its settings.
#[derive(Debug, Clone)]
pub struct Xmpp {
    /// Address of the server. The user is an account of the domain `localhost`, or has a domain as in `name@example.org`.
    pub broker: BrokerAddress,
    /// Whether the clients set `TCP_NODELAY`, which turns Nagle's algorithm (RFC 896) off.
    pub nodelay: bool,
    /// Whether publisher and subscriber share one connection.
    pub one_connection: bool,
    /// Time without output after which white space is sent.
    pub keep_alive: Duration,
    /// Behaviour without a connection.
    pub reconnect: ReconnectPolicy,
    /// Start of the names of the resources, which no other client of the account uses.
    pub resource: String,
}

impl Protocol for Xmpp {
    fn name(&self) -> &'static str {
        Connection::NAME
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("broker", self.broker.address.to_string()),
            ("nodelay", self.nodelay.to_string()),
            ("payload", "XER, OCTET STRING".into()),
            ("authentication", "SASL PLAIN without TLS".into()),
            ("connections", if self.one_connection { "1" } else { "2" }.into()),
            ("keep_alive", format!("{} s", self.keep_alive.as_secs_f64())),
        ];
        settings.extend(self.reconnect.settings());
        settings
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let Some(credentials) = &self.broker.credentials else {
            return Err(ProtocolError::Connect {
                protocol: self.name(),
                address: self.broker.address,
                reason:
                    "an account is needed, such as xmpp://user@example.org:password@127.0.0.1:5222"
                        .into(),
            });
        };
        let subscriber = self.client(credentials, "subscriber", None);
        let destination = Some(subscriber.address());
        let connections = (self.one_connection, self.reconnect);
        connect_to_broker(sites, self.broker.address, connections, |publishes, subscribes| {
            let settings = match (publishes, subscribes) {
                (true, true) => Settings { destination: destination.clone(), ..subscriber.clone() },
                (true, false) => self.client(credentials, "publisher", destination.clone()),
                (false, _) => subscriber.clone(),
            };
            Connection { protocol: self.clone(), settings }
        })
    }
}

impl Xmpp {
    fn client(
        &self,
        credentials: &Credentials,
        role: &str,
        destination: Option<String>,
    ) -> Settings {
        let user = credentials.user.as_str();
        let (user, domain) = user.rsplit_once('@').unwrap_or((user, DOMAIN));
        Settings {
            user: user.into(),
            domain: domain.into(),
            password: credentials.password.clone(),
            resource: format!("{}-{role}", self.resource),
            destination,
            keep_alive: self.keep_alive,
        }
    }
}

/// One connection.
struct Connection {
    protocol: Xmpp,
    settings: Settings,
}

impl Library for Connection {
    const NAME: &'static str = "xmpp";

    async fn session(&self, ports: &mut Ports) -> Result<(), String> {
        let socket = TcpStream::connect(self.protocol.broker.address).await.map_err(text)?;
        socket.set_nodelay(self.protocol.nodelay).map_err(text)?;
        let mut line =
            Line { socket, client: Client::new(self.settings.clone()), output: Vec::new() };
        let (messages, report) = ports.split();
        line.client.open(report.now());
        let mut tick = tokio::time::interval(TICK);
        let mut is_established = false;
        loop {
            line.flush()?;
            let is_ready = line.client.is_ready();
            if is_ready && !is_established {
                is_established = true;
                report.established();
            }
            let interest = if line.output.is_empty() {
                Interest::READABLE
            } else {
                Interest::READABLE | Interest::WRITABLE
            };
            let accepts = is_ready && line.output.len() < OUTPUT_MAX;
            tokio::select! {
                ready = line.socket.ready(interest) => {
                    if ready.map_err(text)?.is_readable() {
                        line.read(report)?;
                    }
                }
                message = messages.recv(), if accepts => match message {
                    Some(message) if self.settings.destination.is_some() => {
                        line.client.publish(&message, report.now()).map_err(text)?;
                    }
                    Some(_) => {}
                    None => break,
                },
                _ = tick.tick() => line.client.handle_time(report.now()).map_err(text)?,
            }
        }
        line.client.close();
        line.flush()
    }
}

/// A client and its socket.
struct Line {
    socket: TcpStream,
    client: Client,
    /// Bytes that the socket has not accepted yet.
    output: Vec<u8>,
}

impl Line {
    /// Hands output to the socket, as much as it accepts.
    fn flush(&mut self) -> Result<(), String> {
        self.client.poll_output(&mut self.output);
        while !self.output.is_empty() {
            match self.socket.try_write(&self.output) {
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Reads what has arrived.
    fn read(&mut self, report: &Report) -> Result<(), String> {
        let mut buffer = [0; 1 << 14];
        let length = match self.socket.try_read(&mut buffer) {
            Ok(0) => return Err("the server has closed the connection".into()),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let at = report.now();
        self.client.handle_input(&buffer[..length], at).map_err(text)?;
        while let Some(message) = self.client.poll_message() {
            report.arrived(at, message);
        }
        Ok(())
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
