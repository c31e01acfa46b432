//! The network alone, as messages through a broker pass it: datagrams to the other end, which sends them back.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use gridhaul_linux::request_realtime_priority;

use super::udp::{DATAGRAM_MAX, UdpPublisher, UdpSubscriber, open};
use super::{Connected, Protocol, ProtocolError, Publisher, Refused};
use crate::network::Sites;

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
        let stop = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            request_realtime_priority();
            let mut datagram = vec![0; DATAGRAM_MAX];
            while !stop.load(Ordering::Relaxed) {
                match reflector.socket().recv(&mut datagram) {
                    // A datagram that cannot be sent counts as lost.
                    Ok(length) => {
                        let _ = reflector.socket().send_to(&datagram[..length], destination);
                    }
                    Err(error)
                        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                    Err(_) => return,
                }
            }
        });
        let publisher = EchoPublisher { publisher, is_over, thread: Some(thread) };
        Ok(Connected { publisher: Box::new(publisher), subscriber: Box::new(subscriber) })
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
