//! Reading, writing and closing of sockets that do not block.

use std::io::{self, Read, Write};
use std::time::Duration;

use socket2::Socket;

/// From now on, closing the socket sends FIN.
pub(crate) fn allow_fin(socket: &Socket) {
    let _ = socket.set_linger(None);
}

/// From now on, closing the socket sends RST.
pub(crate) fn forbid_fin(socket: &Socket) {
    let _ = socket.set_linger(Some(Duration::ZERO));
}

/// Reads once. `None`: there is nothing to read.
pub(crate) fn read(socket: &Socket, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match (&*socket).read(buffer) {
            Ok(length) => return Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes as much as the socket accepts.
pub(crate) fn write(socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match (&*socket).write(&bytes[written..]) {
            Ok(length) => written += length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}
