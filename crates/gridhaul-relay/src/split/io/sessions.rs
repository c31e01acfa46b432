//! Sessions: accepting, connecting, transferring in turn, closing.

use std::io;
use std::net::SocketAddr;

use gridhaul_linux::{EventFlags, begin_connect, close_with_fin, configure_leg, set_transparent};
use gridhaul_scenario::units::{Duration, Instant};
use socket2::{Domain, Protocol, Socket, Type};

use super::Loop;
use super::connection::{Connection, Origin};
use super::listeners::Target;
use super::own_connections::Opener;
use super::token::SplitToken;
use crate::runtime::connector::unreachable::{explain, explain_silence};
use crate::runtime::listener::{ACCEPT_BUDGET, EXHAUSTED, accept, canonical};
use crate::runtime::poll::NUMBER_MASK;
use crate::runtime::{Level, report};
use crate::split::{Leg, SessionEnd};

/// Time between two messages about the same condition.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

impl Loop {
    pub(super) fn accept(&mut self, now: Instant) {
        if self.drain.has_begun() {
            return;
        }
        let mut budget = ACCEPT_BUDGET;
        for index in 0..self.listeners.len() {
            while self.listeners[index].can_accept() && budget > 0 && self.accept_at <= now {
                if self.open >= self.open_max {
                    let max = self.open_max;
                    self.report(now, &format!("{max} clients are connected: further clients wait"));
                    return;
                }
                budget -= 1;
                let Some(listener) = &self.listeners[index].socket else { break };
                match accept(listener) {
                    Ok(Some((socket, peer))) => {
                        let local = socket.local_addr().ok().and_then(|local| local.as_socket());
                        match self.own_connections.opener(peer, local.map(canonical)) {
                            Opener::Relay => self.refuse_loop(now, index, socket),
                            opener => self.open(now, index, socket, opener),
                        }
                    }
                    Ok(None) => self.listeners[index].is_ready = false,
                    Err(error) => {
                        self.accept_at = now + EXHAUSTED;
                        self.report(now, &format!("cannot accept a client: {error}"));
                    }
                }
            }
        }
    }

    /// Resets a connection that this relay has opened itself: each would open a further one.
    fn refuse_loop(&mut self, now: Instant, index: usize, client: Socket) {
        drop(client);
        self.counters.refused += 1;
        let name = &self.listeners[index].name;
        let text = format!(
            "{name}: a loop: a connection of this relay to a server has arrived at its own \
             listener, and is reset\n  \
             help: correct `split.listener.{name}.upstream`, or the translation of addresses on \
             the path"
        );
        self.report(now, &text);
    }

    /// Begins a session. A client whose server cannot be reached is reset when its socket is
    /// dropped.
    fn open(&mut self, now: Instant, index: usize, client: Socket, opener: Opener) {
        let server = match self.connect(index, &client) {
            Ok(server) => server,
            Err(error) => {
                self.counters.refused += 1;
                if is_not_connected(&error) {
                    return;
                }
                let name = &self.listeners[index].name;
                self.report(now, &format!("{name}: a client is reset: {error}"));
                self.listeners[index].handle_failure(now);
                return;
            }
        };
        let row = self.free.pop().unwrap_or(self.connections.len() as u32);
        let number = self.next_number & NUMBER_MASK;
        self.next_number = self.next_number.wrapping_add(1);
        // Edge-triggered for both directions once, so that no later call changes it.
        let directions = EventFlags::IN | EventFlags::PRI | EventFlags::OUT | EventFlags::RDHUP;
        let flags = directions | EventFlags::ET;
        for (leg, socket) in [(Leg::Client, &client), (Leg::Server, &server)] {
            if let Err(error) = self.poll.add(socket, SplitToken::Leg(leg, row, number), flags) {
                self.free.push(row);
                self.counters.refused += 1;
                self.report(now, &format!("cannot watch a connection: {error}"));
                return;
            }
        }
        let is_transparent = matches!(self.listeners[index].target, Target::Transparent);
        // The address of a transparent connection is that of its client, who may have others.
        let own = &mut self.own_connections;
        let port = if is_transparent { 0 } else { own.insert(row, &server, opener) };
        let origin = Origin { listener: index as u16, port };
        let connection = Connection::new(now, [client, server], number, origin);
        if row as usize == self.connections.len() {
            self.connections.push(None);
        }
        self.connections[row as usize] = Some(Box::new(connection));
        self.open += 1;
        self.counters.accepted += 1;
        self.set_timer(row, now + self.timeouts.connect);
    }

