//! The devices at both ends of the links.

use gridhaul_scenario::scenario::Hop;

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
    /// The direction of the link that starts here, if any.
    pub leads: Option<Hop>,
}
