//! Addresses of the loopback network for programs that a test starts.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use socket2::{Domain, Socket, Type};

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

/// A port of 127.0.0.1, for programs that cannot use [`free_address`]: a host name, or a printed
/// configuration.
///
/// A socket that does not listen keeps the port. Listeners with `SO_REUSEADDR`, such as those of
/// the standard library, open and close there, and the kernel gives the port to no other socket.
#[derive(Debug)]
pub struct ReservedPort {
    /// Keeps the port.
    _socket: Socket,
    address: SocketAddr,
}

impl ReservedPort {
    /// Reserves a port.
    ///
    /// # Panics
    /// No port is free.
    #[must_use]
    pub fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_reuse_address(true).expect("an option of each socket");
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&wanted.into()).expect("a free port");
        let address = socket.local_addr().expect("an address").as_socket().expect("one of IP");
        Self { _socket: socket, address }
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Default for ReservedPort {
    fn default() -> Self {
        Self::new()
    }
}

/// Closes a listener at once. Programs that other threads start meanwhile have its file descriptor
/// until they begin, and would keep it open when it is dropped.
///
/// # Panics
/// The socket does not listen.
pub fn close(listener: TcpListener) {
    // Linux ends the state LISTEN (tcp_disconnect) for all file descriptors of the socket.
    Socket::from(listener).shutdown(Shutdown::Both).expect("the socket listens");
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn listeners_open_and_close_at_a_reserved_port_that_nobody_else_gets() {
        let reserved = ReservedPort::new();
        let address = reserved.address();
        for _ in 0..2 {
            let listener = TcpListener::bind(address).unwrap();
            // The file descriptor of a program that another thread starts.
            let copy = listener.try_clone().unwrap();
            TcpStream::connect(address).unwrap();
            close(listener);
            let refused = TcpStream::connect(address).unwrap_err().kind();
            assert_eq!(refused, ErrorKind::ConnectionRefused);
            let others = [(); 300].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
            assert!(others.iter().all(|other| other.local_addr().unwrap() != address));
            drop(copy);
        }
    }
}
