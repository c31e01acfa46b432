//! Identity of a connection at the bridge.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use gridhaul_core::wire::VlanTag;

use crate::protocol::{DecodeError, Decoder};

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
/// Packed, because the table has two keys for each of up to a million connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConnectionKey {
    /// By the interface behind which the host is. IPv4 addresses are mapped to IPv6 (RFC 4291,
    /// section 2.5.5.2).
    addresses: [[u8; 16]; 2],
    ports: [u16; 2],
    /// VLAN identifiers, the outer one first, with [`TAGGED`] in those of a tag. The first one has
    /// [`V4`] as well if the addresses are those of IPv4.
    vlans: [u16; 2],
}

const _: () = assert!(size_of::<ConnectionKey>() <= 40);

const TAGGED: u16 = 0x1000;
const V4: u16 = 0x8000;

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
        Self::between(hosts, tags.map(|tag| tag.map(|tag| tag.id)))
    }

    /// The key of a connection between hosts behind the first and the second interface.
    pub(super) fn between(hosts: [SocketAddr; 2], vlans: [Option<u16>; 2]) -> Self {
        let octets = |host: SocketAddr| match host.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let mut packed = vlans.map(|vlan| vlan.map_or(0, |id| TAGGED | id));
        packed[0] |= if hosts[0].is_ipv4() { V4 } else { 0 };
        Self { addresses: hosts.map(octets), ports: hosts.map(|host| host.port()), vlans: packed }
    }

    /// The host behind an interface.
    pub(super) fn host(&self, port: BridgePort) -> SocketAddr {
        let address = Ipv6Addr::from(self.addresses[port.index()]);
        let mapped = address.to_ipv4_mapped().filter(|_| self.vlans[0] & V4 != 0);
        let address = mapped.map_or(IpAddr::V6(address), IpAddr::V4);
        SocketAddr::new(address, self.ports[port.index()])
    }

    /// Appends the key.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        self.addresses.iter().for_each(|address| bytes.extend_from_slice(address));
        for number in self.ports.into_iter().chain(self.vlans) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads what [`Self::write`] has written.
    pub(super) fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut addresses = [[0; 16]; 2];
        for address in &mut addresses {
            address.copy_from_slice(decoder.take(16)?);
        }
        let ports = [decoder.u16()?, decoder.u16()?];
        let vlans = [decoder.u16()?, decoder.u16()?];
        Ok(Self { addresses, ports, vlans })
    }

    /// VLAN identifiers, the outer one first.
    pub(super) fn vlans(&self) -> [Option<u16>; 2] {
        self.vlans.map(|vlan| (vlan & TAGGED != 0).then_some(vlan & (TAGGED - 1)))
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
        assert_eq!(key.vlans(), [Some(5), None]);
        assert_eq!(BridgePort::BOTH.map(|port| key.host(port)), [source, destination]);
    }

    #[test]
    fn a_mapped_address_of_ipv6_differs_from_that_of_ipv4() {
        let key = |hosts: [&str; 2]| {
            ConnectionKey::between(hosts.map(|host| host.parse().unwrap()), [Some(0), Some(4_095)])
        };
        let v4 = key(["10.0.0.1:7", "10.0.0.2:7"]);
        let v6 = key(["[::ffff:10.0.0.1]:7", "[::ffff:10.0.0.2]:7"]);
        assert_ne!(v4, v6);
        assert_eq!(v4.host(BridgePort::Second), "10.0.0.2:7".parse().unwrap());
        assert_eq!(v6.host(BridgePort::Second), "[::ffff:10.0.0.2]:7".parse().unwrap());
        assert_eq!((v4.vlans(), v6.vlans()), ([Some(0), Some(4_095)], v4.vlans()));
    }
}
