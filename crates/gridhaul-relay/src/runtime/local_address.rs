//! Addresses of this machine.

use std::net::{IpAddr, UdpSocket};

/// Whether this machine has an address. Nothing is sent: the kernel selects the address itself as
/// source, if it is local.
pub(crate) fn is_local(address: IpAddr) -> bool {
    let unspecified: IpAddr = match address {
        IpAddr::V4(_) => [0, 0, 0, 0].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    // Any port: it is not used.
    let source = UdpSocket::bind((unspecified, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    address.is_loopback() || source.is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_known_without_sending() {
        for local in ["127.0.0.1", "127.9.9.9", "::1"] {
            assert!(is_local(local.parse().unwrap()), "{local}");
        }
        // Addresses for documentation (RFC 5737, RFC 3849).
        for other in ["192.0.2.1", "2001:db8::1"] {
            assert!(!is_local(other.parse().unwrap()), "{other}");
        }
    }
}
