//! Sockets with the parameters of the scenario's stacks.

use std::io;
use std::net::{IpAddr, SocketAddr};

use gridhaul_core::load::IdleRules;
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{FlowEnd, KeepAlive, Transport};
use gridhaul_scenario::units::Duration;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, set_ip_mtu_discover, set_ip_tos, set_ipv6_tclass,
};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::error::EmulationError;
use crate::kernel_congestion_control::KernelCongestionControls;
use crate::network::{Address, AddressFamily, FlowLayout, aggregator_port, server_port};
use crate::socket_config::socket_config;
use gridhaul_linux::{
    SocketOption, begin_connect, bind_free, configure_socket, set_option, set_receive_buffer,
    set_send_buffer,
};

/// The socket of the `from` end of one member, bound to its address. Call it inside the namespace.
pub(crate) fn sender(
    flow: &FlowLayout,
    number: u16,
    member: u32,
    controls: &KernelCongestionControls,
) -> Result<Socket, EmulationError> {
    let socket = open(flow, 0, controls)?;
    if let Some(rules) = &flow.idle {
        set_idle_timers(&socket, rules)?;
    }
    let address = Address { flow: number, side: FlowEnd::From, number: member };
    bind_free(&socket, SocketAddr::new(address.ip(flow.family), 0))?;
    Ok(socket)
}

/// Sets keep-alive and user timeout of a socket (tcp(7)).
fn set_idle_timers(socket: &Socket, rules: &IdleRules) -> Result<(), EmulationError> {
    if let Some(KeepAlive { idle, interval, probes }) = rules.keep_alive {
        let [idle, interval] = [idle, interval].map(to_std);
        let keys = TcpKeepalive::new().with_time(idle).with_interval(interval);
        socket
            .set_tcp_keepalive(&keys.with_retries(probes))
            .map_err(EmulationError::call("setting TCP_KEEPIDLE"))?;
    }
    socket
        .set_tcp_user_timeout(rules.user_timeout.map(to_std))
        .map_err(EmulationError::call("setting TCP_USER_TIMEOUT"))
}

fn to_std(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}

/// The `to` end of TCP: one socket for all members, which listens.
pub(crate) fn listener(
    flow: &FlowLayout,
    number: u16,
    controls: &KernelCongestionControls,
) -> Result<Socket, EmulationError> {
    let socket = match flow.aggregators {
        0 => open(flow, 1, controls)?,
        // The peer is the head on the same node.
        _ => plain_socket(flow)?,
    };
    let any: IpAddr = match flow.family {
        AddressFamily::V4 => IpAddr::from([0; 4]),
        AddressFamily::V6 => IpAddr::from([0_u16; 8]),
    };
    bind_free(&socket, SocketAddr::new(any, server_port(number.into())))?;
    socket.listen(i32::from(i16::MAX)).map_err(EmulationError::call("listening"))?;
    Ok(socket)
}

/// The `to` end of one datagram member: bound to its own address, which is the source of replies.
pub(crate) fn datagram_receiver(
    flow: &FlowLayout,
    number: u16,
    member: u32,
    controls: &KernelCongestionControls,
) -> Result<Socket, EmulationError> {
    let socket = open(flow, 1, controls)?;
    let address = Address { flow: number, side: FlowEnd::To, number: member };
    let port = server_port(number.into());
    bind_free(&socket, SocketAddr::new(address.ip(flow.family), port))?;
    Ok(socket)
}

/// Limits the receive window that a socket advertises; called again while the first data arrives,
/// as `TcpSocketConfig::clamp_window` explains.
pub(crate) fn clamp_window(socket: &Socket, stack: &StackParams) -> io::Result<()> {
    socket_config(stack, None).clamp_window(socket)
}

/// Makes the socket writable only when all previous data has been sent.
pub(crate) fn write_one_by_one(socket: &Socket) -> Result<(), EmulationError> {
    set_option(socket, SocketOption::NotSentLowWater, 1)
        .map_err(EmulationError::call("setting TCP_NOTSENT_LOWAT"))
}

/// Starts the handshake of a member with its `to` end.
pub(crate) fn connect(
    socket: &Socket,
    flow: &FlowLayout,
    number: u16,
    member: u32,
) -> io::Result<()> {
    let to = Address { flow: number, side: FlowEnd::To, number: member };
    let port = match flow.aggregators {
        0 => server_port(number.into()),
        _ => aggregator_port(flow.aggregator_of(member)),
    };
    begin_connect(socket, SocketAddr::new(to.ip(flow.family), port))
}

fn open(
    flow: &FlowLayout,
    end: usize,
    controls: &KernelCongestionControls,
) -> Result<Socket, EmulationError> {
    let socket = plain_socket(flow)?;
    mark(&socket, flow)?;
    if flow.transport == Transport::Tcp {
        let stack = &flow.stacks[end];
        configure_socket(&socket, &socket_config(stack, controls.name(stack)))?;
        controls.configure(&socket, stack)?;
    } else {
        // Datagrams must be lost only on the links of the scenario, not at a socket.
        if flow.family == AddressFamily::V4 {
            // Routers fragment datagrams: hosts do not forbid it (DF).
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DONT)
                .map_err(io::Error::from)
                .map_err(EmulationError::call("setting IP_MTU_DISCOVER"))?;
        }
        set_receive_buffer(&socket, DATAGRAM_BUFFER)?;
        set_send_buffer(&socket, DATAGRAM_BUFFER)?;
    }
    Ok(socket)
}

/// Sets the code point of the packets that a socket sends, and the connections that it accepts.
fn mark(socket: &Socket, flow: &FlowLayout) -> Result<(), EmulationError> {
    let marked = match flow.family {
        _ if flow.traffic_class == 0 => return Ok(()),
        AddressFamily::V4 => set_ip_tos(socket, flow.traffic_class),
        AddressFamily::V6 => set_ipv6_tclass(socket, flow.traffic_class.into()),
    };
    marked.map_err(io::Error::from).map_err(EmulationError::call("setting the code point"))
}

/// A socket with the parameters of the system.
fn plain_socket(flow: &FlowLayout) -> Result<Socket, EmulationError> {
    let domain = match flow.family {
        AddressFamily::V4 => Domain::IPV4,
        AddressFamily::V6 => Domain::IPV6,
    };
    let (kind, protocol) = match flow.transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        _ => (Type::DGRAM, Protocol::UDP),
    };
    Socket::new(domain, kind.nonblocking(), Some(protocol))
        .map_err(EmulationError::call("opening a socket"))
}

/// Buffer space for some tens of milliseconds at 100,000 datagrams per second.
const DATAGRAM_BUFFER: u32 = 4 << 20;
