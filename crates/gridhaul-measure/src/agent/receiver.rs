//! The receiver of a run at an agent: a thread that receives, and what it has seen.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Queue, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use gridhaul_linux::{Clock, request_realtime_priority};
use gridhaul_scenario::units::{Duration, Instant};

use super::message::{MqttSpec, ReceiverProtocol, ReceiverSpec, Report, Started};
use crate::broker::{Broker, BrokerAddress, Credentials, Mosquitto};
use crate::clock::InjectedClock;
use crate::method::{Header, HeaderError};
use crate::network::{Site, Sites};
use crate::protocol::{
    Mqtt, ProtocolError, QualityOfService, Received, ReconnectPolicy, Subscriber, Udp, Version,
};

/// Arrivals between two reports.
const QUEUE: usize = 1 << 17;

/// The clock of an agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentClock {
    /// Monotonic clock of the machine.
    pub clock: Clock,
    /// Known error, for tests; the clock of the machine is never set.
    pub injected: Option<InjectedClock>,
}

/// The receiver of a run, which ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Receiver {
    sightings: Queue<Sighting>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Ends after the client.
    _broker: Option<Mosquitto>,
}

/// What the thread reports.
enum Sighting {
    Arrived(u64, Instant),
    Corrupt(Option<u64>),
    Foreign,
    Reconnected,
    Failed(String),
}

impl AgentClock {
    /// What the clock shows, in nanoseconds.
    pub(super) fn read(&self) -> i64 {
        self.at(self.clock.now())
    }

    /// What the clock shows at a time of the monotonic clock.
    fn at(&self, at: Instant) -> i64 {
        let nanos = at.as_nanos() as i64;
        self.injected.map_or(nanos, |injected| injected.read(nanos))
    }
}

impl Receiver {
    /// Starts the receiver that a controller requests, at the address `local` unless another is requested.
    ///
    /// # Errors
    /// The socket, the broker or its client cannot be started.
    pub(super) fn start(
        spec: &ReceiverSpec,
        local: IpAddr,
        clock: Clock,
    ) -> Result<(Self, Started), String> {
        let address = spec.address.unwrap_or(local);
        let failed = |error: ProtocolError| error.to_string();
        let (subscriber, broker, address) = match &spec.protocol {
            ReceiverProtocol::Udp { echo } => {
                let echo = echo.then_some(spec.run);
                let (end, address) = Udp.receiver(address, clock, echo).map_err(failed)?;
                (end, None, address)
            }
            ReceiverProtocol::Mqtt(mqtt) => {
                let broker = own_broker(mqtt, address)?;
                let mqtt = client(mqtt, broker.as_ref())?;
                let sites = Sites { clock, ..Sites::loopback() };
                let end = mqtt.subscriber(&sites, "receiver").map_err(failed)?;
                (end, broker, mqtt.broker.address)
            }
        };
        let name = broker.as_ref().map(|broker| broker.name().to_owned());
        let (sender, sightings) = sync_channel(QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let (run, flag) = (spec.run, Arc::clone(&stop));
        let thread = thread::spawn(move || receive(subscriber, run, &sender, &flag));
        let receiver = Self { sightings, stop, thread: Some(thread), _broker: broker };
        Ok((receiver, Started { address, broker: name }))
    }

    /// What has arrived since the last call.
    ///
    /// # Errors
    /// The receiver has failed.
    pub(super) fn report(&self, number: u64, clock: &AgentClock) -> Result<Report, String> {
        let mut report = Report { number, ..Report::default() };
        for sighting in self.sightings.try_iter().take(QUEUE) {
            match sighting {
                Sighting::Arrived(sequence, at) => report.arrivals.push((sequence, clock.at(at))),
                Sighting::Corrupt(sequence) => report.corrupt.push(sequence),
                Sighting::Foreign => report.foreign += 1,
                Sighting::Reconnected => report.reconnections += 1,
                Sighting::Failed(reason) => return Err(reason),
            }
        }
        Ok(report)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

/// The thread. A full queue means that the controller has not asked for a long time; the run has failed then.
fn receive(
    mut subscriber: Box<dyn Subscriber>,
    run: u32,
    sightings: &SyncSender<Sighting>,
    stop: &AtomicBool,
) {
    request_realtime_priority();
    let mut message = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let sighting = match subscriber.receive(&mut message) {
            Ok(Received::Nothing) => continue,
            Ok(Received::Reconnected(_)) => Sighting::Reconnected,
            Ok(Received::Message(at)) => match Header::read(&message, run) {
                Ok(header) => Sighting::Arrived(header.sequence, at.read),
                Err(HeaderError::Corrupt { sequence }) => Sighting::Corrupt(Some(sequence)),
                Err(HeaderError::Truncated(_)) => Sighting::Corrupt(None),
                Err(HeaderError::Foreign) => Sighting::Foreign,
            },
            Err(error) => {
                let _ = sightings.send(Sighting::Failed(error.to_string()));
                return;
            }
        };
        match sightings.try_send(sighting) {
            Ok(()) => {}
            Err(TrySendError::Disconnected(_)) => return,
            Err(TrySendError::Full(_)) => {
                let reason =
                    format!("{QUEUE} arrivals wait for a report: the controller is too slow");
                let _ = sightings.send(Sighting::Failed(reason));
                return;
            }
        }
    }
}

/// The broker that the agent starts, unless the controller names one.
fn own_broker(spec: &MqttSpec, address: IpAddr) -> Result<Option<Mosquitto>, String> {
    if spec.broker.is_some() {
        return Ok(None);
    }
    let broker = Mosquitto::start(&Site::at(address), spec.broker_nodelay);
    broker.map(Some).map_err(|error| error.to_string())
}

/// The client, at a broker that was started or named.
fn client(spec: &MqttSpec, broker: Option<&Mosquitto>) -> Result<Mqtt, String> {
    let named = || {
        let broker = spec.broker.as_ref()?;
        let credentials = broker.credentials.clone();
        let credentials = credentials.map(|(user, password)| Credentials { user, password });
        Some(BrokerAddress { address: broker.address, credentials })
    };
    let broker = broker.map(Broker::address).or_else(named).ok_or("there is no broker")?;
    Ok(mqtt(spec, broker))
}

/// A client of a broker with these settings.
pub(super) fn mqtt(spec: &MqttSpec, broker: BrokerAddress) -> Mqtt {
    Mqtt {
        version: if spec.version == 5 { Version::V5 } else { Version::V3 },
        broker,
        nodelay: spec.nodelay,
        qos: if spec.qos == 0 {
            QualityOfService::AtMostOnce
        } else {
            QualityOfService::AtLeastOnce
        },
        one_connection: false,
        keep_alive: Duration::from_millis(spec.keep_alive_ms),
        reconnect: ReconnectPolicy::default(),
        topic: spec.topic.clone(),
    }
}

/// The address of an agent on its control channel, without a mapping of IPv4 into IPv6.
pub(super) fn plain_ip(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}
