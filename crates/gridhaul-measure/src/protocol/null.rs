//! The null protocol: messages pass between two threads of this program. Its latency is the floor
//! of every result.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time;

use gridhaul_linux::Clock;

use super::{
    Connected, Protocol, ProtocolError, Publisher, RECEIVE_WAIT, Received, Refused, Subscriber,
};
use crate::place::Sites;

/// Messages that can be on their way.
const QUEUE: usize = 10_000;

/// The null protocol.
#[derive(Debug, Clone, Copy)]
pub struct Null;

impl Protocol for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError> {
        let (messages, queue) = sync_channel(QUEUE);
        let publisher = Box::new(NullPublisher { messages });
        Ok(Connected {
            publisher,
            subscriber: Box::new(NullSubscriber { queue, clock: sites.clock }),
        })
    }
}

#[derive(Debug)]
struct NullPublisher {
    messages: SyncSender<Vec<u8>>,
}

#[derive(Debug)]
struct NullSubscriber {
    queue: Receiver<Vec<u8>>,
    clock: Clock,
}

impl Publisher for NullPublisher {
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused> {
        self.messages.try_send(message.to_vec()).map_err(|error| match error {
            TrySendError::Full(_) => Refused::QueueFull,
            TrySendError::Disconnected(_) => Refused::NotConnected,
        })
    }
}

impl Subscriber for NullSubscriber {
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        match self.queue.recv_timeout(time::Duration::from_nanos(RECEIVE_WAIT.as_nanos())) {
            Ok(received) => {
                *message = received;
                Ok(Received::Message(self.clock.now().into()))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Received::Nothing),
            Err(RecvTimeoutError::Disconnected) => Err(ProtocolError::Closed),
        }
    }
}
