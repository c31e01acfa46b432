//! MQTT 3.1.1 and 5.0 with rumqttc: a publisher and a subscriber, which are one client or two.

mod version;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time;

use bytes::Bytes;
use gridhaul_linux::{Clock, request_realtime_priority};
use gridhaul_scenario::units::{Duration, Instant};

use super::{
    Connected, Protocol, ProtocolError, Publisher, RECEIVE_WAIT, Received, ReconnectPolicy,
    Refused, Subscriber,
};
use crate::broker::BrokerAddress;
use crate::network::Sites;

use version::{EventLoop, Handle, Notice};

/// Messages that a client queues.
const QUEUE: usize = 100_000;

/// Time for the first connection of a client.
const CONNECT_WITHIN: time::Duration = time::Duration::from_secs(10);

/// Version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// MQTT 3.1.1.
    V3,
    /// MQTT 5.0.
    V5,
}

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
    /// Version of the protocol.
    pub version: Version,
    /// Address of the broker.
    pub broker: BrokerAddress,
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
        match self.version {
            Version::V3 => "mqtt",
            Version::V5 => "mqtt5",
        }
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let connections = if self.one_connection { "1" } else { "2" };
        let mut settings = vec![
            ("broker", self.broker.address.to_string()),
            ("nodelay", self.nodelay.to_string()),
            ("qos", u8::from(self.qos == QualityOfService::AtLeastOnce).to_string()),
            ("connections", connections.into()),
            ("keep_alive", format!("{} s", self.keep_alive.as_secs_f64())),
        ];
        settings.extend(self.reconnect.settings());
        settings
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let (events, queue) = sync_channel(QUEUE);
        let session = self.client(sites, "subscriber", true, events.clone())?;
        let publishing = if self.one_connection {
            session.clone()
        } else {
            // The subscriber also reports the reconnections of the publisher.
            self.client(sites, "publisher", false, events)?
        };
        let subscriber = MqttSubscriber { queue, _session: session };
        Ok(Connected {
            publisher: Box::new(self.sending(publishing)),
            subscriber: Box::new(subscriber),
        })
    }
}

impl Mqtt {
    /// The sending end alone, on a machine that does not subscribe.
    ///
    /// # Errors
    /// The broker does not answer, or refuses the client.
    pub fn publisher(&self, sites: &Sites<'_>) -> Result<Box<dyn Publisher>, ProtocolError> {
        let (events, _) = sync_channel(QUEUE);
        Ok(Box::new(self.sending(self.client(sites, "publisher", false, events)?)))
    }

    /// A receiving end alone. `role` is part of the identifier of the client, which no other client of the broker has.
    ///
    /// # Errors
    /// The broker does not answer, or refuses the client.
    pub fn subscriber(
        &self,
        sites: &Sites<'_>,
        role: &str,
    ) -> Result<Box<dyn Subscriber>, ProtocolError> {
        let (events, queue) = sync_channel(QUEUE);
        let session = self.client(sites, role, true, events)?;
        Ok(Box::new(MqttSubscriber { queue, _session: session }))
    }

    fn sending(&self, session: Arc<Session>) -> MqttPublisher {
        MqttPublisher {
            session,
            topic: self.topic.clone(),
            qos: self.qos,
            queue: self.reconnect.queue,
        }
    }

    /// Starts a client at its end and waits until it is connected and, if it subscribes, subscribed. It reports
    /// messages and reconnections as `events`.
    fn client(
        &self,
        sites: &Sites<'_>,
        role: &str,
        subscribes: bool,
        events: SyncSender<Arrival>,
    ) -> Result<Arc<Session>, ProtocolError> {
        let (client, events_of_client) = version::client(self, role);
        let (ready, outcome) = sync_channel(1);
        let status = Arc::new(Status::default());
        let driver = Driver {
            client: events_of_client,
            status: Arc::clone(&status),
            subscription: subscribes.then(|| (client.clone(), self.topic.clone(), self.qos)),
            events,
            ready: Some(ready),
            reconnect_after: time::Duration::from_nanos(self.reconnect.after.as_nanos()),
            clock: sites.clock,
        };
        // The thread belongs to the namespace in which it is started.
        let site = if subscribes && !self.one_connection { &sites.subscriber } else { &sites.from };
        let thread = site.enter(move || thread::spawn(move || driver.run()))?;
        let session = Arc::new(Session { client, status, thread: Some(thread) });
        let (protocol, address) = (self.name(), self.broker.address);
        let refused = |reason| ProtocolError::Connect { protocol, address, reason };
        match outcome.recv_timeout(CONNECT_WITHIN) {
            Ok(Ok(())) => Ok(session),
            Ok(Err(reason)) => Err(refused(reason)),
            Err(_) => Err(refused(format!("no answer within {} s", CONNECT_WITHIN.as_secs()))),
        }
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
    client: Handle,
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
        self.client.disconnect();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The event loop of a client.
struct Driver {
    client: EventLoop,
    status: Arc<Status>,
    subscription: Option<(Handle, String, QualityOfService)>,
    events: SyncSender<Arrival>,
    /// Awaits the result of the first connection.
    ready: Option<SyncSender<Result<(), String>>>,
    reconnect_after: time::Duration,
    clock: Clock,
}

/// What a driver reports to the subscriber.
enum Arrival {
    Message(Instant, Bytes),
    Reconnected(Instant),
}

impl Driver {
    #[expect(clippy::disallowed_methods, reason = "waits in real time before it reconnects")]
    fn run(mut self) {
        request_realtime_priority();
        loop {
            let event = self.client.next();
            let at = self.clock.now();
            match event {
                // All handles of the client are gone.
                None => return,
                Some(Ok(Notice::Connected)) => match &self.subscription {
                    Some((client, topic, qos)) => {
                        // The queue of a client that has just connected has free space, unless it queues messages
                        // for its publisher; then the next attempt follows the next reconnection.
                        let _ = client.subscribe(topic, *qos);
                    }
                    None => self.established(at),
                },
                Some(Ok(Notice::Subscribed)) => self.established(at),
                Some(Ok(Notice::Message(message))) => {
                    if self.events.send(Arrival::Message(at, message)).is_err() {
                        return;
                    }
                }
                Some(Ok(Notice::Other)) => {}
                Some(Err(error)) => {
                    self.status.connected.store(false, Ordering::Relaxed);
                    if let Some(ready) = self.ready.take() {
                        let _ = ready.send(Err(error));
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
    qos: QualityOfService,
    /// Whether messages are queued without a connection.
    queue: bool,
}

#[derive(Debug)]
struct MqttSubscriber {
    queue: Receiver<Arrival>,
    /// Its client runs as long as the subscriber.
    _session: Arc<Session>,
}

impl Publisher for MqttPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        if !self.queue && !self.session.status.connected.load(Ordering::Relaxed) {
            return Err(Refused::NotConnected);
        }
        self.session.client.publish(&self.topic, self.qos, message).map_err(|_| Refused::QueueFull)
    }
}

impl Subscriber for MqttSubscriber {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        match self.queue.recv_timeout(time::Duration::from_nanos(RECEIVE_WAIT.as_nanos())) {
            Ok(Arrival::Message(at, arrived)) => {
                message.clear();
                message.extend_from_slice(&arrived);
                Ok(Received::Message(at.into()))
            }
            Ok(Arrival::Reconnected(at)) => Ok(Received::Reconnected(at)),
            Err(RecvTimeoutError::Timeout) => Ok(Received::Nothing),
            Err(RecvTimeoutError::Disconnected) => Err(ProtocolError::Closed),
        }
    }
}
