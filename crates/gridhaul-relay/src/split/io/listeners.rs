//! Addresses at which clients connect, and the servers behind them.

use std::net::SocketAddr;
use std::sync::Arc;

use gridhaul_linux::{EventFlags, LegOptions, begin_connect, configure_leg, set_transparent};
use gridhaul_scenario::relay::SplitListener;
use gridhaul_scenario::units::{Duration, Instant};
use socket2::{Domain, Protocol, Socket, Type};

use super::token::SplitToken;
use crate::runtime::connector::backoff::Backoff;
use crate::runtime::connector::resolver::Resolution;
use crate::runtime::listener::listen_with;
use crate::runtime::listening_sockets::ListeningSockets;
use crate::runtime::local_address::is_local;
use crate::runtime::poll::{Poll, Waker};
use crate::runtime::random;
use crate::runtime::{Level, RunError, report};

/// Time between two attempts to reach a server that is down, and shortest time between two
/// resolutions of its name.
const RETRY: Duration = Duration::from_secs(1);

/// A listener.
pub(super) struct ClientAddress {
    pub name: String,
    index: u32,
    address: String,
    /// `None` while the server of a `connect_first` listener is down.
    pub socket: Option<Socket>,
    /// Whether connections wait to be accepted.
    pub is_ready: bool,
    pub target: Target,
    upstream: Option<String>,
    options: LegOptions,
    probe: Option<Probe>,
}

/// Where a session connects to.
#[derive(Debug)]
pub(super) enum Target {
    /// The address that the client has chosen.
    Transparent,
    Address(SocketAddr),
    /// A host name.
    Name(ServerName),
}

/// A host name, which is resolved again after failures.
#[derive(Debug)]
pub(super) struct ServerName {
    name: String,
    address: Option<SocketAddr>,
    resolution: Option<Resolution>,
    retry_at: Instant,
    backoff: Backoff,
    /// Message of the last failure, so that each is reported once.
    error: String,
}

/// Checks whether a server accepts connections, before clients are accepted.
#[derive(Debug)]
enum Probe {
    /// The server accepts connections: the listener is open.
    Up,
    Waiting(Instant),
    Connecting(Socket, Instant),
}

impl ClientAddress {
    pub(super) fn new(name: &str, index: u32, config: &SplitListener, options: LegOptions) -> Self {
        let target = Target::new(config.upstream.as_deref());
        let probe = config.connect_first.then_some(Probe::Waiting(Instant::ZERO));
        Self {
            name: name.to_owned(),
            index,
            address: config.address.clone(),
            socket: None,
            is_ready: false,
            target,
            upstream: config.upstream.clone(),
            options,
            probe,
        }
    }

    /// Watches the listener, unless the server must be reached first: then it is not open.
    pub(super) fn start(
        &mut self,
        poll: &Poll<SplitToken>,
        sockets: &mut ListeningSockets,
    ) -> Result<(), RunError> {
        match sockets.take(&listener_key(&self.name)) {
            Some(socket) => self.watch(poll, socket),
            None => Ok(()),
        }
    }

    fn listen(&mut self, poll: &Poll<SplitToken>) -> Result<(), RunError> {
        let transparent = matches!(self.target, Target::Transparent);
        let options = &self.options;
        let socket =
            listen_with(&listener_key(&self.name), &self.address, 1, |socket, address| {
                configure_listener(socket, address, options, transparent)
            })?;
        self.watch(poll, socket)
    }

    fn watch(&mut self, poll: &Poll<SplitToken>, socket: Socket) -> Result<(), RunError> {
        poll.add(&socket, SplitToken::Listener(self.index), EventFlags::IN | EventFlags::ET)
            .map_err(gridhaul_linux::Error::call("watching a listener"))?;
        self.socket = Some(socket);
        Ok(())
    }

    /// Applies a configuration that was read again to later sessions.
    pub(super) fn reload(&mut self, config: &SplitListener, options: LegOptions) {
        if let Some(socket) = &self.socket {
            // Without a changed option, later clients are served with the earlier one.
            let _ = configure_leg(socket, &options);
        }
        self.options = options;
        if self.upstream != config.upstream && self.upstream.is_some() && config.upstream.is_some()
        {
            self.upstream.clone_from(&config.upstream);
            self.target = Target::new(config.upstream.as_deref());
        }
    }

    /// The address of the server; `None` while it is not known.
    pub(super) fn server(&self) -> Option<SocketAddr> {
        match &self.target {
            Target::Transparent => None,
            Target::Address(address) => Some(*address),
            Target::Name(name) => name.address,
        }
    }

    /// Whether a connection to this address would return to the listener.
    pub(super) fn is_own(&self, server: SocketAddr) -> bool {
        let is_local = || is_local(server.ip());
        self.address.parse::<SocketAddr>().is_ok_and(|own| {
            own.port() == server.port()
                && (own.ip() == server.ip() || own.ip().is_unspecified() && is_local())
        })
    }

    /// Why the address of the server is not known.
    pub(super) fn error(&self) -> Option<&str> {
        match &self.target {
            Target::Name(name) if !name.error.is_empty() => Some(&name.error),
            _ => None,
        }
    }

