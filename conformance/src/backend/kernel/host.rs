//! A host of the kernel backend: a network namespace with a device and a socket.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr};

use gridhaul_core::tcp::StackParams;
use gridhaul_emu::{socket_config, tcp_sysctls};
use gridhaul_linux::{
    DeviceAttributes, Error, Established, IpCommands, IpPrefix, Namespace, Route, RouteMetrics,
    TcpInfo, Tun, begin_connect, configure_socket, set_sysctl, set_tcp_buffer_limits,
};
use gridhaul_scenario::scenario::Profile;
use gridhaul_scenario::units::Duration;
use socket2::{Domain, Protocol, Socket, Type};

use super::congestion_control::congestion_control_name;
use super::packets::{ADDRESSES, PORTS};
use crate::case::Action;

/// A host that uses the TCP of the kernel.
pub(super) struct Host {
    index: usize,
    stack: StackParams,
    namespace: Namespace,
    /// The device that leads to the other host.
    pub tun: Tun,
    /// Tables of the namespace in procfs: connections, counters.
    connections: File,
    counters: File,
    listener: Option<Socket>,
    socket: Option<Socket>,
    /// Bytes that the application has written and the socket has not accepted.
    to_write: u64,
    closing: bool,
    reads: bool,
    /// Bytes that the application has read.
    pub received: u64,
}

/// Settings that switch off features of Linux beyond the RFCs of the profile `rfc`.
const SYSCTLS_OF_PROFILE_RFC: [(&str, &str); 6] = [
    // Tail loss probes (RFC 8985, section 7).
    ("ipv4/tcp_early_retrans", "0"),
    // Duplicate SACK (RFC 2883).
    ("ipv4/tcp_dsack", "0"),
    // F-RTO: detection of spurious timeouts (RFC 5682).
    ("ipv4/tcp_frto", "0"),
    // Retransmissions of SYN at constant intervals before the exponential back-off.
    ("ipv4/tcp_syn_linear_timeouts", "0"),
    // Rate limit of the replies to segments outside the window: one per half second.
    ("ipv4/tcp_invalid_ratelimit", "0"),
    // SACK compression.
    ("ipv4/tcp_comp_sack_nr", "0"),
];

