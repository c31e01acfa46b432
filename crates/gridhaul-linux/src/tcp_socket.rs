//! TCP sockets with the parameters of a scenario's stack.

use std::io;

use gridhaul_scenario::units::Duration;
use rustix::net::sockopt;
use socket2::Socket;

use crate::{
    Error, SocketOption, TCP_DELACK_MAX, TCP_RTO_MIN, set_congestion_control, set_option,
    set_receive_buffer,
};

/// Bytes of the timestamp option with its padding (RFC 7323, appendix A).
const TIMESTAMP_OPTION: u32 = 12;

/// Parameters of TCP that Linux has as socket options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSocketConfig<'a> {
    /// Name of the congestion control algorithm in the kernel; `None` keeps the default of the
    /// namespace.
    pub congestion_control: Option<&'a str>,
    /// Payload of a full segment, in bytes.
    pub mss: u32,
    /// Whether every segment carries an option of 12 bytes, such as timestamps.
    pub timestamps: bool,
    /// Largest receive window, in bytes. Linux announces no less than two segments.
    pub receive_window: u32,
    /// Nagle's algorithm (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Smallest retransmission timeout. A value above [`TCP_RTO_MIN`] is set by
    /// [`RouteMetrics::rto_min`](crate::RouteMetrics::rto_min).
    pub rto_min: Duration,
    /// Largest retransmission timeout.
    pub rto_max: Duration,
    /// Longest delay of an acknowledgement; `None` where acknowledgements are not delayed, which is
    /// an attribute of a route.
    pub delayed_ack_max: Option<Duration>,
}

impl TcpSocketConfig<'_> {
    /// The MSS as Linux counts it, in bytes: with the options that every segment carries (RFC 6691,
    /// section 2).
    #[must_use]
    pub const fn max_segment(&self) -> u32 {
        self.mss + if self.timestamps { TIMESTAMP_OPTION } else { 0 }
    }

    /// Limits the receive window that a socket announces. The kernel resets the limit when it
    /// learns how much memory a full segment uses, so a caller sets the clamp again while the first
    /// data arrives.
    ///
    /// # Errors
    /// The kernel does not support the option.
    pub fn clamp_window(&self, socket: &Socket) -> io::Result<()> {
        set_option(socket, SocketOption::WindowClamp, self.window())
    }

    fn window(&self) -> u32 {
        self.receive_window.max(2 * self.mss)
    }
}

/// Sets the parameters of a TCP socket, before it connects or listens. Closing the socket then
/// resets the connection: unsent data would otherwise be retransmitted for minutes in a network
/// that no longer exists.
///
/// # Errors
/// The kernel rejects a value, is too old for an option, or does not have the congestion control
/// algorithm.
pub fn configure_socket(socket: &Socket, config: &TcpSocketConfig<'_>) -> Result<(), Error> {
    let set = |option, value: u32| {
        set_option(socket, option, value)
            .map_err(Error::call(format!("setting {option:?} to {value}")))
    };
    if let Some(name) = config.congestion_control {
        set_congestion_control(socket, name)?;
    }
    socket.set_linger(Some(std::time::Duration::ZERO)).map_err(Error::call("setting SO_LINGER"))?;
    sockopt::set_tcp_nodelay(socket, !config.nagle).map_err(Error::call("setting TCP_NODELAY"))?;
    set(SocketOption::MaxSegment, config.max_segment())?;
    // A buffer that is set does not grow. Linux doubles the value, and windows are at most half of
    // the buffer.
    set_receive_buffer(socket, config.window().saturating_mul(2))?;
    config.clamp_window(socket).map_err(Error::call("setting TCP_WINDOW_CLAMP"))?;
    set(SocketOption::RtoMinMicros, microseconds(config.rto_min.min(TCP_RTO_MIN)))?;
    set(SocketOption::RtoMaxMillis, microseconds(config.rto_max) / 1_000)?;
    if let Some(max) = config.delayed_ack_max.filter(|max| *max != TCP_DELACK_MAX) {
        set(SocketOption::DelayedAckMaxMicros, microseconds(max))?;
    }
    Ok(())
}

fn microseconds(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Protocol, Type};

    use super::*;

    const CONFIG: TcpSocketConfig<'_> = TcpSocketConfig {
        congestion_control: Some("reno"),
        mss: 1_000,
        timestamps: true,
        receive_window: 30_000,
        nagle: false,
        rto_min: Duration::from_millis(50),
        rto_max: Duration::from_secs(20),
        delayed_ack_max: Some(Duration::from_millis(100)),
    };

    #[test]
    fn a_socket_has_the_parameters_that_were_set() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        match configure_socket(&socket, &CONFIG) {
            Ok(()) => {}
            // The options of Linux 6.15.
            Err(error) if error.to_string().contains("Protocol not available") => {
                eprintln!("passed over, this kernel is too old: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(sockopt::tcp_congestion(&socket).unwrap(), "reno");
        assert_eq!(socket.tcp_mss().unwrap(), 1_012, "with timestamps");
        assert!(socket.tcp_nodelay().unwrap());
        assert!(socket.recv_buffer_size().unwrap() >= 2 * 30_000, "windows are half of it");
    }

    #[test]
    fn an_unknown_algorithm_is_named_with_a_remedy() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let config = TcpSocketConfig { congestion_control: Some("none_such"), ..CONFIG };
        let error = configure_socket(&socket, &config).unwrap_err().to_string();
        assert!(error.contains("none_such") && error.contains("modprobe"), "{error}");
    }
}
