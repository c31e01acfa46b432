//! Tests of the analytical model through its interface.

mod meters;
mod proxies;
mod steady;
mod windows;
