//! The receiver of a run at an agent: a thread that receives, and what it has seen.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Queue, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use gridhaul_linux::{Clock, request_realtime_priority};
use gridhaul_protocols::control_channel::{
    BrokerChoice, ReceiverProtocol, ReceiverSpec, Report, Started, StartedBroker,
};
use gridhaul_protocols::message_header::{Header, HeaderError};
use gridhaul_protocols::settings::{BrokerProgram, BrokerSettings, ClientSettings};
use gridhaul_scenario::units::Instant;

use crate::broker::{Broker, BrokerError};
use crate::clock::InjectedClock;
use crate::place::Site;
use crate::protocol::{
    ProtocolError, Received, ReceivingEnd, Subscriber, ThroughBroker, Udp, direct, frame_stream,
    modbus,
};

/// Arrivals between two reports.
const QUEUE: usize = 1 << 17;

/// Why an agent does not receive frames.
const NO_INTERFACE: &str = "the agent was started without --interface, and receives no frames; \
    start it with the interface of the network under test";

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
    broker: Option<OwnBroker>,
}

/// A broker that the agent has started.
#[derive(Debug)]
struct OwnBroker {
    broker: Broker,
    requested: BrokerRequest,
}

/// Configuration of a broker to start: program, settings and address.
type BrokerRequest = (BrokerProgram, BrokerSettings, IpAddr);

/// Reports of the thread.
enum Sighting {
    Arrived(u64, Instant),
    Corrupt(Option<u64>),
    Foreign,
    Reconnected,
    Failed(String),
}

impl AgentClock {
    /// Reading of the clock, in nanoseconds.
    pub(super) fn read(&self) -> i64 {
        self.at(self.clock.now())
    }

    /// Reading of the clock at a time of the monotonic clock.
    fn at(&self, at: Instant) -> i64 {
        let nanos = at.as_nanos() as i64;
        self.injected.map_or(nanos, |injected| injected.read(nanos))
    }
}

impl Receiver {
    /// Starts the receiver that a controller requests, at the address `local` unless another is
    /// requested, or at the interface `device` for frames. The receiver of an earlier run ends; a
    /// broker that is requested again keeps running.
    ///
    /// # Errors
    /// The socket, the broker or its client cannot be started.
    pub(super) fn start(
        spec: &ReceiverSpec,
        local: IpAddr,
        device: Option<&str>,
        clock: Clock,
        earlier: Option<Self>,
    ) -> Result<(Self, Started), String> {
        let address = spec.address.unwrap_or(local);
        let kept = earlier.and_then(|mut earlier| earlier.broker.take());
        let open = |end: Result<ReceivingEnd, ProtocolError>| {
            end.map(|end| (end, None)).map_err(|error| error.to_string())
        };
        let (end, broker) = match &spec.protocol {
            ReceiverProtocol::Udp { echo } => {
                open(Udp.receiver(address, clock, echo.then_some(spec.run)))?
            }
            ReceiverProtocol::Frames(stream) => {
                let device = device.ok_or(NO_INTERFACE)?;
                open(frame_stream::receiver(stream, device, address, clock))?
            }
            ReceiverProtocol::Modbus(modbus) => open(modbus::receiver(modbus, address, clock))?,
            ReceiverProtocol::Direct { settings, publisher } => {
                open(direct::receiver(settings, address, clock, *publisher))?
            }
            ReceiverProtocol::Broker { clients, broker } => {
                through_broker(clients, broker, kept, address, clock)?
            }
        };
        let ReceivingEnd { subscriber, address } = end;
        let started = broker.as_ref().map(|OwnBroker { broker, .. }| StartedBroker {
            program: broker.name().to_owned(),
            address: broker.address(),
        });
        let (sender, sightings) = sync_channel(QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let (run, flag) = (spec.run, Arc::clone(&stop));
        let thread = thread::spawn(move || receive(subscriber, run, &sender, &flag));
        let receiver = Self { sightings, stop, thread: Some(thread), broker };
        Ok((receiver, Started { address, broker: started }))
    }

    /// Arrivals since the last call.
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

/// The thread. A full queue means that the controller has requested no report for a long time; the
/// run has failed then.
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

/// A subscriber of a broker, which the agent starts unless the controller names one.
fn through_broker(
    clients: &ClientSettings,
    choice: &BrokerChoice,
    kept: Option<OwnBroker>,
    address: IpAddr,
    clock: Clock,
) -> Result<(ReceivingEnd, Option<OwnBroker>), String> {
    let text = |error: BrokerError| error.to_string();
    let (broker, own) = match choice {
        BrokerChoice::Given(broker) => (broker.clone(), None),
        BrokerChoice::Started(settings) => {
            let requested = (clients.protocol.program(), *settings, address);
            let own = match kept.filter(|kept| kept.requested == requested) {
                Some(kept) => kept,
                None => {
                    let broker =
                        Broker::start(requested.0, &Site::at(address), *settings).map_err(text)?;
                    OwnBroker { broker, requested }
                }
            };
            (own.broker.address(), Some(own))
        }
    };
    let address = broker.address;
    let protocol = ThroughBroker { clients: clients.clone(), broker };
    let subscriber = protocol.subscriber(clock).map_err(|error| error.to_string())?;
    Ok((ReceivingEnd { subscriber, address }, own))
}

/// The address of an agent on its control channel, without a mapping of IPv4 into IPv6.
pub(super) fn plain_ip(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}
