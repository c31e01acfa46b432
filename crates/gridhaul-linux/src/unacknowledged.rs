//! Bytes that the peer of a TCP connection has not acknowledged, and connections from the addresses
//! of others.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use socket2::Socket;

use crate::{Error, set_transparent};

/// Bytes of a connection that the peer has not acknowledged (`SIOCOUTQ`, tcp(7)); a FIN that was
/// sent counts as one.
///
/// # Errors
/// Not a TCP socket, or a listener.
#[expect(unsafe_code, reason = "no crate wraps this ioctl")]
pub fn unacknowledged_bytes(socket: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes an int to `bytes`, which outlives the call.
    let done = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if done == 0 { Ok(u64::try_from(bytes).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}

/// Lets a socket use an address that belongs to another machine (`IP_TRANSPARENT`, ip(7);
/// `IPV6_TRANSPARENT`), and binds it. Another port is used if the given one is in use.
///
/// # Errors
/// The process lacks the capability `CAP_NET_ADMIN`.
pub fn bind_foreign(socket: &Socket, address: SocketAddr) -> Result<(), Error> {
    set_transparent(socket, address)?;
    socket.set_reuse_address(true).map_err(Error::call("setting SO_REUSEADDR"))?;
    let any_port = SocketAddr::new(address.ip(), 0);
    socket
        .bind(&address.into())
        .or_else(|_| socket.bind(&any_port.into()))
        .map_err(Error::call(format!("binding to {}", address.ip())))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn bytes_beyond_the_window_of_the_peer_are_unacknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(unacknowledged_bytes(&client).unwrap(), 0);
        client.set_nonblocking(true).unwrap();
        // The server does not read, so its buffers and those of the client fill. On a busy
        // machine, the buffer of the client may be full before that of the server is.
        let (mut written, limit) = (0, 256 << 20);
        while unacknowledged_bytes(&client).unwrap() == 0 {
            assert!(written < limit, "a window of {written} B");
            while let Ok(length) = client.write(&[0; 1 << 16]) {
                written += length;
            }
        }
    }
}
