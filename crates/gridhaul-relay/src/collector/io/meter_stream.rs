//! The connection of a meter: a socket of the kernel, or a connection of TCP in user space.

use std::io::{self, ErrorKind};

use socket2::Socket;

use super::user_meters::UserMeters;
use crate::collector::user_tcp::{ConnectionId, ReadResult};
use crate::runtime::socket;
use crate::runtime::stream::Stream;

/// The connection of a meter.
#[derive(Debug)]
pub(super) enum MeterStream {
    /// The kernel acknowledges data when it has arrived.
    Kernel(Stream),
    /// Data is acknowledged when it is durable.
    User(ConnectionId),
}

impl MeterStream {
    /// Reads once. `Some(0)`: the meter has closed its direction. `None`: there is nothing to read.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn read(
        &mut self,
        user: &mut Option<UserMeters>,
        buffer: &mut [u8],
    ) -> io::Result<Option<usize>> {
        match (self, user) {
            (Self::Kernel(stream), _) => stream.read(buffer),
            (Self::User(id), Some(user)) => match user.tcp.read(*id, buffer) {
                ReadResult::Data(length) => Ok(Some(length)),
                ReadResult::Nothing => Ok(None),
                ReadResult::End => Ok(Some(0)),
                ReadResult::Failed => Err(ErrorKind::ConnectionReset.into()),
            },
            (Self::User(_), None) => Err(ErrorKind::NotConnected.into()),
        }
    }

    /// Writes as much as the connection accepts.
    pub(super) fn write(
        &mut self,
        user: &mut Option<UserMeters>,
        bytes: &[u8],
    ) -> io::Result<usize> {
        match (self, user) {
            (Self::Kernel(stream), _) => stream.write(bytes),
            (Self::User(id), Some(user)) => Ok(user.tcp.write(*id, bytes)),
            (Self::User(_), None) => Err(ErrorKind::NotConnected.into()),
        }
    }

    /// Closes this direction after all data.
    pub(super) fn finish(&mut self, user: &mut Option<UserMeters>) -> io::Result<()> {
        match (self, user) {
            (Self::Kernel(stream), _) => {
                socket::allow_fin(stream.socket());
                stream.finish()
            }
            (Self::User(id), Some(user)) => {
                user.tcp.finish(*id);
                Ok(())
            }
            (Self::User(_), None) => Err(ErrorKind::NotConnected.into()),
        }
    }

    /// From now on, closing the connection sends RST.
    pub(super) fn forbid_fin(&self, user: &mut Option<UserMeters>) {
        match (self, user) {
            (Self::Kernel(stream), _) => socket::forbid_fin(stream.socket()),
            (Self::User(id), Some(user)) => user.tcp.reset(*id),
            (Self::User(_), None) => {}
        }
    }

    /// Closes the connection: by RST unless FIN was sent.
    pub(super) fn close(self, user: &mut Option<UserMeters>) {
        if let (Self::User(id), Some(user)) = (self, user) {
            user.release(id);
        }
    }

    /// Whether the connection has failed after the meter has closed its direction, which reading
    /// does not report. In user space it does.
    pub(super) fn has_failed(&self) -> bool {
        self.socket().is_some_and(|socket| socket.take_error().is_ok_and(|error| error.is_some()))
    }

    pub(super) const fn socket(&self) -> Option<&Socket> {
        match self {
            Self::Kernel(stream) => Some(stream.socket()),
            Self::User(_) => None,
        }
    }

    /// The socket, if another version of the program can continue the connection: keys of TLS and
    /// the state of TCP in user space are in the memory of this process.
    pub(super) fn into_socket(self) -> Option<Socket> {
        match self {
            Self::Kernel(stream) if !stream.is_encrypted() => Some(stream.into_socket()),
            Self::Kernel(_) | Self::User(_) => None,
        }
    }

    /// See [`Self::into_socket`].
    pub(super) const fn survives_upgrade(&self) -> bool {
        match self {
            Self::Kernel(stream) => !stream.is_encrypted(),
            Self::User(_) => false,
        }
    }

    pub(super) const fn is_encrypted(&self) -> bool {
        match self {
            Self::Kernel(stream) => stream.is_encrypted(),
            Self::User(_) => false,
        }
    }

    /// Whether output waits inside TLS until the socket is writable.
    pub(super) fn wants_write(&self) -> bool {
        match self {
            Self::Kernel(stream) => stream.wants_write(),
            Self::User(_) => false,
        }
    }
}
