//! Addresses of the loopback network for programs that a test starts.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// A port below those that the kernel chooses for connections and for listeners at port 0
/// (`net.ipv4.ip_local_port_range`), so that no other program takes it while a test starts its own
/// again.
const PORT: u16 = 20_000;

/// An address of 127.0.0.0/8 that no program uses: no other test has its IP address. It is not
/// tried: a listener that is closed remains open for a moment in the programs that other threads
/// start meanwhile.
#[must_use]
pub fn free_address() -> SocketAddr {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let host =
        127 << 24 | (64 + (process >> 6) % 128) << 16 | (process % 64) << 10 | (count % 1_022 + 1);
    let round = u16::try_from(count / 1_022 % 10_000).unwrap_or_default();
    SocketAddr::from((Ipv4Addr::from(host), PORT + round))
}

/// A server at such an address.
///
/// # Panics
/// The address is in use.
#[must_use]
pub fn listen() -> TcpListener {
    let address = free_address();
    TcpListener::bind(address).unwrap_or_else(|error| panic!("{address}: {error}"))
}