    /// Whether a client can be accepted and connected.
    pub(super) fn can_accept(&self) -> bool {
        self.is_ready && (self.server().is_some() || matches!(self.target, Target::Transparent))
    }

    /// A connection to the server has failed.
    pub(super) fn handle_failure(&mut self, now: Instant) {
        // The server may have moved.
        if let Target::Name(name) = &mut self.target {
            name.address = None;
        }
        if matches!(self.probe, Some(Probe::Up)) {
            self.probe = Some(Probe::Waiting(now + RETRY));
            self.socket = None;
            self.is_ready = false;
            let message =
                format!("{}: the server does not accept connections; not listening", self.name);
            report(Level::Warning, &message);
        }
    }

    /// Resolves the name and probes the server if it is time.
    pub(super) fn advance(&mut self, now: Instant, poll: &Poll<SplitToken>, waker: &Arc<Waker>) {
        if let Target::Name(name) = &mut self.target {
            name.advance(now, &self.name, waker);
        }
        let Some(server) = self.server() else { return };
        match &self.probe {
            Some(Probe::Waiting(at)) if *at <= now => {
                self.probe = Some(match probe(server, poll, self.index) {
                    Ok(socket) => Probe::Connecting(socket, now + RETRY),
                    Err(_) => Probe::Waiting(now + RETRY),
                });
            }
            Some(Probe::Connecting(_, until)) if *until <= now => {
                self.probe = Some(Probe::Waiting(now + RETRY));
            }
            _ => {}
        }
    }

    /// An event of the probe.
    pub(super) fn handle_probe(&mut self, now: Instant, poll: &Poll<SplitToken>) {
        let Some(Probe::Connecting(socket, _)) = &self.probe else { return };
        let is_up = matches!(socket.take_error(), Ok(None)) && socket.peer_addr().is_ok();
        self.probe = Some(Probe::Waiting(now + RETRY));
        if !is_up {
            return;
        }
        // Another program may use the address by now; sessions of other listeners continue.
        if let Err(error) = self.listen(poll) {
            report(Level::Error, &error.to_string());
            return;
        }
        self.probe = Some(Probe::Up);
        report(Level::Notice, &format!("{}: the server accepts connections; listening", self.name));
    }

    /// When [`Self::advance`] must be called again.
    pub(super) fn deadline(&self) -> Instant {
        let resolution = match &self.target {
            Target::Name(name) => name.deadline(),
            _ => Instant::NEVER,
        };
        match &self.probe {
            Some(Probe::Waiting(at)) if self.server().is_some() => resolution.min(*at),
            Some(Probe::Connecting(_, until)) => resolution.min(*until),
            _ => resolution,
        }
    }
}

impl Target {
    fn new(upstream: Option<&str>) -> Self {
        let Some(upstream) = upstream else { return Self::Transparent };
        match upstream.parse() {
            Ok(address) => Self::Address(address),
            Err(_) => Self::Name(ServerName {
                name: upstream.to_owned(),
                address: None,
                resolution: None,
                retry_at: Instant::ZERO,
                backoff: Backoff::new(Instant::ZERO),
                error: String::new(),
            }),
        }
    }
}

impl ServerName {
    /// Resolves the name if it is time. `listener` is the name of the listener.
    fn advance(&mut self, now: Instant, listener: &str, waker: &Arc<Waker>) {
        match self.resolution.as_ref().map(Resolution::poll) {
            None if self.address.is_none() && self.retry_at <= now => {
                self.resolution = Some(Resolution::start(&self.name, Arc::clone(waker)));
                self.retry_at = now + RETRY;
            }
            None | Some(None) => {}
            Some(Some(Ok(found))) => {
                (self.address, self.resolution) = (Some(found), None);
                self.backoff.handle_established(now);
                if !std::mem::take(&mut self.error).is_empty() {
                    let text = format!("{listener}: {} is resolved again", self.name);
                    report(Level::Notice, &text);
                }
            }
            Some(Some(Err(error))) => {
                self.resolution = None;
                self.retry_at = self.retry_at.max(self.backoff.handle_failure(now, random()));
                if self.error != error {
                    report(Level::Warning, &format!("{listener}: {error}; clients wait"));
                    self.error = error;
                }
            }
        }
    }

    fn deadline(&self) -> Instant {
        let is_due = self.address.is_none() && self.resolution.is_none();
        if is_due { self.retry_at } else { Instant::NEVER }
    }
}

/// Key of the address of a listener.
pub(super) fn listener_key(name: &str) -> String {
    format!("split.listener.{name}.address")
}

/// Sets the options of a listener. Accepted sockets inherit them; buffers and MSS take part in the
/// handshake.
pub(super) fn configure_listener(
    socket: &Socket,
    address: SocketAddr,
    options: &LegOptions,
    transparent: bool,
) -> Result<(), gridhaul_linux::Error> {
    configure_leg(socket, options)?;
    if transparent { set_transparent(socket, address) } else { Ok(()) }
}

/// Begins a connection that is closed once it is established.
fn probe(server: SocketAddr, poll: &Poll<SplitToken>, index: u32) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    begin_connect(&socket, server)?;
    poll.add(&socket, SplitToken::Probe(index), EventFlags::OUT | EventFlags::ET)?;
    Ok(socket)
}
