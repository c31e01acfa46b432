//! Connections of a split proxy to its servers, which must not arrive at its own listeners: each
//! would open a further one, until all files are in use.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use socket2::Socket;

use crate::runtime::listener::canonical;

/// Local addresses of the connections to servers, by port and row of the session.
#[derive(Debug, Default)]
pub(super) struct OwnConnections(BTreeMap<(u16, u32), OwnConnection>);

#[derive(Debug)]
struct OwnConnection {
    ip: IpAddr,
    /// The client of the session has the address of another own connection.
    may_be_loop: bool,
}

/// Opener of an accepted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    /// Another program.
    Client,
    /// The relay, or a program of this machine: the kernel gives one local port to several
    /// connections if their destinations differ.
    Unknown,
    /// The relay: an own connection of a session whose client was unknown already. In a loop, each
    /// session is followed by the next; that a second program has a port of the relay just then is
    /// not to be expected.
    Relay,
}

impl OwnConnections {
    /// Adds the connection of a session, and returns its local port; 0 if it has none.
    pub(super) fn insert(&mut self, row: u32, server: &Socket, opener: Opener) -> u16 {
        let local = server.local_addr().ok().and_then(|address| address.as_socket());
        let Some(local) = local.map(canonical) else { return 0 };
        let own = OwnConnection { ip: local.ip(), may_be_loop: opener != Opener::Client };
        self.0.insert((local.port(), row), own);
        local.port()
    }

    /// A session has ended.
    pub(super) fn remove(&mut self, row: u32, port: u16) {
        self.0.remove(&(port, row));
    }

    /// The opener of an accepted connection with this peer.
    pub(super) fn opener(&self, peer: Option<SocketAddr>) -> Opener {
        let Some(peer) = peer else { return Opener::Client };
        let of_port = (peer.port(), 0)..=(peer.port(), u32::MAX);
        let same = || self.0.range(of_port.clone()).filter(|(_, own)| own.ip == peer.ip());
        if same().any(|(_, own)| own.may_be_loop) {
            Opener::Relay
        } else if same().next().is_some() {
            Opener::Unknown
        } else {
            Opener::Client
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_client_with_the_port_of_an_own_connection_is_served_and_a_loop_is_not() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || -> Socket {
            std::net::TcpStream::connect(server.local_addr().unwrap()).unwrap().into()
        };
        let address = |socket: &Socket| socket.local_addr().unwrap().as_socket();
        let (first, second) = (connect(), connect());
        let mut own = OwnConnections::default();
        let port = own.insert(0, &first, Opener::Client);
        assert_eq!(own.opener(address(&second)), Opener::Client);
        // A program of this machine may have the same port, with another destination.
        assert_eq!(own.opener(address(&first)), Opener::Unknown);
        own.insert(1, &second, Opener::Unknown);
        assert_eq!(own.opener(address(&second)), Opener::Relay);
        own.remove(0, port);
        assert_eq!(own.opener(address(&first)), Opener::Client);
        assert_eq!(own.opener(None), Opener::Client);
    }
}
