//! Checks of the largest packets of links.

use super::Report;
use crate::scenario::{Direction, IpVersion, PACKET_MAX, Scenario};
use crate::units::Bytes;

/// Smallest MTU of IPv4 (RFC 791, section 3.2) and of IPv6 (RFC 8200, section 5).
const fn mtu_min(ip: IpVersion) -> Bytes {
    match ip {
        IpVersion::V4 => Bytes::new(68),
        IpVersion::V6 => Bytes::new(1_280),
    }
}

/// Smallest MSS to which routers clamp: the smallest that Linux accepts (`TCP_MIN_MSS`).
const MSS_CLAMP_MIN: Bytes = Bytes::new(88);

impl Report<'_> {
    pub(super) fn mtu(&mut self, key: &str, direction: &Direction) {
        self.mss_clamp(key, direction);
        let Some(mtu) = direction.mtu else {
            if direction.packet_too_big.is_some() {
                self.refuse(
                    format!("{key}.packet_too_big"),
                    "without `mtu`, no packet is too big",
                    "add mtu = \"1400 B\", or remove the key",
                );
            }
            return;
        };
        // Any flow may cross the direction, so that the largest version of the scenario counts.
        let ip = self.scenario.flow.values().map(|flow| flow.ip).max().unwrap_or_default();
        let smallest = mtu_min(ip);
        if mtu < smallest || mtu > PACKET_MAX {
            self.refuse(
                format!("{key}.mtu"),
                format!("the MTU of a link that carries {ip} is from {smallest} to {PACKET_MAX}"),
                "write \"1500 B\" for Ethernet, or leave it out",
            );
        }
    }
}

impl Report<'_> {
    fn mss_clamp(&mut self, key: &str, direction: &Direction) {
        let Some(clamp) = direction.mss_clamp else { return };
        if clamp < MSS_CLAMP_MIN || clamp > PACKET_MAX {
            self.refuse(
                format!("{key}.mss_clamp"),
                format!("the MSS of a clamp is from {MSS_CLAMP_MIN} to {PACKET_MAX}, not {clamp}"),
                "write the MTU of the path minus the headers of IP and TCP, for example \"1360 B\"",
            );
        }
    }
}

impl Scenario {
    /// Whether routers clamp the maximum segment sizes of handshakes.
    #[must_use]
    pub fn clamps_mss(&self) -> bool {
        Self::directions(self).any(|direction| direction.mss_clamp.is_some())
    }

    /// Whether links have an MTU: then datagrams may consist of fragments.
    #[must_use]
    pub fn has_mtu(&self) -> bool {
        Self::directions(self).any(|direction| direction.mtu.is_some())
    }

    fn directions(&self) -> impl Iterator<Item = &Direction> {
        let links = self.link.values();
        links.flat_map(|link| [link.forward(), link.reverse()]).flatten()
    }

    /// Largest payload of a datagram: in one packet of 1,500 B, or in fragments if links have an
    /// MTU, which together are at most 65,535 B (RFC 791, section 3.1).
    #[must_use]
    pub fn datagram_payload_max(&self, ip: IpVersion) -> Bytes {
        if !self.has_mtu() {
            return ip.datagram_payload_max();
        }
        Bytes::new(PACKET_MAX.get() - ip.datagram_headers().get())
    }
}
