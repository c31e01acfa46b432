//! UDP: one datagram for each message, without a broker.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time;

use gridhaul_linux::{
    Clock, SystemTime, enable_receive_times, receive_with_time, set_receive_buffer,
    wait_for_receive_times,
};
use socket2::{Domain, Socket, Type};

use super::{
    Connected, Protocol, ProtocolError, Publisher, RECEIVE_WAIT, Received, Refused, Subscriber,
    has_nothing_arrived,
};
use crate::method::ReceiveTimes;
use crate::place::{Site, Sites};
use crate::settings::Settings;

/// Receive buffer, so that a burst does not overflow it while the receiver does not run.
const RECEIVE_BUFFER: u32 = 8 << 20;

/// Largest payload of a datagram over IPv4 (RFC 768, RFC 791).
pub(super) const DATAGRAM_MAX: usize = 65_507;

/// UDP.
#[derive(Debug, Clone, Copy)]
pub struct Udp;

impl Protocol for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn settings(&self) -> Settings {
        [("receive_buffer", format!("{RECEIVE_BUFFER} B"))].into_iter().collect()
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let receiver = UdpSubscriber::new(open(&sites.to)?, sites.clock, sites.kernel_times)?;
        let receiver = if sites.busy_poll { receiver.polling()? } else { receiver };
        let address =
            receiver.socket.local_addr().map_err(ProtocolError::socket("reading an address"))?;
        let publisher = UdpPublisher::new(open(&sites.from)?, address)?;
        Ok(Connected { publisher: Box::new(publisher), subscriber: Box::new(receiver) })
    }
}

/// A socket at an end, at a port that the kernel chooses.
pub(super) fn open(site: &Site<'_>) -> Result<UdpSocket, ProtocolError> {
    let address = SocketAddr::new(site.address, 0);
    let socket = site.enter(|| {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        // Where the limit of the system applies, the buffer stays smaller, and losses in it are
        // counted as losses.
        let _ = set_receive_buffer(&socket, RECEIVE_BUFFER);
        socket.bind(&address.into())?;
        Ok(UdpSocket::from(socket))
    })?;
    socket.map_err(ProtocolError::socket(format!("opening a UDP socket at {address}")))
}

#[derive(Debug)]
pub(super) struct UdpPublisher {
    socket: UdpSocket,
}

#[derive(Debug)]
pub(super) struct UdpSubscriber {
    socket: UdpSocket,
    clock: Clock,
    /// Converts the receive times of the kernel, if they are recorded.
    kernel_times: Option<SystemTime>,
    /// Whether it polls instead of sleeping.
    is_polling: bool,
}

impl UdpPublisher {
    /// Sends over this socket to an address.
    pub(super) fn new(socket: UdpSocket, address: SocketAddr) -> Result<Self, ProtocolError> {
        let connect = format!("connecting a UDP socket to {address}");
        socket.connect(address).map_err(ProtocolError::socket(connect))?;
        socket.set_nonblocking(true).map_err(ProtocolError::socket("setting O_NONBLOCK"))?;
        Ok(Self { socket })
    }
}

impl UdpPublisher {
    /// Sends a datagram.
    pub(super) fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.socket.send(datagram)
    }

    /// Whether the datagrams have headers of IPv6.
    pub(super) fn is_ipv6(&self) -> bool {
        self.socket.local_addr().is_ok_and(|address| address.is_ipv6())
    }
}

impl UdpSubscriber {
    /// Receives from this socket, with times of this clock, and those of the kernel if requested.
    pub(super) fn new(
        socket: UdpSocket,
        clock: Clock,
        kernel_times: bool,
    ) -> Result<Self, ProtocolError> {
        let wait = time::Duration::from_nanos(RECEIVE_WAIT.as_nanos());
        socket.set_read_timeout(Some(wait)).map_err(ProtocolError::socket("setting a timeout"))?;
        let kernel_times = kernel_times.then(|| SystemTime::new(clock));
        if kernel_times.is_some() {
            let enabled = enable_receive_times(&socket).map_err(io::Error::other);
            enabled.map_err(ProtocolError::socket("--kernel-times"))?;
            wait_for_receive_times();
        }
        Ok(Self { socket, clock, kernel_times, is_polling: false })
    }

    /// The same end, which polls its socket instead of sleeping.
    fn polling(self) -> Result<Self, ProtocolError> {
        self.socket.set_nonblocking(true).map_err(ProtocolError::socket("setting O_NONBLOCK"))?;
        Ok(Self { is_polling: true, ..self })
    }

    /// Receives a datagram; a polling end tries until [`RECEIVE_WAIT`] is over.
    fn receive_datagram(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<time::Duration>)> {
        let until = self.clock.now() + RECEIVE_WAIT;
        loop {
            match receive_with_time(&self.socket, buffer) {
                Err(error)
                    if self.is_polling
                        && error.kind() == ErrorKind::WouldBlock
                        && self.clock.now() < until =>
                {
                    std::hint::spin_loop();
                }
                received => return received,
            }
        }
    }

    /// The socket, whose reads end after [`RECEIVE_WAIT`].
    pub(super) const fn socket(&self) -> &UdpSocket {
        &self.socket
    }
}

impl Publisher for UdpPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        self.send(message)?;
        Ok(())
    }
}

impl Subscriber for UdpSubscriber {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        message.resize(DATAGRAM_MAX, 0);
        match self.receive_datagram(message) {
            Ok((length, received_at)) => {
                let read = self.clock.now();
                let kernel = self.kernel_times.as_mut().zip(received_at).map(|(times, at)| {
                    // Somebody may have set the system's clock.
                    times.update();
                    times.instant(at)
                });
                message.truncate(length);
                Ok(Received::Message(ReceiveTimes { read, kernel }))
            }
            Err(error) if has_nothing_arrived(&error) => Ok(Received::Nothing),
            Err(error) => Err(ProtocolError::socket("receiving a datagram")(error)),
        }
    }

    fn is_polling(&self) -> bool {
        self.is_polling
    }
}
