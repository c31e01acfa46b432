//! Protocols over TCP without a broker: an [`Endpoint`] at each end, with its socket and thread.

mod ends;

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time;

use gridhaul_linux::{Clock, request_realtime_priority};
use gridhaul_protocols::endpoint::{Endpoint, NotSent};
use gridhaul_protocols::settings::ReconnectPolicy;
use gridhaul_scenario::units::Instant;
use rustix::net::{SendFlags, send};

use super::arrival::{Arrival, receive};
use super::{
    Connected, ProtocolError, Publisher, Received, Refused, Subscriber, has_nothing_arrived,
};
use crate::place::{Site, Sites};

pub(super) use ends::Streams;

/// Longest wait for input, after which timers are handled and a blocked output is tried again.
const WAIT: time::Duration = time::Duration::from_millis(20);

/// Time for the first connection.
const CONNECT_WITHIN: time::Duration = time::Duration::from_secs(10);

/// Output that the socket has not accepted: a publisher with more is refused.
const OUTPUT_MAX: usize = 1 << 20;

/// Messages that have arrived and not been read.
const QUEUE: usize = 100_000;

/// The end that waits for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listener {
    Publisher,
    Subscriber,
}

/// Settings of both sockets.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamSettings {
    /// Name of the protocol in errors.
    pub(super) protocol: &'static str,
    pub(super) listener: Listener,
    /// Port of the listener; 0 for a free one.
    pub(super) port: u16,
    pub(super) nodelay: bool,
    pub(super) reconnect: ReconnectPolicy,
}

/// Connects two ends and waits until messages can pass.
pub(super) fn connect(
    settings: StreamSettings,
    sites: &Sites<'_>,
    [publisher, subscriber]: [Box<dyn Endpoint>; 2],
) -> Result<Connected, ProtocolError> {
    let listens_at = match settings.listener {
        Listener::Publisher => &sites.from,
        Listener::Subscriber => &sites.to,
    };
    let (listener, address) = listen(listens_at, settings.port)?;
    let mut source = Some(Source::Listen(listener));
    let mut source_of = |role| match source.take_if(|_| settings.listener == role) {
        Some(listen) => listen,
        None => Source::Connect(address),
    };
    let sources = [source_of(Listener::Publisher), source_of(Listener::Subscriber)];
    let [publishes, subscribes] = sources;
    let publisher = End::start(settings, &sites.from, publishes, sites.clock, publisher)?;
    let subscriber = End::start(settings, &sites.to, subscribes, sites.clock, subscriber)?;
    for end in [&publisher, &subscriber] {
        end.await_ready(settings.protocol, address)?;
    }
    let publisher = StreamPublisher { end: publisher, awaited: None };
    Ok(Connected { publisher: Box::new(publisher), subscriber: Box::new(subscriber) })
}

/// A socket that waits for connections at an end of the network, and its address.
fn listen(site: &Site<'_>, port: u16) -> Result<(TcpListener, SocketAddr), ProtocolError> {
    let wanted = SocketAddr::new(site.address, port);
    let failed = |source| ProtocolError::Listen { address: wanted, source };
    let listener = site.enter(|| TcpListener::bind(wanted))?.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok((listener, address))
}

/// Where a connection comes from.
#[derive(Debug)]
enum Source {
    Listen(TcpListener),
    Connect(SocketAddr),
}

impl Source {
    /// The next connection; without one, `Err` after at most [`WAIT`].
    #[expect(clippy::disallowed_methods, reason = "waits in real time for a connection")]
    fn next(&self) -> io::Result<TcpStream> {
        match self {
            Self::Connect(address) => TcpStream::connect(address),
            Self::Listen(listener) => {
                let accepted = listener.accept();
                if accepted.is_err() {
                    thread::sleep(time::Duration::from_millis(2));
                }
                let (socket, _) = accepted?;
                socket.set_nonblocking(false)?;
                Ok(socket)
            }
        }
    }
}

/// State shared by the thread of an end and the measurement.
#[derive(Debug)]
struct Shared {
    line: Mutex<Line>,
    closing: AtomicBool,
}

/// A connection and the machine at its end.
#[derive(Debug)]
struct Line {
    endpoint: Box<dyn Endpoint>,
    socket: Option<TcpStream>,
    /// Bytes that the socket has not accepted yet.
    output: Vec<u8>,
}

