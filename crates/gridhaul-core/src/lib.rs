//! Links, TCP, proxies and loads as state machines without clock, entropy or IO.

pub mod chance;
pub mod checksum;
pub mod link;
pub mod load;
pub mod pep;
pub mod tcp;
