//! State of one connection to a sender.

use gridhaul_scenario::units::Instant;

use super::super::{Framer, Payload};
use super::waiting_list::Wait;

/// A connection. Positions count the accepted bytes of its stream, from 0.
#[derive(Debug)]
pub(super) struct Connection {
    pub upstream: usize,
    pub framer: Box<dyn Framer>,
    pub payload: Payload,
    pub accepted: u64,
    /// End of the last complete message, of the last one that was taken for transmission, and of
    /// the last one that was delivered.
    pub complete: u64,
    pub transmitted: u64,
    pub delivered: u64,
    /// Bytes of an incomplete message that were discarded when the connection ended.
    pub discarded: u64,
    /// When the first byte of the incomplete message was accepted.
    pub incomplete_since: Instant,
    pub is_ended: bool,
    pub wait: Wait,
}

/// Counters of a connection, in bytes of payload.
///
/// At any time, `accepted` is the sum of `delivered`, `at_risk` and `discarded`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionStatus {
    /// Accepted since the connection was opened.
    pub accepted: u64,
    /// Bytes of messages that were delivered upstream.
    pub delivered: u64,
    /// Accepted and neither delivered nor discarded, incomplete messages included.
    pub at_risk: u64,
    /// The part of `at_risk` that is in an incomplete message.
    pub incomplete: u64,
    /// When the first byte of the incomplete message was accepted, if there is one. The caller
    /// decides how long a sender may take to complete a message.
    pub incomplete_since: Option<Instant>,
    /// Bytes of a message that was incomplete when the connection ended.
    pub discarded: u64,
    /// Whether the connection has ended and only waits for the delivery of its messages.
    pub is_ended: bool,
}

impl Connection {
    pub(super) fn new(upstream: usize, framer: Box<dyn Framer>, limit: u64) -> Self {
        Self {
            upstream,
            framer,
            payload: Payload::new(limit as usize),
            accepted: 0,
            complete: 0,
            transmitted: 0,
            delivered: 0,
            discarded: 0,
            incomplete_since: Instant::ZERO,
            is_ended: false,
            wait: Wait::No,
        }
    }

    /// Bytes of the incomplete message.
    pub(super) const fn incomplete(&self) -> u64 {
        self.accepted - self.discarded - self.complete
    }

    pub(super) const fn at_risk(&self) -> u64 {
        self.accepted - self.discarded - self.delivered
    }

    /// Whether the connection has ended and all its messages are delivered.
    pub(super) const fn is_finished(&self) -> bool {
        self.is_ended && self.at_risk() == 0
    }

    pub(super) fn status(&self) -> ConnectionStatus {
        let incomplete = self.incomplete();
        ConnectionStatus {
            accepted: self.accepted,
            delivered: self.delivered,
            at_risk: self.at_risk(),
            incomplete,
            incomplete_since: (incomplete > 0).then_some(self.incomplete_since),
            discarded: self.discarded,
            is_ended: self.is_ended,
        }
    }
}

/// Sequence number of a stream position, for [`Payload`].
pub(super) const fn sequence(position: u64) -> u32 {
    position as u32
}
