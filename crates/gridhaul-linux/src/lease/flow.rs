//! Packets of a protected connection, as the programs know them (`struct flow` and
//! `struct flow_protection` of `bpf/lease.bpf.c`).

use std::net::{IpAddr, Ipv6Addr};

/// A connection for which a proxy has acknowledged data that it has not delivered, as seen from its
/// source. Arrays have the values of source and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectedFlow {
    /// IP addresses.
    pub addresses: [IpAddr; 2],
    /// Ports.
    pub ports: [u16; 2],
    /// Identifiers of the outer and the inner VLAN: the only array that is not of source and
    /// destination.
    pub vlans: [Option<u16>; 2],
    /// Hardware addresses of the frames.
    pub hardware: [[u8; 6]; 2],
    /// A sequence number that the host has used.
    pub seq: [u32; 2],
    /// Index of the device, in [`Lease::attach`](super::Lease::attach), at which packets of the
    /// source arrive.
    pub interface: usize,
}

/// Bytes of `struct flow`.
pub(super) const KEY_LEN: usize = 40;
/// Bytes of `struct flow_protection`.
pub(super) const VALUE_LEN: usize = 32;

/// Marks the identifier of a VLAN, which can be 0.
const TAGGED: u16 = 0x1000;

impl ProtectedFlow {
    /// The connection as seen from the other host.
    #[must_use]
    pub const fn reversed(&self) -> Self {
        let Self { addresses: [a, b], ports: [c, d], vlans, hardware: [e, f], seq: [g, h], .. } =
            *self;
        let interface = 1 - self.interface;
        Self { addresses: [b, a], ports: [d, c], vlans, hardware: [f, e], seq: [h, g], interface }
    }

    pub(super) fn key(&self) -> [u8; KEY_LEN] {
        let mut key = [0; KEY_LEN];
        let [source, destination] = self.addresses.map(|address| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        });
        key[..16].copy_from_slice(&source);
        key[16..32].copy_from_slice(&destination);
        key[32..34].copy_from_slice(&self.ports[0].to_be_bytes());
        key[34..36].copy_from_slice(&self.ports[1].to_be_bytes());
        let [outer, inner] = self.vlans.map(|vlan| vlan.map_or(0, |vlan| vlan | TAGGED));
        key[36..38].copy_from_slice(&outer.to_ne_bytes());
        key[38..40].copy_from_slice(&inner.to_ne_bytes());
        key
    }

    /// `devices` are the kernel's numbers of the devices.
    pub(super) fn value(&self, owner: u64, devices: [u32; 2]) -> [u8; VALUE_LEN] {
        let mut value = [0; VALUE_LEN];
        value[..8].copy_from_slice(&owner.to_ne_bytes());
        value[8..12].copy_from_slice(&self.seq[0].to_ne_bytes());
        value[12..18].copy_from_slice(&self.hardware[0]);
        value[18..24].copy_from_slice(&self.hardware[1]);
        value[24..28].copy_from_slice(&devices[self.interface].to_ne_bytes());
        value
    }

    /// The owner and the connection of an entry; the sequence number of the destination is 0, which
    /// the entry of the other direction has.
    pub(super) fn parse(
        key: &[u8; KEY_LEN],
        value: &[u8; VALUE_LEN],
        devices: [u32; 2],
    ) -> (u64, Self) {
        let half = |at: usize| u16::from_be_bytes([key[at], key[at + 1]]);
        let address = |at: usize| Ipv6Addr::from(array::<16>(key, at)).to_canonical();
        let vlan = |at: usize| {
            let vlan = u16::from_ne_bytes([key[at], key[at + 1]]);
            (vlan & TAGGED != 0).then_some(vlan & !TAGGED)
        };
        let flow = Self {
            addresses: [address(0), address(16)],
            ports: [half(32), half(34)],
            vlans: [vlan(36), vlan(38)],
            hardware: [array(value, 12), array(value, 18)],
            seq: [u32::from_ne_bytes(array(value, 8)), 0],
            interface: usize::from(u32::from_ne_bytes(array(value, 24)) == devices[1]),
        };
        (u64::from_ne_bytes(array(value, 0)), flow)
    }
}

/// The `N` bytes from `at` on, of an array that has them.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_parsed_as_written() {
        for [source, destination] in [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]] {
            let flow = ProtectedFlow {
                addresses: [source.parse().unwrap(), destination.parse().unwrap()],
                ports: [4_059, 50_000],
                vlans: [Some(0), None],
                hardware: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
                seq: [u32::MAX, 7],
                interface: 1,
            };
            let value = flow.value(9, [4, 5]);
            let parsed = ProtectedFlow::parse(&flow.key(), &value, [4, 5]);
            assert_eq!(parsed, (9, ProtectedFlow { seq: [u32::MAX, 0], ..flow }));
            assert_eq!(flow.reversed().reversed(), flow);
            assert_ne!(flow.reversed().key(), flow.key());
        }
    }
}
