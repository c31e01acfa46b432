//! Links, TCP, proxies, routers and loads as state machines without clock, entropy or I/O, and the
//! packet codec.

#![forbid(unsafe_code)]

pub mod coverage_mark;
pub mod link;
pub mod load;
pub mod pep;
pub mod random;
mod rounding;
pub mod router;
pub mod tcp;
pub mod wire;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
