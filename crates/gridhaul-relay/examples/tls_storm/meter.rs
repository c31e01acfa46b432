//! A meter that connects, reports, and closes when it has its answer.

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use gridhaul_linux::{begin_connect, unacknowledged_bytes};
use rustix::net::{Shutdown, shutdown};
use rustls::{ClientConfig, ClientConnection};
use socket2::{Domain, Protocol, Socket, Type};

/// Size of a report, as in the scenario.
const REPORT: [u8; 100] = [b'x'; 100];

pub(crate) struct Meter {
    pub socket: Socket,
    /// Pause after this attempt, if it fails.
    pub pause: Duration,
    tls: ClientConnection,
    is_reported: bool,
    /// Whether the host of the collector has acknowledged the report and FIN.
    pub has_arrived: bool,
    is_closed: bool,
}

/// State of an attempt after an event.
pub(crate) enum Progress {
    Waits,
    /// The collector has stored the report, and has closed.
    Closed,
    Failed,
}

impl Meter {
    /// Begins a connection from an address.
    pub(crate) fn connect(
        own: Ipv4Addr,
        server: SocketAddr,
        config: Arc<ClientConfig>,
        pause: Duration,
    ) -> Self {
        let kind = Type::STREAM.nonblocking();
        let socket = Socket::new(Domain::IPV4, kind, Some(Protocol::TCP)).unwrap();
        socket.bind(&SocketAddr::new(own.into(), 0).into()).unwrap();
        begin_connect(&socket, server).unwrap();
        let name = "relay.test".try_into().unwrap();
        let tls = ClientConnection::new(config, name).unwrap();
        Self { socket, pause, tls, is_reported: false, has_arrived: false, is_closed: false }
    }

    /// Whether the report has arrived since the last call.
    pub(crate) fn arrives(&mut self) -> bool {
        let is_new = !self.has_arrived
            && self.is_closed
            && unacknowledged_bytes(&self.socket).is_ok_and(|bytes| bytes == 0);
        self.has_arrived |= is_new;
        is_new
    }

    /// Does everything that is possible without waiting.
    pub(crate) fn advance(&mut self) -> Progress {
        match self.exchange() {
            Ok(true) => Progress::Closed,
            Ok(false) => Progress::Waits,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Progress::Waits,
            // A socket without a connection is not connected yet; an attempt that failed has
            // another error.
            Err(error) if error.kind() == ErrorKind::NotConnected => Progress::Waits,
            Err(_) => Progress::Failed,
        }
    }

    /// Returns whether the collector has answered the end of the connection.
    fn exchange(&mut self) -> io::Result<bool> {
        loop {
            while self.tls.wants_write() {
                self.tls.write_tls(&mut self.socket)?;
            }
            if !self.tls.is_handshaking() && !self.is_reported {
                self.is_reported = true;
                self.tls.writer().write_all(&REPORT)?;
                self.tls.send_close_notify();
                continue;
            }
            if self.is_reported && !self.is_closed {
                self.is_closed = true;
                shutdown(&self.socket, Shutdown::Write)?;
            }
            let length = self.tls.read_tls(&mut self.socket)?;
            let state = self.tls.process_new_packets().map_err(io::Error::other)?;
            if state.peer_has_closed() {
                return Ok(true);
            }
            if length == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
