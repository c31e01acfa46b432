//! Settings of a network namespace (`/proc/sys/net`, described in the kernel's `ip-sysctl.rst`).

use std::path::Path;

use crate::Error;

/// Least, initial and largest size of the send buffers of TCP, in bytes.
const SEND_BUFFERS: &str = "4096 65536 67108864";

/// Initial size of the receive buffers of TCP in bytes, as in a new namespace.
const RECEIVE_BUFFER: u32 = 131_072;

/// TCP parameters that Linux has once for all connections of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSysctls {
    /// Selective acknowledgements (`tcp_sack`).
    pub sack: bool,
    /// Timestamps (`tcp_timestamps`).
    pub timestamps: bool,
    /// Whether connections request explicit congestion notification (`tcp_ecn` 1); otherwise they
    /// accept it only (2, the default).
    pub ecn: bool,
    /// Whether the segment size decreases when repeated timeouts show a black hole
    /// (`tcp_mtu_probing` 1); otherwise it stays (0, the default).
    pub mtu_probing: bool,
    /// Whether the congestion window is reduced after an idle time (`tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// Duplicate acknowledgements that indicate a loss (`tcp_reordering`).
    pub reordering: u32,
}

impl TcpSysctls {
    /// Writes the parameters of the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel rejects a value.
    pub fn apply(&self) -> Result<(), Error> {
        let flag = |on: bool| if on { "1" } else { "0" };
        set_sysctl("ipv4/tcp_sack", flag(self.sack))?;
        set_sysctl("ipv4/tcp_timestamps", flag(self.timestamps))?;
        set_sysctl("ipv4/tcp_ecn", if self.ecn { "1" } else { "2" })?;
        set_sysctl("ipv4/tcp_mtu_probing", flag(self.mtu_probing))?;
        set_sysctl("ipv4/tcp_slow_start_after_idle", flag(self.slow_start_after_idle))?;
        set_sysctl("ipv4/tcp_reordering", &self.reordering.to_string())
    }
}

/// Limits the buffers of TCP sockets that [limit their windows
/// themselves](crate::TcpSocketConfig::clamp_window), in the network namespace of the calling
/// thread. Send buffers grow up to 64 MiB. The limit of receive buffers decides in which steps a
/// window can be announced (RFC 7323, section 2.2), so it is no larger than the largest receive
/// window requires.
///
/// # Errors
/// The kernel rejects a value.
pub fn set_tcp_buffer_limits(receive_window: u32) -> Result<(), Error> {
    set_sysctl("ipv4/tcp_wmem", SEND_BUFFERS)?;
    let largest = receive_window.max(RECEIVE_BUFFER);
    set_sysctl("ipv4/tcp_rmem", &format!("4096 {RECEIVE_BUFFER} {largest}"))
}

/// Limits the receive windows of the TCP sockets of other programs, in the network namespace of the
/// calling thread, by their buffers: Linux announces about half of a buffer. The window of a route
/// has no lasting effect, since the kernel replaces it when it learns how much memory a segment
/// uses (`tcp_measure_rcv_mss`). Send buffers grow up to 64 MiB.
///
/// # Errors
/// The kernel rejects a value.
pub fn limit_receive_windows(receive_window: u32) -> Result<(), Error> {
    set_sysctl("ipv4/tcp_wmem", SEND_BUFFERS)?;
    let largest = receive_window.saturating_mul(2);
    let [least, initial] = [4_096, RECEIVE_BUFFER].map(|size| largest.min(size));
    set_sysctl("ipv4/tcp_rmem", &format!("{least} {initial} {largest}"))
}

/// Lets the network namespace of the calling thread forward packets, over asymmetric paths as well:
/// reverse path filters (RFC 3704) are off.
///
/// # Errors
/// The kernel rejects a value.
pub fn enable_forwarding() -> Result<(), Error> {
    set_sysctl("ipv4/ip_forward", "1")?;
    set_sysctl("ipv6/conf/all/forwarding", "1")?;
    set_sysctl("ipv4/conf/all/rp_filter", "0")?;
    set_sysctl("ipv4/conf/default/rp_filter", "0")
}

/// Keeps devices that are made later in the network namespace of the calling thread from
/// configuring themselves for IPv6 (RFC 4862), so that the kernel sends no packets of its own: no
/// link-local addresses, no duplicate address detection, no router solicitations.
///
/// # Errors
/// The kernel rejects a value.
pub fn disable_ipv6_autoconfiguration() -> Result<(), Error> {
    set_sysctl("ipv6/conf/default/addr_gen_mode", "1")?;
    set_sysctl("ipv6/conf/default/accept_dad", "0")?;
    set_sysctl("ipv6/conf/default/router_solicitations", "0")
}

/// Reads a setting of the network namespace of the calling thread, such as `ipv4/tcp_sack`.
///
/// # Errors
/// The kernel does not have the setting.
pub fn read_sysctl(name: &str) -> Result<String, Error> {
    let read = std::fs::read_to_string(Path::new("/proc/sys/net").join(name));
    let text = read.map_err(Error::call(format!("reading {name} of a network namespace")))?;
    Ok(text.trim().to_owned())
}

/// Writes a setting of the network namespace of the calling thread, such as `ipv4/tcp_sack`.
///
/// # Errors
/// The kernel does not have the setting, or rejects the value.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), Error> {
    std::fs::write(Path::new("/proc/sys/net").join(name), value)
        .map_err(Error::call(format!("setting {name} = {value} in a network namespace")))
}