/// Payload; its content is not checked.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl Host {
    /// The client or the server of a case, without a connection.
    pub(super) fn new(index: usize, stack: StackParams, profile: Profile) -> Result<Self, String> {
        if congestion_control_name(stack.congestion_control).is_none() {
            return Err(format!(
                "the Linux kernel has no congestion control algorithm {}",
                stack.congestion_control.name()
            ));
        }
        let namespace = Namespace::new().map_err(|error| error.to_string())?;
        let inside = || -> Result<_, String> {
            let tun = Tun::new("link0").map_err(|error| format!("/dev/net/tun: {error}"))?;
            configure(&stack, profile == Profile::Rfc).map_err(|error| error.to_string())?;
            network_commands(index, &stack).run("a host").map_err(|error| error.to_string())?;
            let table = |name: &str| {
                let path = format!("/proc/thread-self/net/{name}");
                File::open(&path).map_err(|error| format!("{path}: {error}"))
            };
            Ok((tun, table("tcp")?, table("netstat")?))
        };
        let made = namespace.enter(inside).map_err(|error| error.to_string())?;
        let (tun, connections, counters) = made?;
        Ok(Self {
            index,
            stack,
            namespace,
            tun,
            connections,
            counters,
            listener: None,
            socket: None,
            to_write: 0,
            closing: false,
            reads: true,
            received: 0,
        })
    }

    /// Restores an established connection.
    pub(super) fn establish(&mut self, state: &Established, ports: [u16; 2]) -> Result<(), String> {
        let socket = self.bound_socket(ports)?;
        state
            .set(&socket, &address(1 - self.index, ports).into())
            .map_err(|error| format!("restoring a connection (TCP_REPAIR): {error}"))?;
        if self.stack.quick_ack == 0 && self.stack.delayed_ack > Duration::ZERO {
            rustix::net::sockopt::set_tcp_quickack(&socket, false)
                .map_err(|error| format!("setting TCP_QUICKACK: {error}"))?;
        }
        self.socket = Some(socket);
        self.clamp_window();
        Ok(())
    }

    /// Drops the connection of this host.
    pub(super) fn reset(&mut self) {
        (self.socket, self.to_write, self.closing, self.received) = (None, 0, false, 0);
    }

    /// Starts to connect to the other host.
    pub(super) fn connect(&mut self) -> Result<(), String> {
        let socket = self.bound_socket(PORTS)?;
        begin_connect(&socket, address(1 - self.index, PORTS))
            .map_err(|error| format!("connecting: {error}"))?;
        self.socket = Some(socket);
        Ok(())
    }

    /// Listens for a connection of the other host.
    pub(super) fn listen(&mut self) -> Result<(), String> {
        let socket = self.bound_socket(PORTS)?;
        socket.listen(8).map_err(|error| format!("listening: {error}"))?;
        self.listener = Some(socket);
        Ok(())
    }

    fn bound_socket(&self, ports: [u16; 2]) -> Result<Socket, String> {
        let own = address(self.index, ports);
        let name = congestion_control_name(self.stack.congestion_control);
        let mut config = socket_config(&self.stack, name);
        // The route sets the timeout; the option rejects a smaller value.
        config.rto_min = config.rto_min.max(Duration::from_millis(8));
        let open = || -> Result<Socket, String> {
            let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP))
                .map_err(|error| format!("opening a socket: {error}"))?;
            configure_socket(&socket, &config).map_err(|error| error.to_string())?;
            socket.bind(&own.into()).map_err(|error| format!("binding a socket: {error}"))?;
            Ok(socket)
        };
        self.namespace.enter(open).map_err(|error| error.to_string())?
    }

    /// Performs an action of the application.
    pub(super) fn apply(&mut self, action: &Action) {
        match action {
            Action::Write(bytes) => self.to_write = self.to_write.saturating_add(*bytes),
            Action::Close => self.closing = true,
            Action::ReadOnDemand => self.reads = false,
            Action::Read(bytes) => self.read(*bytes),
            Action::Receive(_) => {}
        }
        self.run_application();
    }

    /// Accepts, writes, closes and reads without blocking. An error shows in the state of the
    /// connection.
    pub(super) fn run_application(&mut self) {
        if let (None, Some(listener)) = (&self.socket, &self.listener)
            && let Ok((socket, _)) = listener.accept()
        {
            let _ = socket.set_nonblocking(true);
            self.socket = Some(socket);
        }
        let Some(mut socket) = self.socket.as_ref() else { return };
        while self.to_write > 0 {
            let length =
                usize::try_from(self.to_write).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
            match socket.write(&ZEROS[..length]) {
                Ok(taken) if self.to_write < u64::MAX => self.to_write -= taken as u64,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if self.closing && self.to_write == 0 && socket.shutdown(Shutdown::Write).is_ok() {
            self.closing = false;
        }
        if self.reads {
            self.read(u64::MAX);
        }
        self.clamp_window();
    }

    /// Sets the window clamp again: the kernel overwrites it when it measures the memory use of a
    /// segment.
    fn clamp_window(&self) {
        if let Some(socket) = &self.socket {
            // Opening the socket has failed already if the option is not supported.
            let _ = socket_config(&self.stack, None).clamp_window(socket);
        }
    }

    fn read(&mut self, maximum: u64) {
        let Some(mut socket) = self.socket.as_ref() else { return };
        let mut left = maximum;
        let mut buffer = [0; 1 << 14];
        while left > 0 {
            let length = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            match socket.read(&mut buffer[..length]) {
                Ok(count @ 1..) => {
                    self.received += count as u64;
                    left -= count as u64;
                }
                _ => break,
            }
        }
    }

    /// `TCP_INFO` of the connection.
    pub(super) fn info(&self) -> Option<TcpInfo> {
        TcpInfo::of(self.socket.as_ref()?).ok()
    }

    /// The state of the socket, with its name in RFC 9293 without hyphens. A connection in
    /// TIME-WAIT or SYN-RECEIVED has no socket: its state is `Closed` or `Listen` here.
    pub(super) fn state(&self) -> &'static str {
        match self.info() {
            Some(info) => state_name(info.state),
            None if self.listener.is_some() => "Listen",
            None => "Closed",
        }
    }

    /// The state of the connection, including TIME-WAIT and SYN-RECEIVED. Reading it takes some
    /// milliseconds: the kernel iterates over all connections of the machine to list those of a
    /// namespace.
    pub(super) fn listed(&mut self) -> &'static str {
        let state = self.state();
        let hidden = [("Closed", "06", "TimeWait"), ("Listen", "03", "SynReceived")];
        let Some((_, number, name)) = hidden.into_iter().find(|(known, ..)| *known == state) else {
            return state;
        };
        let text = reread(&mut self.connections).unwrap_or_default();
        let mut states = text.lines().filter_map(|line| line.split_whitespace().nth(3));
        if states.any(|listed| listed == number) { name } else { state }
    }

    /// Number of recoveries without a timeout (fast retransmit).
    pub(super) fn fast_recoveries(&mut self) -> u64 {
        let text = reread(&mut self.counters).unwrap_or_default();
        let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
        let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return 0 };
        let both = names.split_whitespace().zip(numbers.split_whitespace());
        let counted =
            both.filter(|(name, _)| ["TCPSackRecovery", "TCPRenoRecovery"].contains(name));
        counted.filter_map(|(_, number)| number.parse::<u64>().ok()).sum()
    }
}

