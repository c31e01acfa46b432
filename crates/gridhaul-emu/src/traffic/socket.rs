//! Sockets with the parameters of the scenario's stacks.

use std::io;
use std::net::{IpAddr, SocketAddr};

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Transport};
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::EmulationError;
use crate::kernel_congestion_control::KernelCongestionControls;
use crate::network::{Address, AddressFamily, FlowEnd, FlowLayout};
use gridhaul_cc::Algorithm;
use gridhaul_linux::{
    SocketOption, TcpSocketConfig, begin_connect, bind_free, configure_socket,
    congestion_control_name, set_option, set_receive_buffer, set_send_buffer,
};

/// Port at which the `to` end of the first flow listens.
const FIRST_PORT: u16 = 5_000;

/// Port at which the first aggregator of a flow listens.
const FIRST_AGGREGATOR_PORT: u16 = 20_000;

/// Port at which an aggregator accepts the connections of a flow's members.
pub(crate) const fn aggregator_port(index: u32) -> u16 {
    FIRST_AGGREGATOR_PORT + index as u16
}

/// Port at which the server of a flow accepts connections.
pub(crate) const fn server_port(flow: usize) -> u16 {
    FIRST_PORT + flow as u16
}

/// Name in the kernel of a stack's congestion control; `None` if it is not available.
pub(crate) fn congestion_name(stack: &StackParams) -> Option<&'static str> {
    match stack.congestion_control {
        // Algorithms of gridhaul-cc, loaded for the run.
        CongestionControlAlgorithm::Vegas => Some(Algorithm::Vegas.name()),
        CongestionControlAlgorithm::Medx => Some(Algorithm::Medx.name()),
        congestion_control => congestion_control_name(congestion_control),
    }
}

/// The socket of the `from` end of one member, bound to its address. Call it inside the namespace.
pub(crate) fn sender(
    flow: &FlowLayout,
    number: u16,
    member: u32,
    controls: &KernelCongestionControls,
) -> Result<Socket, EmulationError> {
    let socket = open(flow, 0, controls)?;
    let address = Address { flow: number, side: FlowEnd::From, number: member };
    bind_free(&socket, SocketAddr::new(address.ip(flow.family), 0))?;
    Ok(socket)
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
    bind_free(&socket, SocketAddr::new(any, FIRST_PORT + number))?;
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
    let port = FIRST_PORT + number;
    bind_free(&socket, SocketAddr::new(address.ip(flow.family), port))?;
    Ok(socket)
}

/// Limits the receive window that a socket advertises; called again while the first data arrives, as
/// [`TcpSocketConfig::clamp_window`] explains.
pub(crate) fn clamp_window(socket: &Socket, stack: &StackParams) -> io::Result<()> {
    socket_config(stack, None).clamp_window(socket)
}

/// The MSS of a stack as Linux counts it, in bytes, options included.
pub(crate) fn kernel_mss(stack: &StackParams) -> u32 {
    socket_config(stack, None).max_segment()
}

/// Socket options of a stack, with this congestion control. Parameters without a socket option in Linux are
/// unsupported keys.
fn socket_config<'a>(
    stack: &StackParams,
    congestion_control: Option<&'a str>,
) -> TcpSocketConfig<'a> {
    TcpSocketConfig {
        congestion_control,
        mss: stack.mss,
        timestamps: stack.has_clock_option(),
        receive_window: stack.receive_window,
        nagle: stack.nagle,
        rto_min: stack.rto_min,
        rto_max: stack.rto_max,
        delayed_ack_max: (!stack.delayed_ack.is_zero()).then_some(stack.delayed_ack_max),
    }
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
        0 => FIRST_PORT + number,
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
    if flow.transport == Transport::Tcp {
        let stack = &flow.stacks[end];
        configure_socket(&socket, &socket_config(stack, controls.name(stack)))?;
        controls.configure(&socket, stack)?;
    } else {
        // Datagrams must be lost only on the links of the scenario, not at a socket.
        set_receive_buffer(&socket, DATAGRAM_BUFFER)?;
        set_send_buffer(&socket, DATAGRAM_BUFFER)?;
    }
    Ok(socket)
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
