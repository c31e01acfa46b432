//! A client with an asynchronous library: a thread that connects, hands over messages, and connects
//! again after a failure.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time;

use gridhaul_linux::{Clock, request_realtime_priority};
use gridhaul_scenario::units::{Duration, Instant};
use tokio::sync::{Notify, mpsc};

use super::arrival::{Arrival, receive};
use super::{ProtocolError, Publisher, Received, Refused, Subscriber};
use crate::place::Site;

/// Messages that a client queues.
const QUEUE: usize = 100_000;

/// Time for the first connection of a client.
const CONNECT_WITHIN: time::Duration = time::Duration::from_secs(10);

/// Time in which a client ends its connection in an orderly way.
const CLOSE_WITHIN: time::Duration = time::Duration::from_secs(2);

/// Role of a client of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Role {
    /// Part of the identifier of the client, which no other client of the broker has.
    pub(super) name: &'static str,
    pub(super) publishes: bool,
    pub(super) subscribes: bool,
}

impl Role {
    pub(super) const PUBLISHER: Self =
        Self { name: "publisher", publishes: true, subscribes: false };
    pub(super) const SUBSCRIBER: Self =
        Self { name: "subscriber", publishes: false, subscribes: true };
    pub(super) const BOTH: Self = Self { publishes: true, ..Self::SUBSCRIBER };
    /// A subscriber at the end of the publisher, when another one is at the other end.
    pub(super) const RETURNS: Self = Self { name: "returns", ..Self::SUBSCRIBER };
}

/// A client of a library.
pub(super) trait Library: Send + 'static {
    /// Name of the protocol in errors.
    fn name(&self) -> &'static str;

    /// Connects, reports [`Ports::established`], and hands messages over in both directions until
    /// [`Ports::next`] returns `None`; then it closes the connection.
    fn session(&self, ports: &mut Ports) -> impl Future<Output = Result<(), String>>;
}

/// The ends of the queues between a client and the threads of the measurement.
pub(super) struct Ports {
    messages: mpsc::Receiver<Vec<u8>>,
    report: Report,
}

/// How the client reports.
pub(super) struct Report {
    arrivals: SyncSender<Arrival>,
    status: Arc<Status>,
    /// Awaits the result of the first connection.
    ready: Option<SyncSender<Result<(), String>>>,
    clock: Clock,
}

impl Ports {
    /// Both ends, so that a client can wait for either direction.
    pub(super) fn split(&mut self) -> (&mut mpsc::Receiver<Vec<u8>>, &mut Report) {
        (&mut self.messages, &mut self.report)
    }
}

impl Report {
    /// The client is connected, and subscribed if it subscribes.
    pub(super) fn established(&mut self) {
        self.status.connected.store(true, Ordering::Relaxed);
        match self.ready.take() {
            Some(ready) => {
                let _ = ready.send(Ok(()));
            }
            None => {
                let _ = self.arrivals.send(Arrival::Reconnected(self.clock.now()));
            }
        }
    }

    /// Time of a message that the library has read now.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// A message has arrived.
    pub(super) fn arrived(&self, at: Instant, message: Vec<u8>) {
        // Without a receiver the run is over, and the client ends with its queue of messages.
        let _ = self.arrivals.send(Arrival::Message(at, message));
    }
}

/// State of a client that its thread reports.
#[derive(Debug, Default)]
struct Status {
    connected: AtomicBool,
    closing: Notify,
    is_closing: AtomicBool,
}

/// A client and its thread, which ends with the last handle.
#[derive(Debug)]
struct Session {
    messages: Option<mpsc::Sender<Vec<u8>>>,
    status: Arc<Status>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.status.is_closing.store(true, Ordering::Relaxed);
        self.messages = None;
        self.status.closing.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The receiving handle of a client.
#[derive(Debug)]
pub(super) struct ClientSubscriber {
    queue: Receiver<Arrival>,
    session: Arc<Session>,
    /// Reports of a publisher with a connection of its own.
    of_publisher: Option<Receiver<Arrival>>,
}

/// The sending handle of a client.
#[derive(Debug)]
pub(super) struct ClientPublisher {
    session: Arc<Session>,
    /// Whether messages are queued without a connection.
    queue: bool,
    longest: usize,
}

/// The end of the network at which a client starts, and the server to which it connects.
pub(super) struct ClientStart<'a> {
    pub site: &'a Site<'a>,
    pub address: SocketAddr,
    pub clock: Clock,
    /// Pause before a new connection; `None` without reconnection.
    pub reconnect_after: Option<Duration>,
}

