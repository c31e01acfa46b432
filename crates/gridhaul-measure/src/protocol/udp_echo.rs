//! The network alone, as messages through a broker pass it: datagrams to the other end, which sends
//! them back.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use gridhaul_linux::request_realtime_priority;

use super::udp::{DATAGRAM_MAX, UdpPublisher, UdpSubscriber, open};
use super::{
    Connected, Protocol, ProtocolError, Publisher, Received, Refused, Subscriber,
    has_nothing_arrived,
};
use crate::place::Sites;

/// Datagrams that the `to` end reflects to the end of the subscriber.
#[derive(Debug, Clone, Copy)]
pub struct UdpEcho;

impl Protocol for UdpEcho {
    fn name(&self) -> &'static str {
        "udp-echo"
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let address = |socket: &UdpSocket| {
            socket.local_addr().map_err(ProtocolError::socket("reading an address"))
        };
        let subscriber =
            UdpSubscriber::new(open(&sites.subscriber)?, sites.clock, sites.kernel_times)?;
        let destination = address(subscriber.socket())?;
        let reflector = UdpSubscriber::new(open(&sites.to)?, sites.clock, sites.kernel_times)?;
        let publisher = UdpPublisher::new(open(&sites.from)?, address(reflector.socket())?)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let fault = Arc::new(OnceLock::new());
        let thread = {
            let (is_over, fault) = (Arc::clone(&is_over), Arc::clone(&fault));
            thread::spawn(move || {
                if let Err(error) = reflect(reflector.socket(), destination, &is_over) {
                    let _ = fault.set(error.to_string());
                }
            })
        };
        let publisher = EchoPublisher { publisher, is_over, thread: Some(thread) };
        let subscriber = EchoSubscriber { subscriber, fault };
        Ok(Connected { publisher: Box::new(publisher), subscriber: Box::new(subscriber) })
    }
}

/// Sends datagrams to their destination until `is_over`.
fn reflect(socket: &UdpSocket, destination: SocketAddr, is_over: &AtomicBool) -> io::Result<()> {
    request_realtime_priority();
    let mut datagram = vec![0; DATAGRAM_MAX];
    while !is_over.load(Ordering::Relaxed) {
        match socket.recv(&mut datagram) {
            // A datagram that cannot be sent counts as lost.
            Ok(length) => {
                let _ = socket.send_to(&datagram[..length], destination);
            }
            Err(error) if has_nothing_arrived(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fails with the end that reflects: messages that it does not return are not lost on the network.
#[derive(Debug)]
struct EchoSubscriber {
    subscriber: UdpSubscriber,
    fault: Arc<OnceLock<String>>,
}

impl Subscriber for EchoSubscriber {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        match self.fault.get() {
            None => self.subscriber.receive(message),
            Some(reason) => {
                Err(ProtocolError::socket("reflecting datagrams")(io::Error::other(&**reason)))
            }
        }
    }
}

#[derive(Debug)]
struct EchoPublisher {
    publisher: UdpPublisher,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher for EchoPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        self.publisher.publish(message)
    }
}

impl Drop for EchoPublisher {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}
