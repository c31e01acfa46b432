//! MQTT 3.1.1 with rumqttc: a publisher and a subscriber, which are one client or two.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time;

use gridhaul_linux::{Clock, request_realtime_priority};
use gridhaul_scenario::units::{Duration, Instant};
use rumqttc::{Client, Connection, Event, MqttOptions, Packet, QoS};

use super::{
    Connected, Protocol, ProtocolError, Publisher, RECEIVE_WAIT, Received, ReconnectPolicy,
    Refused, Subscriber,
};
use crate::network::Sites;

/// Messages that a client queues.
const QUEUE: usize = 100_000;

/// Time for the first connection of a client.
const CONNECT_WITHIN: time::Duration = time::Duration::from_secs(10);

/// Messages without an acknowledgement, for QoS 1: enough for 10,000 messages per second over a round-trip time of one
/// second, so that the window does not limit the rate.
const IN_FLIGHT: u16 = 10_000;

/// Largest packet.
const PACKET_MAX: usize = 1 << 20;

/// Quality of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QualityOfService {
    /// At most once.
    AtMostOnce,
    /// At least once, with acknowledgements.
    AtLeastOnce,
}

/// MQTT with its settings.
#[derive(Debug, Clone)]
pub struct Mqtt {
    /// Address of the broker.
    pub broker: SocketAddr,
    /// Whether the clients set `TCP_NODELAY`, which turns Nagle's algorithm (RFC 896) off.
    pub nodelay: bool,
    /// Quality of service of publisher and subscription.
    pub qos: QualityOfService,
    /// Whether publisher and subscriber share one client.
    pub one_connection: bool,
    /// Interval of keep-alive packets.
    pub keep_alive: Duration,
    /// Behaviour without a connection.
    pub reconnect: ReconnectPolicy,
    /// Topic, which no other client of the broker uses.
    pub topic: String,
}

impl Protocol for Mqtt {
    fn name(&self) -> &'static str {
        "mqtt"
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let connections = if self.one_connection { "1" } else { "2" };
        vec![
            ("broker", self.broker.to_string()),
            ("nodelay", self.nodelay.to_string()),
            ("qos", u8::from(self.qos == QualityOfService::AtLeastOnce).to_string()),
            ("connections", connections.into()),
            ("keep_alive", format!("{} s", self.keep_alive.as_secs_f64())),
            ("reconnect_after", format!("{} s", self.reconnect.after.as_secs_f64())),
            (
                "without_connection",
                if self.reconnect.queue { "queue" } else { "refuse" }.to_owned(),
            ),
        ]
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let subscriber = self.client(sites, "subscriber", true)?;
        let publishing = if self.one_connection {
            subscriber.session.clone()
        } else {
            self.client(sites, "publisher", false)?.session
        };
        let publisher = MqttPublisher {
            session: publishing,
            topic: self.topic.clone(),
            qos: self.qos(),
            queue: self.reconnect.queue,
        };
        Ok(Connected { publisher: Box::new(publisher), subscriber: Box::new(subscriber) })
    }
}

impl Mqtt {
    fn qos(&self) -> QoS {
        match self.qos {
            QualityOfService::AtMostOnce => QoS::AtMostOnce,
            QualityOfService::AtLeastOnce => QoS::AtLeastOnce,
        }
    }