impl Line {
    /// Hands output to the socket, as much as it accepts.
    fn flush(&mut self) -> io::Result<()> {
        self.endpoint.poll_output(&mut self.output);
        let Some(socket) = &self.socket else { return Ok(()) };
        while !self.output.is_empty() {
            match send(socket, &self.output, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(error) if error == rustix::io::Errno::AGAIN => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Shared {
    /// A thread that panicked has ended the measurement; its state is not used further.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// One end: a machine, and a thread that reads for it.
#[derive(Debug)]
struct End {
    shared: Arc<Shared>,
    arrivals: Receiver<Arrival>,
    ready: Receiver<Result<(), String>>,
    clock: Clock,
    thread: Option<JoinHandle<()>>,
}

impl End {
    fn start(
        settings: StreamSettings,
        site: &Site<'_>,
        source: Source,
        clock: Clock,
        endpoint: Box<dyn Endpoint>,
    ) -> Result<Self, ProtocolError> {
        let line = Mutex::new(Line { endpoint, socket: None, output: Vec::new() });
        let shared = Arc::new(Shared { line, closing: AtomicBool::new(false) });
        let (messages, arrivals) = sync_channel(QUEUE);
        let (outcome, ready) = sync_channel(1);
        let reader = Reader {
            shared: Arc::clone(&shared),
            source,
            messages,
            outcome: Some(outcome),
            settings,
            clock,
        };
        // The thread belongs to the namespace in which it is started, and its sockets to that of
        // the thread.
        let thread = site.enter(move || thread::spawn(move || reader.run()))?;
        Ok(Self { shared, arrivals, ready, clock, thread: Some(thread) })
    }

    fn await_ready(
        &self,
        protocol: &'static str,
        address: SocketAddr,
    ) -> Result<(), ProtocolError> {
        let reason = match self.ready.recv_timeout(CONNECT_WITHIN) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(reason)) => reason,
            Err(_) => format!("no answer within {} s", CONNECT_WITHIN.as_secs()),
        };
        Err(ProtocolError::Connect { protocol, address, reason })
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread of an end.
struct Reader {
    shared: Arc<Shared>,
    source: Source,
    messages: SyncSender<Arrival>,
    /// Awaits the result of the first connection.
    outcome: Option<SyncSender<Result<(), String>>>,
    settings: StreamSettings,
    clock: Clock,
}

impl Reader {
    #[expect(clippy::disallowed_methods, reason = "waits in real time before it reconnects")]
    fn run(mut self) {
        request_realtime_priority();
        let after = self.settings.reconnect.after;
        let after = after.map(|after| time::Duration::from_nanos(after.as_nanos()));
        let is_listener = matches!(self.source, Source::Listen(_));
        while !self.shared.is_closing() {
            let done = match self.source.next() {
                Ok(socket) => self.serve(socket).map_err(|error| error.to_string()),
                Err(error) if is_listener && error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => Err(error.to_string()),
            };
            self.shared.line().socket = None;
            if let Err(reason) = done
                && let Some(outcome) = self.outcome.take()
            {
                let _ = outcome.send(Err(reason));
                return;
            }
            let lost_at = time::Instant::now();
            let is_due = || after.is_some_and(|after| lost_at.elapsed() >= after);
            while !is_listener && !is_due() && !self.shared.is_closing() {
                thread::sleep(after.map_or(WAIT, |after| WAIT.min(after)));
            }
        }
    }

    /// Reads until the connection or the measurement ends.
    fn serve(&mut self, mut socket: TcpStream) -> anyhow::Result<()> {
        socket.set_nodelay(self.settings.nodelay)?;
        socket.set_read_timeout(Some(WAIT))?;
        let shared = Arc::clone(&self.shared);
        {
            let mut line = shared.line();
            line.output.clear();
            line.socket = Some(socket.try_clone()?);
            line.endpoint.open(self.clock.now());
            line.flush()?;
        }
        let mut is_ready = false;
        let mut buffer = vec![0; 1 << 16];
        while !shared.is_closing() {
            let read = match socket.read(&mut buffer) {
                Ok(0) => anyhow::bail!("the peer has closed the connection"),
                Ok(read) => read,
                Err(error) if has_nothing_arrived(&error) => 0,
                Err(error) => return Err(error.into()),
            };
            let at = self.clock.now();
            let mut line = shared.line();
            line.endpoint.handle_input(&buffer[..read], at)?;
            line.endpoint.handle_time(at)?;
            line.flush()?;
            if !is_ready && line.endpoint.is_ready() {
                is_ready = true;
                self.established(at);
            }
            while let Some(message) = line.endpoint.poll_message() {
                // Without a receiver the measurement is over.
                let _ = self.messages.try_send(Arrival::Message(at, message));
            }
        }
        Ok(())
    }

    fn established(&mut self, at: Instant) {
        match self.outcome.take() {
            Some(outcome) => {
                let _ = outcome.send(Ok(()));
            }
            None => {
                let _ = self.messages.try_send(Arrival::Reconnected(at));
            }
        }
    }
}

#[derive(Debug)]
struct StreamPublisher {
    end: End,
    /// Protocol and address, if this end listens for a subscriber that has not connected.
    awaited: Option<(&'static str, SocketAddr)>,
}

impl Publisher for StreamPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        let shared = &self.end.shared;
        let mut line = shared.line();
        if line.socket.is_none() {
            return Err(Refused::NotConnected);
        }
        if line.output.len() > OUTPUT_MAX {
            return Err(Refused::QueueFull);
        }
        line.endpoint.publish(message, self.end.clock.now()).map_err(|error| match error {
            NotSent::NotReady => Refused::NotConnected,
            NotSent::WindowFull => Refused::QueueFull,
            NotSent::TooLong(max) => Refused::TooLong(max),
        })?;
        // A failed socket is noticed by the thread that reads; the message is lost with the
        // connection.
        Ok(line.flush()?)
    }

    fn await_subscriber(&mut self) -> Result<(), ProtocolError> {
        match self.awaited.take() {
            Some((protocol, address)) => self.end.await_ready(protocol, address),
            None => Ok(()),
        }
    }
}

impl Subscriber for End {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        receive(&self.arrivals, message)
    }
}