/// Reads a table of procfs again.
fn reread(table: &mut File) -> io::Result<String> {
    table.rewind()?;
    let mut text = String::new();
    table.read_to_string(&mut text)?;
    Ok(text)
}

/// Name of a connection state of `<net/tcp_states.h>`.
const fn state_name(state: u8) -> &'static str {
    match state {
        1 => "Established",
        2 => "SynSent",
        3 | 12 => "SynReceived",
        4 => "FinWait1",
        5 => "FinWait2",
        6 => "TimeWait",
        8 => "CloseWait",
        9 => "LastAck",
        10 => "Listen",
        11 => "Closing",
        _ => "Closed",
    }
}

fn address(index: usize, ports: [u16; 2]) -> SocketAddr {
    SocketAddr::from((ADDRESSES[index], ports[index]))
}

/// Applies the sysctl settings of the namespace of the calling thread.
fn configure(stack: &StackParams, rfc: bool) -> Result<(), Error> {
    // The device carries only packets of the connection.
    set_sysctl("ipv6/conf/all/disable_ipv6", "1")?;
    set_sysctl("ipv4/tcp_ecn", "0")?;
    set_sysctl("ipv4/tcp_no_ssthresh_metrics_save", "0")?;
    set_tcp_buffer_limits(stack.receive_window)?;
    tcp_sysctls(stack).apply()?;
    SYSCTLS_OF_PROFILE_RFC
        .into_iter()
        .filter(|_| rfc)
        .try_for_each(|(setting, value)| set_sysctl(setting, value))
}

/// Commands for the device, the address and the route of a host.
fn network_commands(index: usize, stack: &StackParams) -> IpCommands {
    let [own, other] = [ADDRESSES[index], ADDRESSES[1 - index]].map(IpAddr::from);
    // The initial timeout is three times this RTT, in whole ticks of 4 ms at 250 Hz.
    let third = (stack.rto_initial.as_nanos() / 1_000_000).div_ceil(12) * 4;
    let ssthresh = stack.initial_ssthresh;
    let metrics = RouteMetrics {
        initial_window: Some((stack.initial_window / stack.mss).max(1)),
        quick_ack: stack.delayed_ack == Duration::ZERO,
        rto_min: Some(stack.rto_min),
        rtt: (stack.rto_initial > stack.rto_min).then(|| Duration::from_millis(third)),
        ssthresh: (ssthresh != u32::MAX).then(|| ssthresh / stack.mss),
        ..RouteMetrics::default()
    };
    let device = "link0";
    let destination = IpPrefix::host(other);
    let mut commands = IpCommands::default();
    commands.set_up_device(
        device,
        DeviceAttributes { mtu: 65_535, transmit_queue_len: 10_000, gso_max_segments: Some(1) },
    );
    commands.add_address(device, own);
    commands.add_route(&Route { destination, device, source: Some(own), metrics });
    commands
}
