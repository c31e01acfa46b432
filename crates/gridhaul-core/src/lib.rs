//! Links, TCP and loads as state machines without clock, entropy or IO.

pub mod chance;
pub mod link;
pub mod load;
pub mod tcp;
