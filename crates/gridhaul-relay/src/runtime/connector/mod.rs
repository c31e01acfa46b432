//! A connection to a peer that is established again after each failure: resolution of the peer's
//! name, a limit of time, and growing intervals between attempts.

pub(crate) mod backoff;
pub(crate) mod resolver;
pub(crate) mod unreachable;

use std::net::SocketAddr;
use std::sync::Arc;

use gridhaul_linux::Error;
use gridhaul_scenario::units::{Duration, Instant};
use socket2::Socket;

use self::backoff::Backoff;
use self::resolver::Resolution;
use self::unreachable::{explain, explain_name, explain_silence};
use super::poll::Waker;
use super::random;

/// Time after which an attempt to connect has failed. The kernel would repeat SYN at intervals of
/// up to a minute, and notice late that the peer is reachable again.
const CONNECT: Duration = Duration::from_secs(5);

/// Establishes a connection.
#[derive(Debug)]
pub(crate) struct Connector {
    target: String,
    /// Key of the configuration with the target.
    key: &'static str,
    state: State,
    backoff: Backoff,
    /// Message of the last failure, so that each is reported once.
    error: String,
    /// When the first attempt has failed.
    failed_at: Option<Instant>,
}

#[derive(Debug)]
enum State {
    Waiting(Instant),
    Resolving(Resolution),
    Connecting(Socket, Instant),
    /// The owner has the connection.
    Connected,
}

impl Connector {
    /// `target` is an address, or a host name with a port, which the configuration has at `key`.
    pub(crate) fn new(target: &str, key: &'static str) -> Self {
        Self {
            target: target.to_owned(),
            key,
            state: State::Waiting(Instant::ZERO),
            backoff: Backoff::new(Instant::ZERO),
            error: String::new(),
            failed_at: None,
        }
    }

    /// When the first attempt has failed, until a connection is established.
    pub(crate) const fn failed_at(&self) -> Option<Instant> {
        self.failed_at
    }

    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Message of the last failure, until a connection is established.
    pub(crate) fn error(&self) -> Option<&str> {
        (!self.error.is_empty()).then_some(&self.error)
    }

    /// The socket of an attempt.
    pub(crate) const fn socket(&self) -> Option<&Socket> {
        match &self.state {
            State::Connecting(socket, _) => Some(socket),
            _ => None,
        }
    }

    /// When [`Self::advance`] must be called again.
    pub(crate) fn deadline(&self) -> Instant {
        match &self.state {
            State::Waiting(until) => *until,
            State::Connecting(_, begun) => *begun + CONNECT,
            State::Resolving(_) | State::Connected => Instant::NEVER,
        }
    }

    /// Does what is due. `begin` creates a socket that connects to an address. An error is passed
    /// to [`Self::handle_failure`] by the caller.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        waker: &Arc<Waker>,
        begin: impl FnOnce(SocketAddr) -> Result<Socket, Error>,
    ) -> Result<(), String> {
        let address = match &self.state {
            State::Waiting(until) if *until <= now => match self.target.parse() {
                Ok(address) => address,
                Err(_) => {
                    // A name: its resolution may take long, and has a thread of its own.
                    let resolution = Resolution::start(&self.target, Arc::clone(waker));
                    self.state = State::Resolving(resolution);
                    return Ok(());
                }
            },
            State::Resolving(resolution) => match resolution.poll() {
                Some(found) => found.map_err(|error| explain_name(&error, self.key))?,
                None => return Ok(()),
            },
            State::Connecting(_, begun) if now >= *begun + CONNECT => {
                return Err(explain_silence(CONNECT, self.key));
            }
            State::Waiting(_) | State::Connecting(..) | State::Connected => return Ok(()),
        };
        let socket = begin(address).map_err(|error| error.to_string())?;
        self.state = State::Connecting(socket, now);
        Ok(())
    }

    /// The socket is ready. Returns it if it is connected.
    pub(crate) fn poll_connected(&mut self) -> Result<Option<Socket>, String> {
        let State::Connecting(socket, _) = &self.state else { return Ok(None) };
        if let Some(error) = socket.take_error().map_err(|error| error.to_string())? {
            return Err(explain(&error, self.key));
        }
        // An event without an error may precede the end of the handshake.
        if socket.peer_addr().is_err() {
            return Ok(None);
        }
        match std::mem::replace(&mut self.state, State::Connected) {
            State::Connecting(socket, _) => Ok(Some(socket)),
            _ => Ok(None),
        }
    }

    /// The peer serves the connection. True if a failure was reported before.
    pub(crate) fn handle_established(&mut self, now: Instant) -> bool {
        self.backoff.handle_established(now);
        self.failed_at = None;
        !std::mem::take(&mut self.error).is_empty()
    }

    /// The connection, or an attempt, has failed: another one follows. True if the message differs
    /// from that of the last failure, and is to be reported.
    pub(crate) fn handle_failure(&mut self, now: Instant, message: &str) -> bool {
        self.state = State::Waiting(self.backoff.handle_failure(now, random()));
        self.failed_at = self.failed_at.or(Some(now));
        // An outage of days is reported once, and again when its reason changes.
        let is_new = self.error != message;
        message.clone_into(&mut self.error);
        is_new
    }
}
