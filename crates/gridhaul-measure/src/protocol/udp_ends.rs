//! Both ends of UDP on two machines: datagrams to the other machine, which may send them back.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use gridhaul_linux::Clock;
use gridhaul_protocols::message_header::Header;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::udp::{DATAGRAM_MAX, Udp, UdpPublisher, UdpSubscriber, open};
use super::{
    ProtocolError, RECEIVE_WAIT, Received, ReceivingEnd, SendingEnd, Subscriber,
    has_nothing_arrived,
};
use crate::place::Site;

impl Udp {
    /// The receiving end. With `echo`, it sends each intact message of this run back to its sender:
    /// as many bytes as have arrived, so that forged addresses gain nothing.
    ///
    /// # Errors
    /// The socket cannot be opened at this address.
    pub fn receiver(
        self,
        address: IpAddr,
        clock: Clock,
        echo: Option<u32>,
    ) -> Result<ReceivingEnd, ProtocolError> {
        let subscriber = UdpSubscriber::new(open(&Site::at(address))?, clock, false)?;
        let local = subscriber.socket().local_addr();
        let local = local.map_err(ProtocolError::socket("reading an address"))?;
        let subscriber: Box<dyn Subscriber> = match echo {
            None => Box::new(subscriber),
            Some(run) => Box::new(Reflector { socket: clone(subscriber.socket())?, clock, run }),
        };
        Ok(ReceivingEnd { subscriber, address: local })
    }

    /// The sending end, to a receiver on another machine, and the end that receives what is sent
    /// back, if anything is.
    ///
    /// # Errors
    /// The socket cannot be opened, or there is no route to the receiver.
    pub fn sender(
        self,
        receiver: SocketAddr,
        clock: Clock,
        is_returned: bool,
    ) -> Result<SendingEnd, ProtocolError> {
        let any: IpAddr = match receiver {
            SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = open(&Site::at(any))?;
        let returns = Returns { socket: clone(&socket)?, clock };
        Ok(SendingEnd {
            publisher: Box::new(UdpPublisher::new(socket, receiver)?),
            returns: is_returned.then(|| Box::new(returns) as _),
        })
    }
}

fn clone(socket: &UdpSocket) -> Result<UdpSocket, ProtocolError> {
    socket.try_clone().map_err(ProtocolError::socket("sharing a socket"))
}

/// Receives, and sends intact messages back.
#[derive(Debug)]
struct Reflector {
    socket: UdpSocket,
    clock: Clock,
    run: u32,
}

impl Subscriber for Reflector {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        message.resize(DATAGRAM_MAX, 0);
        match self.socket.recv_from(message) {
            Ok((length, sender)) => {
                let at = self.clock.now();
                message.truncate(length);
                if Header::read(message, self.run).is_ok() {
                    // A datagram that cannot be sent counts as lost on its return.
                    let _ = self.socket.send_to(message, sender);
                }
                Ok(Received::Message(at.into()))
            }
            Err(error) => nothing(error),
        }
    }
}

/// Receives from the socket of a publisher, which does not block.
#[derive(Debug)]
struct Returns {
    socket: UdpSocket,
    clock: Clock,
}

impl Subscriber for Returns {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        // The buffer is ready before the wait, so that its preparation is no part of the latency.
        message.resize(DATAGRAM_MAX, 0);
        let wait = Timespec { tv_sec: 0, tv_nsec: RECEIVE_WAIT.as_nanos() as i64 };
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        if let Err(error) = poll(&mut ready, Some(&wait)) {
            return nothing(error.into());
        }
        match self.socket.recv(message) {
            Ok(length) => {
                let at = self.clock.now();
                message.truncate(length);
                Ok(Received::Message(at.into()))
            }
            Err(error) => nothing(error),
        }
    }
}

/// An error after which a socket of UDP still receives: nothing has arrived, or an ICMP message
/// reports a closed port.
fn nothing(error: io::Error) -> Result<Received, ProtocolError> {
    match error.kind() {
        _ if has_nothing_arrived(&error) => Ok(Received::Nothing),
        ErrorKind::ConnectionRefused
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable => Ok(Received::Nothing),
        _ => Err(ProtocolError::socket("receiving a datagram")(error)),
    }
}
