//! Addresses that encode the flow, its end, and the member of a group.
//!
//! Each flow has two address blocks, one for each end, and each of its members has an address in
//! both. Routes lead to blocks, so that flows between the same nodes can use different paths, and
//! the emulator derives the member's link from the address of a packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gridhaul_linux::IpPrefix;
use gridhaul_scenario::scenario::{FlowEnd, IpVersion};

/// Largest number of members of one flow.
pub(crate) const MEMBERS_MAX: u32 = 65_000;

/// Largest number of flows of a scenario: each uses two blocks of `10.0.0.0/8`.
pub(crate) const FLOWS_MAX: usize = 125;

/// IP version of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressFamily {
    /// IPv4: 40 B of headers with TCP.
    V4,
    /// IPv6: 60 B.
    V6,
}

impl AddressFamily {
    /// The family of this version of IP.
    pub(crate) const fn of(ip: IpVersion) -> Self {
        match ip {
            IpVersion::V4 => Self::V4,
            IpVersion::V6 => Self::V6,
        }
    }
}

/// The parts of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    /// Index of the flow in the scenario.
    pub flow: u16,
    /// End of the flow.
    pub side: FlowEnd,
    /// Index of the member.
    pub number: u32,
}

/// First three groups of the IPv6 addresses, a unique local prefix (RFC 4193).
const PREFIX: [u16; 3] = [0xfd67, 0x7269, 0x6468];

impl Address {
    /// The IP address. The first member has host number 1, because 0 denotes the block.
    pub(crate) fn ip(self, family: AddressFamily) -> IpAddr {
        let block = block_number(self.flow, self.side);
        let [_, _, high, low] = (self.number + 1).to_be_bytes();
        match family {
            AddressFamily::V4 => IpAddr::V4(Ipv4Addr::new(10, block, high, low)),
            AddressFamily::V6 => {
                let [a, b, c] = PREFIX;
                let member = u16::from_be_bytes([high, low]);
                IpAddr::V6(Ipv6Addr::new(a, b, c, u16::from(block), 0, 0, 0, member))
            }
        }
    }

    /// Parses an address; `None` if it belongs to no flow.
    pub(crate) fn of(ip: &[u8]) -> Option<Self> {
        let (block, member) = match *ip {
            [10, block, high, low] => (block, u16::from_be_bytes([high, low])),
            [a, b, c, d, e, f, 0, block, 0, 0, 0, 0, 0, 0, high, low] => {
                let prefix = [[a, b], [c, d], [e, f]].map(u16::from_be_bytes);
                if prefix != PREFIX {
                    return None;
                }
                (block, u16::from_be_bytes([high, low]))
            }
            _ => return None,
        };
        let side = if block % 2 == 0 { FlowEnd::From } else { FlowEnd::To };
        let number = u32::from(member).checked_sub(1)?;
        Some(Self { flow: u16::from(block / 2), side, number })
    }

    /// The prefix of all addresses of one end of a flow.
    pub(crate) fn block(flow: u16, side: FlowEnd, family: AddressFamily) -> IpPrefix {
        let block = block_number(flow, side);
        match family {
            AddressFamily::V4 => IpPrefix { address: [10, block, 0, 0].into(), length: 16 },
            AddressFamily::V6 => {
                let [a, b, c] = PREFIX;
                IpPrefix { address: [a, b, c, u16::from(block), 0, 0, 0, 0].into(), length: 64 }
            }
        }
    }
}

fn block_number(flow: u16, side: FlowEnd) -> u8 {
    let block = 2 * flow + u16::from(side == FlowEnd::To);
    u8::try_from(block).expect("a scenario with more flows is not supported")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_parsed_back() {
        for number in [0, 1, 255, 256, MEMBERS_MAX - 1] {
            for side in [FlowEnd::From, FlowEnd::To] {
                let address = Address { flow: FLOWS_MAX as u16 - 1, side, number };
                for family in [AddressFamily::V4, AddressFamily::V6] {
                    let bytes = match address.ip(family) {
                        IpAddr::V4(ip) => ip.octets().to_vec(),
                        IpAddr::V6(ip) => ip.octets().to_vec(),
                    };
                    assert_eq!(Address::of(&bytes), Some(address), "{}", address.ip(family));
                }
            }
        }
        let first = Address { flow: 1, side: FlowEnd::To, number: 0 };
        assert_eq!(first.ip(AddressFamily::V4).to_string(), "10.3.0.1");
        assert_eq!(Address::block(1, FlowEnd::To, AddressFamily::V4).to_string(), "10.3.0.0/16");
        assert_eq!(first.ip(AddressFamily::V6).to_string(), "fd67:7269:6468:3::1");
        assert_eq!(
            Address::block(1, FlowEnd::To, AddressFamily::V6).to_string(),
            "fd67:7269:6468:3::/64"
        );
    }

    #[test]
    fn other_addresses_belong_to_no_flow() {
        assert_eq!(Address::of(&[10, 0, 0, 0]), None, "the block itself");
        assert_eq!(Address::of(&[192, 168, 0, 1]), None);
        assert_eq!(Address::of(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), None);
        assert_eq!(Address::of(&[]), None);
    }
}
