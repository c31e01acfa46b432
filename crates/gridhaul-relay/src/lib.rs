//! Packets between network interfaces through the proxies of [`gridhaul_core::pep`].
//!
//! [`PacketProxy`] is sans-IO: it translates between the packets of one connection and the segments of a
//! proxy, and keeps the payload. [`Bridge`] moves Ethernet frames between two interfaces, on the monotonic
//! clock, and lets one connection pass through a [`PacketProxy`].

#![forbid(unsafe_code)]

mod bridge;
mod error;
mod packet_proxy;

pub use bridge::{Bridge, Interface};
pub use error::Error;
pub use packet_proxy::{Counters, PacketProxy};
