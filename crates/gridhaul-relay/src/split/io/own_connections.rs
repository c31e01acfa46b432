//! Connections of a split proxy to its servers, which must not arrive at its own listeners: each
//! would open a further one, until all files are in use.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use socket2::Socket;

use crate::runtime::listener::canonical;

/// Local addresses of the connections to servers, by port and row of the session.
#[derive(Debug, Default)]
pub(super) struct OwnConnections(BTreeMap<(u16, u32), IpAddr>);

impl OwnConnections {
    /// Adds the connection of a session, and returns its local port; 0 if it has none.
    pub(super) fn insert(&mut self, row: u32, server: &Socket) -> u16 {
        let local = server.local_addr().ok().and_then(|address| address.as_socket());
        let Some(local) = local.map(canonical) else { return 0 };
        self.0.insert((local.port(), row), local.ip());
        local.port()
    }

    /// A session has ended.
    pub(super) fn remove(&mut self, row: u32, port: u16) {
        self.0.remove(&(port, row));
    }

    /// Whether the peer of an accepted connection is this relay.
    pub(super) fn is_own(&self, peer: Option<SocketAddr>) -> bool {
        peer.is_some_and(|peer| {
            let of_port = (peer.port(), 0)..=(peer.port(), u32::MAX);
            self.0.range(of_port).any(|(_, ip)| *ip == peer.ip())
        })
    }
}
