//! Tests of the split proxy as a process, on loopback and in network namespaces.

#![expect(clippy::disallowed_methods, reason = "the proxy runs in real time")]

mod cases;
mod matrix;
mod peers;
mod proxies;
mod reload;
mod transparent;
mod urgent;

use std::path::Path;

/// The program of the relay.
fn relay() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_gridhaul-relay"))
}
