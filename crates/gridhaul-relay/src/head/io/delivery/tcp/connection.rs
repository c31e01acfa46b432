//! Connections to a server.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use gridhaul_linux::{Error, begin_connect, bind_foreign};
use gridhaul_scenario::relay::ServerIdentity;
use socket2::{Domain, Protocol, Socket, Type};

use crate::head::{MeterKey, StreamId, StreamIdentity};
use crate::protocol::ProxyHeader;
use crate::runtime::poll::{Key, Token};
use crate::runtime::socket;

/// A connection to the server.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    pub socket: Socket,
    pub is_connected: bool,
    /// Bytes of the PROXY header that were not sent.
    pub header: Vec<u8>,
}

/// Time for which sent data, or a request to connect, may stay unacknowledged (`TCP_USER_TIMEOUT`,
/// RFC 5482).
const USER_TIMEOUT: Duration = Duration::from_secs(60);

impl ServerConnection {
    /// Begins to connect. The end of the process resets the connection: a FIN would state that the
    /// stream is complete.
    pub(crate) fn begin(
        server: SocketAddr,
        identity: ServerIdentity,
        stream: &StreamIdentity,
    ) -> Result<Self, Error> {
        let failed = || Error::call("connecting to the server");
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))
            .map_err(failed())?;
        socket.set_nonblocking(true).map_err(failed())?;
        socket.set_tcp_nodelay(true).map_err(failed())?;
        socket.set_linger(Some(Duration::ZERO)).map_err(failed())?;
        socket.set_keepalive(true).map_err(failed())?;
        socket.set_tcp_user_timeout(Some(USER_TIMEOUT)).map_err(failed())?;
        let peer = stream.peer.filter(|peer| peer.is_ipv4() == server.is_ipv4());
        if let Some(peer) = peer.filter(|_| identity == ServerIdentity::SourceAddress) {
            bind_foreign(&socket, peer)?;
        }
        begin_connect(&socket, server).map_err(failed())?;
        Ok(Self { socket, is_connected: false, header: Vec::new() })
    }

    /// Whether the connection is established; an error if it is refused.
    pub(crate) fn poll_connected(&self) -> io::Result<bool> {
        match self.socket.take_error()? {
            Some(error) => Err(error),
            None => Ok(self.socket.peer_addr().is_ok()),
        }
    }

    /// Sends the rest of the header. False if the socket accepts no more bytes.
    pub(crate) fn send_header(&mut self) -> io::Result<bool> {
        let sent = socket::write(&self.socket, &self.header)?;
        self.header.drain(..sent);
        Ok(self.header.is_empty())
    }
}

/// The header with which a connection begins.
pub(crate) fn proxy_header(
    (epoch, meter): MeterKey,
    stream: &StreamIdentity,
    stream_offset: u64,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = ProxyHeader {
        addresses: stream.peer.zip(stream.local),
        unique_id: Some(format!("{epoch:016x}-{meter}").into_bytes()),
        stream_offset: Some(stream_offset),
        reception: stream.opened,
    };
    header.write(&mut bytes);
    bytes
}

/// Streams are numbered without reuse: 56 bits suffice for centuries.
impl Token for StreamId {
    fn to_key(self) -> Key {
        let number = self.number();
        Key { kind: 0, row: number as u32, number: (number >> 32) as u32 }
    }

    fn from_key(key: Key) -> Option<Self> {
        Some(Self::new(u64::from(key.number) << 32 | u64::from(key.row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ClockState, Reception};

    #[test]
    fn the_header_states_when_the_meter_has_connected() {
        let clock = ClockState::Synchronised { error_us: 2_000 };
        let opened = Some(Reception { utc_us: 1_700_000_000_000_000, clock });
        let stream = StreamIdentity { shard: 0, peer: None, local: None, opened };
        let bytes = proxy_header((7, 3), &stream, 100);
        let (header, length) = ProxyHeader::read(&bytes).unwrap().unwrap();
        assert_eq!((header.reception, header.stream_offset), (opened, Some(100)));
        // Fixed part, identifier (3 + 18 bytes), offset (3 + 8), and time (3 + 17).
        assert_eq!(length, 16 + 21 + 11 + 20);
    }
}
