//! Sockets as the stacks of the scenario want them.

use std::io;
use std::net::{IpAddr, SocketAddr};

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{Transport, Variant};
use gridhaul_scenario::units::Duration;
use socket2::{Domain, Protocol, Socket, Type};

use crate::control::Controls;
use crate::fault::Fault;
use crate::network::{Address, Family, FlowPlan, Side};
use gridhaul_linux::{SocketOption, set_option};

/// Port at which the `to` end of the first flow listens.
const FIRST_PORT: u16 = 5_000;

/// What the kernel calls a variant; `None` where it has none.
#[must_use]
pub fn congestion_name(stack: &StackParams) -> Option<&'static str> {
    match stack.variant {
        // With and without `sack`: the kernel's reno repairs losses as NewReno or by RFC 6675.
        Variant::Reno | Variant::NewReno | Variant::Sack => Some("reno"),
        Variant::Cubic => Some("cubic"),
        Variant::Bbr => Some("bbr"),
        // Our own, loaded for the run.
        Variant::Vegas => Some(gridhaul_cc::Algorithm::Vegas.name()),
        Variant::Medx => Some(gridhaul_cc::Algorithm::Medx.name()),
        Variant::Veno => Some("veno"),
        Variant::Westwood => Some("westwood"),
        Variant::Tahoe | Variant::Fixed => None,
    }
}

/// The socket of the `from` end of one member, bound to its address. Call it inside the namespace.
pub(crate) fn near(
    flow: &FlowPlan,
    number: u16,
    member: u32,
    controls: &Controls,
) -> Result<Socket, Fault> {
    let socket = open(flow, 0, controls)?;
    let address = Address { flow: number, side: Side::From, number: member };
    bind(&socket, flow.family, SocketAddr::new(address.ip(flow.family), 0))?;
    Ok(socket)
}

/// The `to` end of TCP: one socket for all members, which listens.
pub(crate) fn listener(flow: &FlowPlan, number: u16, controls: &Controls) -> Result<Socket, Fault> {
    let socket = open(flow, 1, controls)?;
    let any: IpAddr = match flow.family {
        Family::V4 => IpAddr::from([0; 4]),
        Family::V6 => IpAddr::from([0_u16; 8]),
    };
    bind(&socket, flow.family, SocketAddr::new(any, FIRST_PORT + number))?;
    socket.listen(i32::from(i16::MAX)).map_err(Fault::call("listening"))?;
    Ok(socket)
}

/// The `to` end of one member for datagrams: bound to its own address, so that answers come from it.
pub(crate) fn far_datagram(
    flow: &FlowPlan,
    number: u16,
    member: u32,
    controls: &Controls,
) -> Result<Socket, Fault> {
    let socket = open(flow, 1, controls)?;
    let address = Address { flow: number, side: Side::To, number: member };
    let port = FIRST_PORT + number;
    bind(&socket, flow.family, SocketAddr::new(address.ip(flow.family), port))?;
    Ok(socket)
}

/// Limits the window that a socket offers. The kernel forgets the limit when it learns how much memory
/// a full segment takes, so it is told again while the first data arrives.
///
/// # Errors
/// The kernel does not know the option.
pub fn clamp_window(socket: &Socket, stack: &StackParams) -> io::Result<()> {
    set_option(socket, SocketOption::WindowClamp, window(stack))
}

/// The kernel's MSS includes options; the scenario's is payload (RFC 6691).
pub(crate) fn kernel_mss(stack: &StackParams) -> u32 {
    stack.mss + if stack.has_clock_option() { 12 } else { 0 }
}

/// The largest window that is offered: a kernel does not go below two segments.
fn window(stack: &StackParams) -> u32 {
    stack.receive_window.max(2 * stack.mss)
}

/// Lets the socket count as writable only when everything before has been sent.
pub(crate) fn write_one_by_one(socket: &Socket) -> Result<(), Fault> {
    set_option(socket, SocketOption::NotSentLowWater, 1)
        .map_err(Fault::call("setting TCP_NOTSENT_LOWAT"))
}

/// Begins to connect a member with its `to` end.
pub(crate) fn connect(socket: &Socket, family: Family, number: u16, member: u32) -> io::Result<()> {
    let to = Address { flow: number, side: Side::To, number: member };
    let to = SocketAddr::new(to.ip(family), FIRST_PORT + number);
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        done => done,
    }
}

fn open(flow: &FlowPlan, end: usize, controls: &Controls) -> Result<Socket, Fault> {
    let domain = match flow.family {
        Family::V4 => Domain::IPV4,
        Family::V6 => Domain::IPV6,
    };
    let tcp = flow.transport == Transport::Tcp;
    let (kind, protocol) =
        if tcp { (Type::STREAM, Protocol::TCP) } else { (Type::DGRAM, Protocol::UDP) };
    let socket = Socket::new(domain, kind.nonblocking(), Some(protocol))
        .map_err(Fault::call("opening a socket"))?;
    if tcp {
        let stack = &flow.stacks[end];
        furnish_with(&socket, stack, controls.name(stack))?;
    } else {
        // Datagrams are to be lost where the scenario says so, not at a socket.
        set_receive_buffer(&socket, DATAGRAM_BUFFER)?;
        set_send_buffer(&socket, DATAGRAM_BUFFER)?;
    }
    Ok(socket)
}

