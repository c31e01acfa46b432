//! Messages from the thread with a socket to its subscriber.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time;

use gridhaul_scenario::units::Instant;

use super::{ProtocolError, RECEIVE_WAIT, Received};

/// An event of a connection.
#[derive(Debug)]
pub(super) enum Arrival {
    Message(Instant, Vec<u8>),
    Reconnected(Instant),
}

/// Waits for an event as [`Subscriber::receive`](super::Subscriber::receive) does.
pub(super) fn receive(
    queue: &Receiver<Arrival>,
    message: &mut Vec<u8>,
) -> Result<Received, ProtocolError> {
    match queue.recv_timeout(time::Duration::from_nanos(RECEIVE_WAIT.as_nanos())) {
        Ok(Arrival::Message(at, received)) => {
            *message = received;
            Ok(Received::Message(at.into()))
        }
        Ok(Arrival::Reconnected(at)) => Ok(Received::Reconnected(at)),
        Err(RecvTimeoutError::Timeout) => Ok(Received::Nothing),
        Err(RecvTimeoutError::Disconnected) => Err(ProtocolError::Closed),
    }
}
