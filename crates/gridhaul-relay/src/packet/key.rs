//! Identity of a connection at the bridge.

use std::net::SocketAddr;

use gridhaul_core::wire::VlanTag;

/// One of the two interfaces of the bridge, which IEEE 802.1D calls ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BridgePort {
    /// The interface that the configuration lists first.
    First,
    /// The other interface.
    Second,
}

impl BridgePort {
    /// Both interfaces.
    pub const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// The other interface.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// 0 for the first interface, 1 for the second.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// VLANs and hosts of a connection. Hosts with the same addresses in different VLANs are different
/// hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConnectionKey {
    /// VLAN identifiers, the outer one first.
    pub(super) vlans: [Option<u16>; 2],
    /// By the interface behind which the host is.
    pub(super) hosts: [SocketAddr; 2],
}

/// Sender and receiver of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Endpoints {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
}

impl ConnectionKey {
    /// The key of a packet that arrives at an interface.
    pub(super) fn new(from: BridgePort, tags: [Option<VlanTag>; 2], ends: &Endpoints) -> Self {
        let hosts = match from {
            BridgePort::First => [ends.source, ends.destination],
            BridgePort::Second => [ends.destination, ends.source],
        };
        Self { vlans: tags.map(|tag| tag.map(|tag| tag.id)), hosts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_a_connection_have_the_same_key() {
        let source = "10.0.0.1:40000".parse().unwrap();
        let destination = "10.0.0.2:7".parse().unwrap();
        let (request, reply) = (
            Endpoints { source, destination },
            Endpoints { source: destination, destination: source },
        );
        let tags = [Some(VlanTag { id: 5, ..VlanTag::default() }), None];
        let key = ConnectionKey::new(BridgePort::First, tags, &request);
        assert_eq!(ConnectionKey::new(BridgePort::Second, tags, &reply), key);
        assert_ne!(ConnectionKey::new(BridgePort::Second, tags, &request), key);
        assert_ne!(ConnectionKey::new(BridgePort::First, [None; 2], &request), key);
    }
}
