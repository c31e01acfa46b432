//! An agent: listens, authenticates controllers, and runs one receiver at a time.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time;

use gridhaul_linux::request_realtime_priority;
use gridhaul_protocols::control_channel::{Action, ReceiverSpec, Session};
use gridhaul_scenario::units::Instant;
use rustls::ServerConfig;
use socket2::SockRef;
use thiserror::Error;

use super::channel::{Channel, server_config};
use super::receiver::{AgentClock, Receiver, plain_ip};
use super::secret::{AgentKey, SecretError, Token};
use crate::measurement::Fingerprint;

/// Connections at the same time; further ones are refused with a reason.
const CONNECTIONS: usize = 8;

/// Connections at the same time that are refused with a reason; further ones are closed without it.
const REFUSALS: usize = 8;

/// Longest time between two checks of deadlines and of the end of the program.
const CHECK: time::Duration = time::Duration::from_millis(100);

/// Time after a wrong token before the reply: it limits how many tokens can be tried.
const WRONG_TOKEN_DELAY: time::Duration = time::Duration::from_secs(1);

/// Bytes of a read.
const READ: usize = 16 * 1024;

/// Why an agent cannot start.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The address cannot be used.
    #[error(
        "--listen: cannot listen at {address}: {source}\n  help: choose an address of this \
         machine and a free port"
    )]
    Listen {
        /// Address.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The key cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// An agent that listens.
#[derive(Debug)]
pub struct Agent {
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    fingerprint: Fingerprint,
    token: Token,
    clock: AgentClock,
    /// Interface at which frames are received.
    device: Option<String>,
    /// Whether a controller has the agent.
    busy: AtomicBool,
    connections: AtomicUsize,
}

impl Agent {
    /// Listens at an address; port 0 stands for a free one.
    ///
    /// # Errors
    /// The address or the key cannot be used.
    pub fn bind(
        address: SocketAddr,
        token: Token,
        key: &AgentKey,
        clock: AgentClock,
    ) -> Result<Self, AgentError> {
        let listen = |source| AgentError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        // The timeout of reads holds for `accept` as well (socket(7)).
        SockRef::from(&listener).set_read_timeout(Some(CHECK)).map_err(listen)?;
        let (tls, fingerprint) = server_config(key)?;
        let (busy, connections) = (AtomicBool::new(false), AtomicUsize::new(0));
        Ok(Self { listener, tls, fingerprint, token, clock, device: None, busy, connections })
    }

    /// The same agent, which receives frames at an interface of this machine.
    #[must_use]
    pub fn with_interface(self, device: Option<String>) -> Self {
        Self { device, ..self }
    }

    /// Address at which the agent listens.
    ///
    /// # Errors
    /// The kernel does not report the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Fingerprint of the key, for controllers.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Serves controllers until `stop` becomes `true`. `log` receives a line for each event.
    pub fn run(&self, stop: &AtomicBool, log: &(dyn Fn(&str) + Sync)) {
        thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                // Without a connection, or after an error of one that has gone, the next one is
                // awaited.
                let Ok((socket, peer)) = self.listener.accept() else { continue };
                let open = self.connections.fetch_add(1, Ordering::Relaxed);
                if open >= CONNECTIONS {
                    log(&format!("{peer}: refused, {CONNECTIONS} connections are open"));
                }
                if open >= CONNECTIONS + REFUSALS {
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let session = self.session(open);
                scope.spawn(move || {
                    let log_peer = |text: &str| log(&format!("{peer}: {text}"));
                    let done = self.serve(socket, session, stop, &log_peer);
                    if let Err(error) = done {
                        log(&format!("{peer}: {error}"));
                    }
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }

    /// The session of a connection, when as many others are `open`.
    fn session(&self, open: usize) -> Session {
        let now = self.clock.clock.now();
        if open < CONNECTIONS {
            return Session::new(now);
        }
        let reason = format!(
            "{CONNECTIONS} connections are open, which is the limit; a connection without a token \
             ends after 10 s: try again then"
        );
        Session::refusing(now, reason)
    }

    /// Serves a connection until its end.
    fn serve(
        &self,
        socket: TcpStream,
        session: Session,
        stop: &AtomicBool,
        log: &dyn Fn(&str),
    ) -> io::Result<()> {
        let mut connection = AgentConnection::new(self, socket, session, log)?;
        let mut buffer = vec![0; READ];
        while !connection.session.is_over() {
            if stop.load(Ordering::Relaxed) {
                connection.session.fail("the agent was ended on its machine".into());
                break;
            }
            connection.send()?;
            let read = connection.channel.read(CHECK, &mut buffer)?;
            let received = self.clock.read();
            if let Some(length) = read {
                connection.session.handle_input(&buffer[..length], connection.now());
            }
            connection.session.handle_time(connection.now());
            while let Some(action) = connection.session.poll_action() {
                connection.perform(action, received)?;
            }
        }
        connection.send()?;
        connection.close();
        log("disconnected");
        Ok(())
    }

    /// Compares a token, and takes the agent if it is free.
    #[expect(clippy::disallowed_methods, reason = "a wrong token is answered late on purpose")]
    fn authenticate<'a>(&'a self, token: &str, slot: &mut Option<Slot<'a>>) -> Result<(), String> {
        if !self.token.is_equal(token) {
            thread::sleep(WRONG_TOKEN_DELAY);
            return Err("the token is wrong".into());
        }
        if self.busy.swap(true, Ordering::Relaxed) {
            return Err("the agent is busy with a run of another controller".into());
        }
        *slot = Some(Slot(&self.busy));
        Ok(())
    }
}

/// The right to use the agent, which ends when this value is dropped.
#[derive(Debug)]
struct Slot<'a>(&'a AtomicBool);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A connection of a controller. Fields are dropped in this order: the receiver ends before the
/// agent is free again, and the controller takes the end of the channel as the end of its run: the
/// agent is free then.
struct AgentConnection<'a> {
    receiver: Option<Receiver>,
    slot: Option<Slot<'a>>,
    channel: Channel,
    session: Session,
    /// Bytes of the session for the channel.
    output: Vec<u8>,
    agent: &'a Agent,
    /// Address of this machine, at which the controller has found it.
    local: IpAddr,
    log: &'a dyn Fn(&str),
}

impl<'a> AgentConnection<'a> {
    fn new(
        agent: &'a Agent,
        socket: TcpStream,
        session: Session,
        log: &'a dyn Fn(&str),
    ) -> io::Result<Self> {
        let local = plain_ip(socket.local_addr()?);
        let channel = Channel::server(socket, &agent.tls)?;
        let (receiver, slot, output) = (None, None, Vec::new());
        Ok(Self { receiver, slot, channel, session, output, agent, local, log })
    }

    fn now(&self) -> Instant {
        self.agent.clock.clock.now()
    }

    /// Performs an action of the session. `received` is the time of the bytes that requested it, on
    /// the clock of the agent.
    fn perform(&mut self, action: Action, received: i64) -> io::Result<()> {
        match action {
            Action::Authenticate(token) => self.authenticate(&token),
            Action::Start(spec) => self.start(&spec),
            Action::Exchange(number) => self.exchange(number, received)?,
        }
        Ok(())
    }

    fn authenticate(&mut self, token: &str) {
        let result = self.agent.authenticate(token, &mut self.slot);
        (self.log)(result.as_ref().map_or_else(|reason| reason.as_str(), |()| "connected"));
        self.session.handle_authenticated(result, self.now());
    }

    /// Starts a receiver in the place of an earlier one.
    fn start(&mut self, spec: &ReceiverSpec) {
        let (device, clock) = (self.agent.device.as_deref(), self.agent.clock.clock);
        let started = Receiver::start(spec, self.local, device, clock, self.receiver.take());
        let started = started.map(|(receiver, reply)| {
            self.receiver = Some(receiver);
            // Answers are sent without waiting for programs of this machine.
            request_realtime_priority();
            reply
        });
        self.session.handle_started(started, self.now());
    }

    /// Answers with the times of the request and of the answer, and then with a report.
    fn exchange(&mut self, number: u64, received: i64) -> io::Result<()> {
        let clock = &self.agent.clock;
        self.session.handle_times(number, received, clock.read());
        // The answer leaves before the report is made.
        self.send()?;
        match self.receiver.as_ref().map(|receiver| receiver.report(number, clock)) {
            Some(Ok(report)) => self.session.handle_report(report),
            Some(Err(reason)) => self.session.fail(reason),
            None => self.session.fail("there is no receiver".into()),
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        self.session.poll_output(&mut self.output);
        let sent = self.channel.write(&self.output);
        self.output.clear();
        sent
    }

    /// Ends the run, and then the channel.
    fn close(mut self) {
        drop((self.receiver.take(), self.slot.take()));
        self.channel.close();
    }
}
