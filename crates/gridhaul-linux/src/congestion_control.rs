//! Congestion control algorithms of the kernel, by name (`TCP_CONGESTION`, tcp(7)).

use std::os::fd::AsFd;

use gridhaul_scenario::scenario::CongestionControlAlgorithm;
use rustix::net::{AddressFamily, SocketType, ipproto, socket, sockopt};

use crate::Error;

/// Name of the kernel's own algorithm for a congestion control algorithm; `None` if Linux has no
/// such algorithm, or another one: the kernel's Vegas has no option for its thresholds.
#[must_use]
pub const fn congestion_control_name(
    congestion_control: CongestionControlAlgorithm,
) -> Option<&'static str> {
    match congestion_control {
        // The kernel's Reno recovers as NewReno (RFC 6582), or with SACK (RFC 6675) where that is
        // negotiated.
        CongestionControlAlgorithm::Reno
        | CongestionControlAlgorithm::NewReno
        | CongestionControlAlgorithm::Sack => Some("reno"),
        CongestionControlAlgorithm::Cubic => Some("cubic"),
        CongestionControlAlgorithm::Bbr => Some("bbr"),
        CongestionControlAlgorithm::Veno => Some("veno"),
        CongestionControlAlgorithm::Westwood => Some("westwood"),
        CongestionControlAlgorithm::Tahoe
        | CongestionControlAlgorithm::Fixed
        | CongestionControlAlgorithm::Vegas
        | CongestionControlAlgorithm::Medx => None,
    }
}

/// Names of the algorithms that this kernel has registered
/// (`net.ipv4.tcp_available_congestion_control`).
#[must_use]
pub fn available_congestion_control() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    names.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Checks whether sockets in the namespace of the calling thread can have an algorithm; the kernel
/// loads its module if it may.
///
/// # Errors
/// [`Error::NoCongestionControl`], or this process may not choose the algorithm.
pub fn require_congestion_control(name: &str) -> Result<(), Error> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP))
        .map_err(Error::call("opening a socket"))?;
    set_congestion_control(&socket, name)
}

/// Sets the algorithm of a socket.
///
/// # Errors
/// [`Error::NoCongestionControl`], or this process may not choose the algorithm.
pub fn set_congestion_control(socket: impl AsFd, name: &str) -> Result<(), Error> {
    sockopt::set_tcp_congestion(socket, name).map_err(|error| match error {
        rustix::io::Errno::NOENT => Error::NoCongestionControl {
            name: name.to_owned(),
            available: available_congestion_control().join(" "),
        },
        error => Error::call(format!("choosing the congestion control {name}"))(error),
    })
}