    /// Begins the connection to the server of a client.
    fn connect(&self, index: usize, client: &Socket) -> Result<Socket, gridhaul_linux::Error> {
        let failed = || gridhaul_linux::Error::call("connecting to the server");
        let listener = &self.listeners[index];
        let (server, source) = match listener.target {
            Target::Transparent => {
                let address = |found: io::Result<socket2::SockAddr>| {
                    let address = found.map_err(failed())?.as_socket();
                    address.ok_or_else(|| failed()(io::Error::other("not an IP address")))
                };
                let (server, source) =
                    (address(client.local_addr())?, address(client.peer_addr())?);
                if listener.is_own(server) {
                    let message =
                        "the client has connected to the relay itself, not through a TPROXY rule";
                    return Err(failed()(io::Error::other(message)));
                }
                (server, Some(source))
            }
            _ => match listener.server() {
                Some(server) => (server, None),
                None => return Err(failed()(io::Error::other("its address is not known"))),
            },
        };
        let domain = Domain::for_address(server);
        let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))
            .map_err(failed())?;
        configure_leg(&socket, &self.server_options)?;
        if let Some(source) = source {
            bind_to_client(&socket, source)?;
        }
        begin_connect(&socket, server).map_err(failed())?;
        Ok(socket)
    }

    pub(super) fn handle_leg(
        &mut self,
        now: Instant,
        leg: Leg,
        row: u32,
        number: u32,
        flags: EventFlags,
    ) {
        let Some(Some(connection)) = self.connections.get_mut(row as usize) else { return };
        // An event of a session that has ended in this turn.
        if connection.number != number {
            return;
        }
        let is_connected = connection.session.is_connected();
        if flags.contains(EventFlags::ERR) {
            let cause = match leg {
                Leg::Client => SessionEnd::Client,
                Leg::Server if is_connected => SessionEnd::Server,
                Leg::Server => SessionEnd::Connect,
            };
            self.reset(now, row, cause);
            return;
        }
        connection.note(leg, flags);
        if leg == Leg::Server && !is_connected && flags.contains(EventFlags::OUT) {
            connection.session.handle_connected(now);
            self.timers.remove(&(connection.timer, row));
            connection.timer = Instant::NEVER;
            let limit = connection.session.deadline(&self.timeouts);
            if let Some((at, _)) = limit {
                self.set_timer(row, at);
            }
        }
        let Some(Some(connection)) = self.connections.get_mut(row as usize) else { return };
        if connection.session.is_connected() && !connection.is_queued {
            connection.is_queued = true;
            self.ready.push_back((row, number));
        }
    }

    /// Transfers data of each ready session, in turn.
    pub(super) fn serve_ready(&mut self, now: Instant) {
        for _ in 0..self.ready.len() {
            let Some((row, number)) = self.ready.pop_front() else { return };
            let Some(Some(connection)) = self.connections.get_mut(row as usize) else { continue };
            // An entry of a session that has ended meanwhile must not serve a later one in its row
            // twice.
            if connection.number != number || !connection.is_queued {
                continue;
            }
            connection.is_queued = false;
            let mut is_closing = false;
            let mut failure = None;
            for leg in Leg::BOTH {
                match connection.transfer(leg, &mut self.shared) {
                    Ok(transfer) => {
                        self.counters.transferred[leg as usize] += transfer.moved;
                        if transfer.moved > 0 || transfer.is_closing {
                            connection.session.note_progress(now);
                        }
                        is_closing |= transfer.is_closing;
                        connection.is_queued |= transfer.is_unfinished;
                    }
                    Err(cause) => failure = failure.or(Some(cause)),
                }
            }
            if let Some(cause) = failure {
                self.reset(now, row, cause);
                continue;
            }
            if connection.session.is_complete() {
                self.close(row);
                continue;
            }
            if connection.is_queued {
                self.ready.push_back((row, number));
            }
            if is_closing && let Some((at, _)) = connection.session.deadline(&self.timeouts) {
                self.set_timer(row, at);
            }
        }
    }

    /// Ends a session whose streams are complete. The kernel sends what is in the send buffers,
    /// then FIN.
    fn close(&mut self, row: u32) {
        if let Some(connection) = self.remove(row) {
            for socket in &connection.sockets {
                // The socket is reset if this fails: never a FIN for data that is lost.
                let _ = close_with_fin(socket);
            }
        }
    }

    /// Resets both connections: a FIN would state that the stream is complete.
    pub(super) fn reset(&mut self, now: Instant, row: u32, cause: SessionEnd) {
        let Some(connection) = self.remove(row) else { return };
        self.counters.resets[cause as usize] += 1;
        if cause == SessionEnd::Connect {
            let listener = usize::from(connection.listener);
            let name = &self.listeners[listener].name;
            let key = format!("split.listener.{name}.upstream");
            let error = connection.socket(Leg::Server).take_error().ok().flatten();
            let reason = match error {
                Some(error) => explain(&error, &key),
                None => explain_silence(self.timeouts.connect, &key),
            };
            let server = self.listeners[listener].server();
            let server = server.map_or(String::new(), |address| format!(" {address}"));
            let message = format!(
                "{name}: clients are reset, the server{server} cannot be reached: {reason}"
            );
            self.report(now, &message);
            self.listeners[listener].handle_failure(now);
        }
    }

    /// Removes a session, whose sockets the caller drops.
    fn remove(&mut self, row: u32) -> Option<Box<Connection>> {
        let mut connection = self.connections.get_mut(row as usize)?.take()?;
        for leg in Leg::BOTH {
            connection.drop_carry(leg, &mut self.shared);
        }
        self.timers.remove(&(connection.timer, row));
        self.own_connections.remove(row, connection.port);
        self.free.push(row);
        self.open -= 1;
        Some(connection)
    }

    /// Reports a condition of which there may be many, at most once per interval.
    pub(super) fn report(&mut self, now: Instant, message: &str) {
        if self.next_report <= now {
            self.next_report = now + REPORT_INTERVAL;
            report(Level::Warning, message);
        }
    }
}

/// Whether the client has reset its connection before it was accepted.
fn is_not_connected(error: &gridhaul_linux::Error) -> bool {
    let gridhaul_linux::Error::Call { source, .. } = error else { return false };
    source.kind() == io::ErrorKind::NotConnected
}

/// Lets the server see the address and port of the client.
fn bind_to_client(socket: &Socket, source: SocketAddr) -> Result<(), gridhaul_linux::Error> {
    set_transparent(socket, source)?;
    let bound = socket.set_reuse_address(true).and_then(|()| socket.bind(&source.into()));
    bound.map_err(gridhaul_linux::Error::call(format!("binding to the client's address {source}")))
}
