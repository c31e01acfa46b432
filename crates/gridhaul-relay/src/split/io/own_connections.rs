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
    /// Where the connection leads, as far as this machine knows.
    server: Option<SocketAddr>,
    /// Number of sessions before this one, each of whose clients has the address of the own
    /// connection of the one before.
    chain: u8,
}

/// Opener of an accepted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    /// Another program.
    Client,
    /// The relay, or a program of this machine: the kernel gives one local port to several
    /// connections if their destinations differ. The session continues a chain of this length.
    Unknown(u8),
    /// The relay.
    Relay,
}

/// Length of a chain that is a loop, where the path translates addresses. In a loop each session is
/// followed by the next at once; programs of this machine rarely have ports of the relay so often
/// in a row, although the kernel assigns the ports of both by the same rule.
const LOOP: u8 = 32;

impl OwnConnections {
    /// Adds the connection of a session, and returns its local port; 0 if it has none.
    pub(super) fn insert(&mut self, row: u32, server: &Socket, opener: Opener) -> u16 {
        let local = server.local_addr().ok().and_then(|address| address.as_socket());
        let Some(local) = local.map(canonical) else { return 0 };
        let chain = if let Opener::Unknown(length) = opener { length } else { 0 };
        let peer = server.peer_addr().ok().and_then(|address| address.as_socket());
        let own = OwnConnection { ip: local.ip(), server: peer.map(canonical), chain };
        self.0.insert((local.port(), row), own);
        local.port()
    }

    /// A session has ended.
    pub(super) fn remove(&mut self, row: u32, port: u16) {
        self.0.remove(&(port, row));
    }

    /// The opener of an accepted connection with this peer, at this local address.
    pub(super) fn opener(&self, peer: Option<SocketAddr>, local: Option<SocketAddr>) -> Opener {
        let Some(peer) = peer else { return Opener::Client };
        let of_port = (peer.port(), 0)..=(peer.port(), u32::MAX);
        let same = || self.0.range(of_port.clone()).filter(|(_, own)| own.ip == peer.ip());
        let Some(chain) = same().map(|(_, own)| own.chain + 1).max() else { return Opener::Client };
        // Both ends are those of an own connection: no other connection has them.
        let is_own = local.is_some() && same().any(|(_, own)| own.server == local);
        if is_own || chain >= LOOP { Opener::Relay } else { Opener::Unknown(chain) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn connect(server: &TcpListener) -> Socket {
        std::net::TcpStream::connect(server.local_addr().unwrap()).unwrap().into()
    }

    fn address(socket: &Socket) -> Option<SocketAddr> {
        socket.local_addr().unwrap().as_socket()
    }

    #[test]
    fn a_connection_with_both_ends_of_an_own_one_is_a_loop() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let (first, second) = (connect(&server), connect(&server));
        let here = server.local_addr().ok();
        let mut own = OwnConnections::default();
        let port = own.insert(0, &first, Opener::Client);
        assert_eq!(own.opener(address(&second), here), Opener::Client);
        assert_eq!(own.opener(address(&first), here), Opener::Relay);
        own.remove(0, port);
        assert_eq!(own.opener(address(&first), here), Opener::Client);
        assert_eq!(own.opener(None, here), Opener::Client);
    }

    /// A program of this machine may have the same port, with another destination; so may the next
    /// one.
    #[test]
    fn clients_with_ports_of_own_connections_are_served_and_a_long_chain_is_a_loop() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let elsewhere = "127.0.0.9:1".parse().ok();
        let mut own = OwnConnections::default();
        let mut last = connect(&server);
        own.insert(0, &last, Opener::Client);
        let mut served = 0;
        while let Opener::Unknown(length) = own.opener(address(&last), elsewhere) {
            served += 1;
            assert_eq!(u32::from(length), served);
            let next = connect(&server);
            own.insert(served, &next, Opener::Unknown(length));
            last = next;
        }
        assert_eq!(served, u32::from(LOOP) - 1);
        assert_eq!(own.opener(address(&last), elsewhere), Opener::Relay);
    }
}