impl ClientStart<'_> {
    /// Starts a client and waits until it is connected.
    pub(super) fn start<L: Library>(self, library: L) -> Result<ClientSubscriber, ProtocolError> {
        let Self { site, address, clock, reconnect_after } = self;
        let protocol = library.name();
        let (arrivals, queue) = sync_channel(QUEUE);
        let (ready, outcome) = sync_channel(1);
        let (messages, receiver) = mpsc::channel(QUEUE);
        let status = Arc::new(Status::default());
        let report = Report { arrivals, status: Arc::clone(&status), ready: Some(ready), clock };
        let ports = Ports { messages: receiver, report };
        let after = reconnect_after.map(|after| time::Duration::from_nanos(after.as_nanos()));
        // The thread, and those that the library starts, belong to the namespace in which it is
        // started.
        let thread = site.enter(move || thread::spawn(move || run(&library, ports, after)))?;
        let session = Session { messages: Some(messages), status, thread: Some(thread) };
        let session = Arc::new(session);
        let refused = |reason| ProtocolError::Connect { protocol, address, reason };
        match outcome.recv_timeout(CONNECT_WITHIN) {
            Ok(Ok(())) => Ok(ClientSubscriber { queue, session, of_publisher: None }),
            Ok(Err(reason)) => Err(refused(reason)),
            Err(_) => Err(refused(format!("no answer within {} s", CONNECT_WITHIN.as_secs()))),
        }
    }
}

fn run<L: Library>(library: &L, mut ports: Ports, reconnect_after: Option<time::Duration>) {
    request_realtime_priority();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let status = Arc::clone(&ports.report.status);
    let closing = || status.is_closing.load(Ordering::Relaxed);
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&mut ports.report, error.to_string()),
    };
    while !closing() {
        let reason = runtime.block_on(async {
            tokio::select! {
                done = library.session(&mut ports) => done.err(),
                () = overdue(&status) => None,
            }
        });
        status.connected.store(false, Ordering::Relaxed);
        let reason = reason.unwrap_or_else(|| "the connection was closed".into());
        if ports.report.ready.is_some() {
            return fail(&mut ports.report, reason);
        }
        if !closing() {
            runtime.block_on(async {
                let next_attempt = async {
                    match reconnect_after {
                        Some(after) => tokio::time::sleep(after).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = next_attempt => {}
                    () = status.closing.notified() => {}
                }
            });
        }
    }
    // Tasks of the library that wait for a lost peer are not awaited.
    runtime.shutdown_background();
}

/// Reports that the first connection has failed.
fn fail(report: &mut Report, reason: String) {
    if let Some(ready) = report.ready.take() {
        let _ = ready.send(Err(reason));
    }
}

/// Returns when the client should have ended.
async fn overdue(status: &Status) {
    status.closing.notified().await;
    tokio::time::sleep(CLOSE_WITHIN).await;
}

impl ClientSubscriber {
    /// Time of a reconnection that has not been reported, of a client that does not subscribe.
    pub(super) fn reconnected(&self) -> Option<Instant> {
        self.queue.try_iter().find_map(|arrival| match arrival {
            Arrival::Reconnected(at) => Some(at),
            Arrival::Message(..) => None,
        })
    }

    /// From now on also reports the reconnections of `publisher`, a client with a connection of its
    /// own.
    pub(super) fn report_also(&mut self, publisher: Self) {
        self.of_publisher = Some(publisher.queue);
    }

    /// A sending handle of the same client.
    pub(super) fn publisher(&self, queue: bool, longest: usize) -> ClientPublisher {
        ClientPublisher { session: Arc::clone(&self.session), queue, longest }
    }
}

impl Publisher for ClientPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        if message.len() > self.longest {
            return Err(Refused::TooLong(self.longest));
        }
        if !self.queue && !self.session.status.connected.load(Ordering::Relaxed) {
            return Err(Refused::NotConnected);
        }
        let messages = self.session.messages.as_ref().ok_or(Refused::NotConnected)?;
        messages.try_send(message.to_vec()).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Refused::QueueFull,
            mpsc::error::TrySendError::Closed(_) => Refused::NotConnected,
        })
    }
}

impl Subscriber for ClientSubscriber {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let of_publisher = self.of_publisher.as_ref().and_then(|reports| reports.try_recv().ok());
        if let Some(Arrival::Reconnected(at)) = of_publisher {
            return Ok(Received::Reconnected(at));
        }
        receive(&self.queue, message)
    }
}
