//! Options of the sockets of a proxy.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;
use socket2::{Socket, TcpKeepalive};

use crate::{
    Error, SocketOption, set_congestion_control, set_option, set_receive_buffer, set_send_buffer,
};

/// Options of the TCP sockets on one side of a proxy. `None` keeps the value of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegOptions {
    /// Name of the congestion control algorithm in the kernel.
    pub congestion_control: Option<String>,
    /// Longest delay of an acknowledgement. Zero is not an option of the socket:
    /// [`acknowledge_at_once`] must be called after each read.
    pub delayed_ack: Option<Duration>,
    /// Longest time for which sent data stays unacknowledged (`TCP_USER_TIMEOUT`, RFC 5482).
    pub user_timeout: Duration,
    /// Interval of probes on an idle connection; `None` for no probes.
    pub keepalive: Option<Duration>,
    /// Largest segment that is sent and announced, in bytes.
    pub mss: Option<u32>,
    /// Send buffer in bytes; Linux doubles the value.
    pub send_buffer: Option<u32>,
    /// Receive buffer in bytes; Linux doubles the value.
    pub receive_buffer: Option<u32>,
    /// Unsent bytes up to which the socket is writable.
    pub not_sent_low_water: Option<u32>,
    /// Nagle's algorithm (RFC 9293, section 3.7.4).
    pub nagle: bool,
}

/// Sets the options of a socket before it connects or listens. Accepted sockets have the options of
/// their listener, where buffers and MSS must be set to take part in the handshake. Closing a
/// socket resets its connection (`SO_LINGER` with time 0) until [`close_with_fin`].
///
/// # Errors
/// The kernel rejects a value, is too old for an option, or does not have the congestion control
/// algorithm.
pub fn configure_leg(socket: &Socket, options: &LegOptions) -> Result<(), Error> {
    let set = |option, value: Option<u32>| match value {
        Some(value) => set_option(socket, option, value)
            .map_err(Error::call(format!("setting {option:?} to {value}"))),
        None => Ok(()),
    };
    if let Some(name) = &options.congestion_control {
        set_congestion_control(socket, name)?;
    }
    socket.set_linger(Some(Duration::ZERO)).map_err(Error::call("setting SO_LINGER"))?;
    sockopt::set_tcp_nodelay(socket, !options.nagle).map_err(Error::call("setting TCP_NODELAY"))?;
    socket
        .set_tcp_user_timeout(Some(options.user_timeout))
        .map_err(Error::call("setting TCP_USER_TIMEOUT"))?;
    if let Some(interval) = options.keepalive {
        let keepalive = TcpKeepalive::new().with_time(interval).with_interval(interval);
        socket.set_tcp_keepalive(&keepalive).map_err(Error::call("setting TCP_KEEPIDLE"))?;
    }
    if let Some(bytes) = options.send_buffer {
        set_send_buffer(socket, bytes)?;
    }
    if let Some(bytes) = options.receive_buffer {
        set_receive_buffer(socket, bytes)?;
    }
    set(SocketOption::MaxSegment, options.mss)?;
    set(SocketOption::NotSentLowWater, options.not_sent_low_water)?;
    let delay = options.delayed_ack.filter(|delay| !delay.is_zero());
    let micros = delay.map(|delay| u32::try_from(delay.as_micros()).unwrap_or(u32::MAX));
    set(SocketOption::DelayedAckMaxMicros, micros)
}

/// Acknowledges received data now, and further segments without delay for some time
/// (`TCP_QUICKACK`, tcp(7)): the kernel returns to delayed acknowledgements by itself.
///
/// # Errors
/// Not a TCP socket.
pub fn acknowledge_at_once(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_tcp_quickack(socket, true)?)
}

/// From now on, closing the socket sends FIN after the data of its send buffer.
///
/// # Errors
/// Not a socket.
pub fn close_with_fin(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(socket, None)?)
}

/// Lets a socket accept connections to, or be bound to, addresses of other machines
/// (`IP_TRANSPARENT`, ip(7)).
///
/// # Errors
/// The process lacks `CAP_NET_ADMIN`.
pub fn set_transparent(socket: &Socket, address: SocketAddr) -> Result<(), Error> {
    let done = match address {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
    };
    done.map_err(Error::call("setting IP_TRANSPARENT (it needs the capability CAP_NET_ADMIN)"))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};

    use socket2::{Domain, Protocol, Type};

    use super::*;

    const OPTIONS: LegOptions = LegOptions {
        congestion_control: None,
        delayed_ack: None,
        user_timeout: Duration::from_secs(7),
        keepalive: Some(Duration::from_secs(11)),
        mss: Some(1_000),
        send_buffer: Some(20_000),
        receive_buffer: Some(30_000),
        not_sent_low_water: Some(16_000),
        nagle: false,
    };

    #[test]
    fn accepted_sockets_have_the_options_of_the_listener() {
        let options = LegOptions { congestion_control: Some("reno".to_owned()), ..OPTIONS };
        let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        configure_leg(&listener, &options).unwrap();
        listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        listener.listen(1).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let _client = TcpStream::connect(address).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(sockopt::tcp_congestion(&accepted).unwrap(), "reno");
        assert_eq!(sockopt::tcp_user_timeout(&accepted).unwrap(), 7_000);
        assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap(), Duration::from_secs(11));
        assert!(accepted.keepalive().unwrap() && accepted.tcp_nodelay().unwrap());
        assert_eq!(accepted.linger().unwrap(), Some(Duration::ZERO));
        assert_eq!(accepted.send_buffer_size().unwrap(), 40_000);
        assert_eq!(accepted.recv_buffer_size().unwrap(), 60_000);
        assert_eq!(accepted.tcp_notsent_lowat().unwrap(), 16_000);
        assert!(accepted.tcp_mss().unwrap() <= 1_000);
        close_with_fin(&accepted).unwrap();
        assert_eq!(accepted.linger().unwrap(), None);
        acknowledge_at_once(&accepted).unwrap();
    }

    #[test]
    fn an_unknown_algorithm_is_named() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let options = LegOptions { congestion_control: Some("none_such".to_owned()), ..OPTIONS };
        let error = configure_leg(&socket, &options).unwrap_err().to_string();
        assert!(error.contains("none_such"), "{error}");
    }
}
