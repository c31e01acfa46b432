//! An agent: listens, authenticates controllers, and runs one receiver at a time.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time;

use gridhaul_linux::request_realtime_priority;
use gridhaul_protocols::control_channel::{Action, Session};
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
        mut session: Session,
        stop: &AtomicBool,
        log: &dyn Fn(&str),
    ) -> io::Result<()> {
        let local = plain_ip(socket.local_addr()?);
        let mut channel = Channel::server(socket, &self.tls)?;
        let clock = self.clock.clock;
        // Both are dropped in this order: the receiver ends before the agent is free again.
        let mut slot = None;
        let mut receiver = None;
        let (mut buffer, mut output) = (vec![0; READ], Vec::new());
        while !session.is_over() {
            if stop.load(Ordering::Relaxed) {
                session.fail("the agent was ended on its machine".into());
                break;
            }
            send(&mut channel, &mut session, &mut output)?;
            let read = channel.read(CHECK, &mut buffer)?;
            let received = self.clock.read();
            if let Some(length) = read {
                session.handle_input(&buffer[..length], clock.now());
            }
            session.handle_time(clock.now());
            while let Some(action) = session.poll_action() {
                match action {
                    Action::Authenticate(token) => {
                        let result = self.authenticate(&token, &mut slot);
                        log(result
                            .as_ref()
                            .map_or_else(|reason| reason.as_str(), |()| "connected"));
                        session.handle_authenticated(result, clock.now());
                    }
                    Action::Start(spec) => {
                        let device = self.device.as_deref();
                        let started = Receiver::start(&spec, local, device, clock, receiver.take());
                        let started = started.map(|(started, reply)| {
                            receiver = Some(started);
                            // Answers are sent without waiting for programs of this machine.
                            request_realtime_priority();
                            reply
                        });
                        session.handle_started(started, clock.now());
                    }
                    Action::Exchange(number) => {
                        session.handle_times(number, received, self.clock.read());
                        // The answer leaves before the report is made.
                        send(&mut channel, &mut session, &mut output)?;
                        let report =
                            receiver.as_ref().map(|receiver| receiver.report(number, &self.clock));
                        match report {
                            Some(Ok(report)) => session.handle_report(report),
                            Some(Err(reason)) => session.fail(reason),
                            None => session.fail("there is no receiver".into()),
                        }
                    }
                }
            }
        }
        send(&mut channel, &mut session, &mut output)?;
        // The controller takes the end of the channel as the end of its run: the agent is free
        // then.
        drop((receiver, slot));
        channel.close();
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

fn send(channel: &mut Channel, session: &mut Session, output: &mut Vec<u8>) -> io::Result<()> {
    session.poll_output(output);
    let sent = channel.write(output);
    output.clear();
    sent
}