fn bind(socket: &Socket, family: Family, address: SocketAddr) -> Result<(), Fault> {
    let freebind = match family {
        Family::V4 => rustix::net::sockopt::set_ip_freebind(socket, true),
        Family::V6 => rustix::net::sockopt::set_ipv6_freebind(socket, true),
    };
    freebind.map_err(Fault::call("allowing addresses of a block"))?;
    socket.bind(&address.into()).map_err(Fault::call(format!("binding to {address}")))
}

/// Sees whether this kernel has a congestion control.
///
/// # Errors
/// It does not, or does not let us have it.
pub(crate) fn require_congestion(name: &str) -> Result<(), Fault> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .map_err(Fault::call("opening a socket"))?;
    rustix::net::sockopt::set_tcp_congestion(&socket, name)
        .map_err(|error| no_congestion_control(name, error))
}

/// Sets what belongs to a stack at a socket of TCP. What is left as the kernel has it was refused
/// where it differs. A least timeout above 200 ms is for routes to say (`rto_min`), which come first.
///
/// # Errors
/// A value that the kernel refuses, a congestion control that it does not have.
pub fn furnish(socket: &Socket, stack: &StackParams) -> Result<(), Fault> {
    furnish_with(socket, stack, congestion_name(stack))
}

/// The same with a congestion control of this name.
fn furnish_with(socket: &Socket, stack: &StackParams, control: Option<&str>) -> Result<(), Fault> {
    let set = |option, value: u32| {
        set_option(socket, option, value)
            .map_err(Fault::call(format!("setting {option:?} to {value}")))
    };
    if let Some(name) = control {
        rustix::net::sockopt::set_tcp_congestion(socket, name)
            .map_err(|error| no_congestion_control(name, error))?;
    }
    // Who closes resets: what was not sent would go on in a network that is no more, for minutes.
    socket.set_linger(Some(std::time::Duration::ZERO)).map_err(Fault::call("setting SO_LINGER"))?;
    rustix::net::sockopt::set_tcp_nodelay(socket, !stack.nagle)
        .map_err(Fault::call("setting TCP_NODELAY"))?;
    set(SocketOption::MaxSegment, kernel_mss(stack))?;
    // A buffer that is set stays so. The kernel doubles it, and its windows are at most half of it.
    set_receive_buffer(socket, window(stack).saturating_mul(2))?;
    clamp_window(socket, stack).map_err(Fault::call("limiting the window"))?;
    let micros =
        |time: Duration| u32::try_from(time.as_nanos().div_ceil(1_000)).unwrap_or(u32::MAX);
    set(SocketOption::RtoMinMicros, micros(stack.rto_min.min(KERNEL_RTO_MIN)))?;
    set(SocketOption::RtoMaxMillis, micros(stack.rto_max) / 1_000)?;
    if stack.delayed_ack > Duration::ZERO && stack.delayed_ack_max != KERNEL_DELAYED_ACK {
        set(SocketOption::DelayedAckMaxMicros, micros(stack.delayed_ack_max))?;
    }
    Ok(())
}

/// `TCP_DELACK_MAX`: up to where a kernel adapts without further words.
pub(crate) const KERNEL_DELAYED_ACK: Duration = Duration::from_millis(200);

/// `TCP_RTO_MIN`: what a kernel has where nobody says anything, and the most that a socket takes.
pub(crate) const KERNEL_RTO_MIN: Duration = Duration::from_millis(200);

/// Room for some tens of milliseconds at 100,000 datagrams a second.
const DATAGRAM_BUFFER: u32 = 4 << 20;

fn set_receive_buffer(socket: &Socket, bytes: u32) -> Result<(), Fault> {
    let bytes = bytes as usize;
    // Beyond the limit of the system where that is allowed.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(socket, bytes))
        .map_err(Fault::call("setting the receive buffer"))
}

fn set_send_buffer(socket: &Socket, bytes: u32) -> Result<(), Fault> {
    let bytes = bytes as usize;
    rustix::net::sockopt::set_socket_send_buffer_size_force(socket, bytes)
        .or_else(|_| rustix::net::sockopt::set_socket_send_buffer_size(socket, bytes))
        .map_err(Fault::call("setting the send buffer"))
}

fn no_congestion_control(name: &str, error: rustix::io::Errno) -> Fault {
    if error != rustix::io::Errno::NOENT {
        return Fault::call(format!("choosing the congestion control {name}"))(error);
    }
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    Fault::NoCongestionControl {
        name: name.to_owned(),
        available: available.unwrap_or_default().trim().to_owned(),
    }
}