    /// Starts a client at the `from` end and waits until it is connected and, if it subscribes, subscribed.
    fn client(
        &self,
        sites: &Sites<'_>,
        role: &str,
        subscribes: bool,
    ) -> Result<MqttSubscriber, ProtocolError> {
        let mut options = MqttOptions::new(
            format!("{}-{role}", self.topic),
            host(self.broker),
            self.broker.port(),
        );
        options.set_keep_alive(time::Duration::from_nanos(self.keep_alive.as_nanos()));
        options.set_inflight(IN_FLIGHT).set_max_packet_size(PACKET_MAX, PACKET_MAX);
        let (client, mut connection) = Client::new(options, QUEUE);
        let mut network = connection.eventloop.network_options();
        network.set_tcp_nodelay(self.nodelay);
        connection.eventloop.set_network_options(network);
        let (events, queue) = sync_channel(QUEUE);
        let (ready, outcome) = sync_channel(1);
        let status = Arc::new(Status::default());
        let driver = Driver {
            connection,
            status: Arc::clone(&status),
            subscription: subscribes.then(|| (client.clone(), self.topic.clone(), self.qos())),
            events,
            ready: Some(ready),
            reconnect_after: time::Duration::from_nanos(self.reconnect.after.as_nanos()),
            clock: sites.clock,
        };
        // The thread belongs to the namespace in which it is started.
        let thread = sites.from.enter(move || thread::spawn(move || driver.run()))?;
        let session = Arc::new(Session { client, status, thread: Some(thread) });
        let refused = |reason: String| ProtocolError::Broker { address: self.broker, reason };
        match outcome.recv_timeout(CONNECT_WITHIN) {
            Ok(Ok(())) => Ok(MqttSubscriber { queue, session }),
            Ok(Err(reason)) => Err(refused(reason)),
            Err(_) => Err(refused(format!("no answer within {} s", CONNECT_WITHIN.as_secs()))),
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

/// State of a client that its thread reports.
#[derive(Debug, Default)]
struct Status {
    connected: AtomicBool,
    closing: AtomicBool,
}

/// A client and its thread, which ends with the last handle.
struct Session {
    client: Client,
    status: Arc<Status>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.status.closing.store(true, Ordering::Relaxed);
        // Without a connection the thread notices the end at its next attempt.
        let _ = self.client.try_disconnect();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The event loop of a client.
struct Driver {
    connection: Connection,
    status: Arc<Status>,
    subscription: Option<(Client, String, QoS)>,
    events: SyncSender<Arrival>,
    /// Awaits the result of the first connection.
    ready: Option<SyncSender<Result<(), String>>>,
    reconnect_after: time::Duration,
    clock: Clock,
}

/// What a driver reports to the subscriber.
enum Arrival {
    Message(Instant, rumqttc::Publish),
    Reconnected(Instant),
}

impl Driver {
    #[expect(clippy::disallowed_methods, reason = "waits in real time before it reconnects")]
    fn run(mut self) {
        request_realtime_priority();
        loop {
            let event = self.connection.recv();
            let at = self.clock.now();
            match event {
                // All handles of the client are gone.
                Err(_) => return,
                Ok(Ok(Event::Incoming(Packet::ConnAck(_)))) => match &self.subscription {
                    Some((client, topic, qos)) => {
                        // The queue of a client that has just connected has free space, unless it queues messages
                        // for its publisher; then the next attempt follows the next reconnection.
                        let _ = client.try_subscribe(topic.as_str(), *qos);
                    }
                    None => self.established(at),
                },
                Ok(Ok(Event::Incoming(Packet::SubAck(_)))) => self.established(at),
                Ok(Ok(Event::Incoming(Packet::Publish(publish)))) => {
                    if self.events.send(Arrival::Message(at, publish)).is_err() {
                        return;
                    }
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    self.status.connected.store(false, Ordering::Relaxed);
                    if let Some(ready) = self.ready.take() {
                        let _ = ready.send(Err(error.to_string()));
                        return;
                    }
                    if self.status.closing.load(Ordering::Relaxed) {
                        return;
                    }
                    thread::sleep(self.reconnect_after);
                }
            }
        }
    }

    fn established(&mut self, at: Instant) {
        self.status.connected.store(true, Ordering::Relaxed);
        match self.ready.take() {
            Some(ready) => {
                let _ = ready.send(Ok(()));
            }
            None => {
                let _ = self.events.send(Arrival::Reconnected(at));
            }
        }
    }
}

#[derive(Debug)]
struct MqttPublisher {
    session: Arc<Session>,
    topic: String,
    qos: QoS,
    /// Whether messages are queued without a connection.
    queue: bool,
}

#[derive(Debug)]
struct MqttSubscriber {
    queue: Receiver<Arrival>,
    session: Arc<Session>,
}

impl Publisher for MqttPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        if !self.queue && !self.session.status.connected.load(Ordering::Relaxed) {
            return Err(Refused::NotConnected);
        }
        self.session
            .client
            .try_publish(self.topic.as_str(), self.qos, false, message)
            .map_err(|_| Refused::QueueFull)
    }
}

impl Subscriber for MqttSubscriber {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        match self.queue.recv_timeout(time::Duration::from_nanos(RECEIVE_WAIT.as_nanos())) {
            Ok(Arrival::Message(at, publish)) => {
                message.clear();
                message.extend_from_slice(&publish.payload);
                Ok(Received::Message(at))
            }
            Ok(Arrival::Reconnected(at)) => Ok(Received::Reconnected(at)),
            Err(RecvTimeoutError::Timeout) => Ok(Received::Nothing),
            Err(RecvTimeoutError::Disconnected) => Err(ProtocolError::Closed),
        }
    }
}
