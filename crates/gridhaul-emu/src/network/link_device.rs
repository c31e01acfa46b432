//! The devices at both ends of the links.

use gridhaul_scenario::scenario::{Hop, PacketTooBig};

/// A device: one end of a link, for all of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkDevice {
    /// Index of the node.
    pub node: usize,
    /// Name of the link.
    pub link: String,
    /// Name of the device.
    pub device: String,
    /// MTU of the direction that starts here, if it has one.
    pub mtu: Option<u32>,
    /// Response of the node to packets that exceed the MTU.
    pub packet_too_big: Option<PacketTooBig>,
    /// The largest MSS that SYN segments of this direction may offer.
    pub mss_clamp: Option<u16>,
    /// The direction of the link that starts here, if any.
    pub leads: Option<Hop>,
}
