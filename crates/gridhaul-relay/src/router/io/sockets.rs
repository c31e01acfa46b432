//! The sockets of probes: one for each link, whose packets use the device of the link only.

use std::io;
use std::net::{IpAddr, SocketAddr};

use gridhaul_linux::{Error, EventFlags};
use gridhaul_scenario::relay::{RouterConfig, RouterLink};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, Protocol, Socket, Type};

use super::ruleset::link_mark;
use super::token::RouterToken;
use crate::runtime::poll::Poll;

/// Longest datagram that is read: a longer one is no probe.
const DATAGRAM_MAX: usize = RouterLink::PROBE_SIZE_MAX as usize;

/// Class selector 6 (RFC 2474, section 4.2.2): networks treat probes as their own control traffic.
const TRAFFIC_CLASS: u32 = 0xc0;

/// The socket of a link.
#[derive(Debug)]
pub(super) struct ProbeSocket {
    socket: Socket,
    peer: SocketAddr,
}

impl ProbeSocket {
    /// Opens the socket of a link, whose datagrams wake the poll. The address of the router must be
    /// assigned.
    pub(super) fn open_watched(
        router: &RouterConfig,
        number: usize,
        poll: &Poll<RouterToken>,
    ) -> Result<Self, Error> {
        let probes = Self::open(router, number)?;
        poll.add(&probes.socket, RouterToken::Link(number as u32), EventFlags::IN)
            .map_err(Error::call("watching probes"))?;
        Ok(probes)
    }

    fn open(router: &RouterConfig, number: usize) -> Result<Self, Error> {
        let (name, link) =
            router.link.get_index(number).expect("a link has a number of the configuration");
        let open = || -> io::Result<Self> {
            let address = |text: &str| -> io::Result<SocketAddr> {
                let ip: IpAddr = text.parse().map_err(io::Error::other)?;
                Ok(SocketAddr::new(ip, router.port))
            };
            let (own, peer) = (address(&router.address)?, address(&router.peer)?);
            let socket = Socket::new(Domain::for_address(own), Type::DGRAM, Some(Protocol::UDP))?;
            socket.set_nonblocking(true)?;
            // Sockets of different devices may have the same address.
            socket.bind_device(Some(link.device.as_bytes()))?;
            socket.set_mark(link_mark(number))?;
            // Large probes must not be fragmented, whatever the kernel knows of the path.
            match own {
                SocketAddr::V4(_) => {
                    socket.set_tos_v4(TRAFFIC_CLASS)?;
                    set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
                }
                SocketAddr::V6(_) => {
                    socket.set_tclass_v6(TRAFFIC_CLASS)?;
                    set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
                }
            }
            socket.bind(&own.into())?;
            Ok(Self { socket, peer })
        };
        let (address, port, device) = (&router.address, router.port, &link.device);
        open().map_err(Error::call(format!(
            "opening the probes of link {name} (router.address {address}, UDP port {port}, device \
             {device})"
        )))
    }

    /// Sends a probe. One that the kernel rejects is lost, as on the link.
    pub(super) fn send(&self, probe: &[u8]) {
        let _ = self.socket.send_to(probe, &self.peer.into());
    }

    /// Passes the datagrams of the peer that are waiting to `handle`.
    pub(super) fn receive(&self, mut handle: impl FnMut(&[u8])) {
        let mut buffer = [0; DATAGRAM_MAX];
        loop {
            let received = rustix::net::recvfrom(
                &self.socket,
                &mut buffer[..],
                rustix::net::RecvFlags::empty(),
            );
            let (length, from) = match received {
                Ok((length, _, from)) => (length, from),
                Err(rustix::io::Errno::INTR) => continue,
                // The socket stays; a device that is down reports it once.
                Err(_) => return,
            };
            let from = from.and_then(|address| SocketAddr::try_from(address).ok());
            if from.is_some_and(|from| from.ip() == self.peer.ip()) {
                handle(&buffer[..length]);
            }
        }
    }
}
