//! Listening sockets.

use std::io;
use std::net::SocketAddr;
use std::{thread, time};

use gridhaul_scenario::units::Duration;
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};
use socket2::{Domain, Protocol, Socket, Type};

use super::RunError;

/// Length of the queue of connections that are not accepted yet; the kernel limits it to
/// `net.core.somaxconn`.
const BACKLOG: i32 = 65_535;

/// Connections that are accepted before open ones are served again. Many, because a full queue
/// costs a meter the second until its SYN is retransmitted, and accepting takes microseconds.
pub(crate) const ACCEPT_BUDGET: usize = 512;

/// Time without accepting after file descriptors or memory of the kernel were exhausted.
pub(crate) const EXHAUSTED: Duration = Duration::from_millis(100);

/// Attempts of a start to bind an address, or to lock a log, that another process has: about three
/// seconds. A relay that was killed while it started a program, as for an upgrade, leaves its
/// sockets and its lock with that process for a moment.
pub(crate) const START_ATTEMPTS: u32 = 150;

/// Listens at an address of the configuration, with options that are set before the socket is
/// bound. An address in use is tried `attempts` times, with pauses: an event loop must not wait.
pub(crate) fn listen_with(
    key: &str,
    address: &str,
    attempts: u32,
    configure: impl FnOnce(&Socket, SocketAddr) -> Result<(), gridhaul_linux::Error>,
) -> Result<Socket, RunError> {
    let failed =
        |source| RunError::Listen { key: key.to_owned(), address: address.to_owned(), source };
    let parsed: SocketAddr = address
        .parse()
        .map_err(|_| failed(io::Error::new(io::ErrorKind::InvalidInput, "not an address")))?;
    let open = || Socket::new(Domain::for_address(parsed), Type::STREAM, Some(Protocol::TCP));
    let socket = open().map_err(failed)?;
    configure(&socket, parsed)?;
    let bind = || {
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        for _ in 1..attempts {
            match socket.bind(&parsed.into()) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => pause(),
                done => return done,
            }
        }
        socket.bind(&parsed.into())
    };
    bind().and_then(|()| socket.listen(BACKLOG)).map_err(failed)?;
    Ok(socket)
}

/// Waits before the next attempt of a start.
#[expect(clippy::disallowed_methods, reason = "another process is awaited in real time")]
pub(crate) fn pause() {
    thread::sleep(time::Duration::from_millis(20));
}

/// The next connection, which does not block, and its peer; `None` if there is none.
pub(crate) fn accept(listener: &Socket) -> io::Result<Option<(Socket, Option<SocketAddr>)>> {
    loop {
        // One system call: in a reconnect storm, connections must leave the queue as fast as they
        // arrive.
        match acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok((socket, peer)) => {
                let peer = peer.and_then(|address| SocketAddr::try_from(address).ok());
                return Ok(Some((socket.into(), peer.map(canonical))));
            }
            Err(Errno::AGAIN) => return Ok(None),
            // The peer has already ended the connection (accept(2)); others may wait.
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// An IPv4 address in the place of an IPv6 address to which it is mapped (RFC 4291, section
/// 2.5.5.2): a listener of both families has such peers.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
