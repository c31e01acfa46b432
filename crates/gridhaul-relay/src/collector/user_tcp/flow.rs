//! Addresses and ports of a connection.

use std::net::{IpAddr, SocketAddr};

use gridhaul_core::wire::{Addresses, TcpHeader};

/// Addresses and ports of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Address and port at which the meter has connected.
    pub local: SocketAddr,
    /// Address and port of the meter.
    pub peer: SocketAddr,
}

impl Flow {
    /// The flow of a packet from the peer.
    pub(super) fn of(addresses: Addresses, header: &TcpHeader<'_>) -> Self {
        let (source, destination): (IpAddr, IpAddr) = match addresses {
            Addresses::V4 { source, destination } => (source.into(), destination.into()),
            Addresses::V6 { source, destination } => (source.into(), destination.into()),
        };
        Self {
            local: SocketAddr::new(destination, header.destination_port),
            peer: SocketAddr::new(source, header.source_port),
        }
    }

    /// Addresses of a packet to the peer.
    pub(super) const fn reply_addresses(&self) -> Option<Addresses> {
        match Addresses::new(self.local.ip(), self.peer.ip()) {
            Ok(addresses) => Some(addresses),
            Err(_) => None,
        }
    }

    /// Whether the peer's address can be that of a host (RFC 1122, section 3.2.1.3): a packet with
    /// another source address must not be answered.
    pub(super) fn has_valid_peer(&self) -> bool {
        let peer = self.peer.ip();
        let is_broadcast = peer == IpAddr::V4(std::net::Ipv4Addr::BROADCAST);
        !(peer.is_unspecified() || peer.is_multicast() || peer.is_loopback() || is_broadcast)
            && peer != self.local.ip()
            && self.peer.port() != 0
    }
}
