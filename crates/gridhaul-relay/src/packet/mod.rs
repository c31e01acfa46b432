//! Packets between network interfaces, forwarded through a proxy of [`gridhaul_core::pep`].
//!
//! [`PacketProxy`] is sans-IO: it translates between the packets of one connection and the segments
//! of a proxy, and stores the payload. [`Bridge`] forwards Ethernet frames between two interfaces,
//! on the monotonic clock, and passes the packets of one connection to a [`PacketProxy`].

mod bridge;
mod error;
mod packet_proxy;

pub use bridge::{Bridge, Interface};
pub use error::Error;
pub use packet_proxy::{Counters, PacketProxy};
