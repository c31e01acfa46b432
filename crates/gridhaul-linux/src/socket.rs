//! Buffers and addresses of sockets.

use std::io;
use std::net::SocketAddr;

use rustix::net::sockopt;
use socket2::Socket;

use crate::Error;

/// Sets the receive buffer of a socket, above the limit of the system (`net.core.rmem_max`) where
/// this process may do that.
///
/// # Errors
/// The descriptor is no socket.
pub fn set_receive_buffer(socket: &Socket, bytes: u32) -> Result<(), Error> {
    let bytes = bytes as usize;
    sockopt::set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes))
        .map_err(Error::call("setting the receive buffer"))
}

/// Sets the send buffer of a socket, above the limit of the system (`net.core.wmem_max`) where this
/// process may do that.
///
/// # Errors
/// The descriptor is no socket.
pub fn set_send_buffer(socket: &Socket, bytes: u32) -> Result<(), Error> {
    let bytes = bytes as usize;
    sockopt::set_socket_send_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, bytes))
        .map_err(Error::call("setting the send buffer"))
}

/// Binds a socket to an address that need not be assigned to a device (`IP_FREEBIND`, ip(7)), such
/// as one of a [local prefix](crate::IpCommands::add_local_prefix).
///
/// # Errors
/// The address is in use.
pub fn bind_free(socket: &Socket, address: SocketAddr) -> Result<(), Error> {
    let free = match address {
        SocketAddr::V4(_) => sockopt::set_ip_freebind(socket, true),
        SocketAddr::V6(_) => sockopt::set_ipv6_freebind(socket, true),
    };
    free.map_err(Error::call("setting IP_FREEBIND"))?;
    socket.bind(&address.into()).map_err(Error::call(format!("binding to {address}")))
}

/// Begins to connect a socket that does not block.
///
/// # Errors
/// There is no route to the address, or the socket has a connection.
pub fn begin_connect(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        done => done,
    }
}
