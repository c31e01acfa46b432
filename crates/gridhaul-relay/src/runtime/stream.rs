//! A TCP connection, with or without TLS (RFC 8446). Neither blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConnection, Connection, ServerConfig, ServerConnection};
use socket2::{SockRef, Socket};

use super::socket;
use super::tls::TlsClient;
use super::tls::validity;

/// Bytes that wait for the socket inside TLS before more output is refused.
const OUTPUT: usize = 64 * 1024;

/// A connection. There may be many: a plain one is no larger than its socket and a pointer.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    tls: Option<Box<Connection>>,
}

impl Stream {
    pub(crate) const fn plain(socket: Socket) -> Self {
        Self { socket, tls: None }
    }

    /// The server's end of a TLS connection whose handshake has not begun.
    pub(crate) fn server(socket: Socket, config: &Arc<ServerConfig>) -> io::Result<Self> {
        let mut connection =
            ServerConnection::new(Arc::clone(config)).map_err(|error| invalid(&error))?;
        connection.set_buffer_limit(Some(OUTPUT));
        Ok(Self { socket, tls: Some(Box::new(connection.into())) })
    }

    /// The client's end.
    pub(crate) fn client(socket: Socket, tls: &TlsClient) -> io::Result<Self> {
        let (config, name) = (Arc::clone(&tls.config), tls.name.clone());
        let mut connection =
            ClientConnection::new(config, name).map_err(|error| invalid(&error))?;
        connection.set_buffer_limit(Some(OUTPUT));
        Ok(Self { socket, tls: Some(Box::new(connection.into())) })
    }

    /// The socket; with TLS, the connection cannot be continued.
    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }

    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) const fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// The verified certificate of the peer.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.as_ref()?.peer_certificates()?.first()
    }

    /// Reads once. `Some(0)`: the peer has closed its direction, with TLS by a `close_notify` alert
    /// (RFC 8446, closure alerts). `None`: there is nothing to read.
    ///
    /// # Errors
    /// The connection has failed; with TLS also FIN without the alert, which an attacker can
    /// insert.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else { return socket::read(&self.socket, buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other.map(Some),
            }
            if !receive(tls, &self.socket)? {
                return Ok(None);
            }
        }
    }

    /// Continues the handshake. True when it is complete.
    pub(crate) fn shake_hands(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.is_handshaking() {
            if !receive(tls, &self.socket)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes as much as the connection accepts, after what waits inside TLS.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return socket::write(&self.socket, bytes) };
        let mut written = 0;
        loop {
            send(tls, &self.socket)?;
            let accepted = tls.writer().write(&bytes[written..])?;
            written += accepted;
            if accepted == 0 {
                return Ok(written);
            }
        }
    }

    /// Whether output waits inside TLS until the socket is writable.
    pub(crate) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Closes this direction after all data.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            send(tls, &self.socket)?;
        }
        SockRef::from(&self.socket).shutdown(Shutdown::Write)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads records from the socket and answers them. False if there is nothing to read.
fn receive(tls: &mut Connection, socket: &Socket) -> io::Result<bool> {
    match tls.read_tls(&mut &*socket) {
        Ok(0) if tls.is_handshaking() => return Err(ErrorKind::UnexpectedEof.into()),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
        Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
        Err(error) => return Err(error),
    }
    let processed = tls.process_new_packets();
    // The alert states to the peer why the connection ends.
    send(tls, socket)?;
    processed.map(|_| true).map_err(|error| invalid(&error))
}

/// Writes waiting records to the socket.
fn send(tls: &mut Connection, socket: &Socket) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(&mut &*socket) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn invalid(error: &rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, validity::explain(error))
}
