//! The message queue of one upstream connection.

use std::collections::VecDeque;

use gridhaul_scenario::units::Instant;

use super::TimeAverage;

/// The messages for one upstream connection, in the order in which they became complete.
///
/// Positions count the bytes of all messages in this order, from 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Upstream {
    queue: VecDeque<Waiting>,
    /// End of the last complete message, and of the last one that has left the queue.
    pub written: u64,
    departed: u64,
    acknowledged: u64,
    /// Messages that occupy buffer space, incomplete ones included.
    pub waiting: TimeAverage,
    /// Bytes at risk: accepted from their senders and not yet delivered upstream.
    pub at_risk: TimeAverage,
}

/// A complete message in the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    /// The connection that the message came from.
    pub connection: u64,
    pub bytes: u64,
    /// When the message became complete.
    pub since: Instant,
}

impl Upstream {
    pub(super) fn push(&mut self, message: Waiting) {
        self.written += message.bytes;
        self.queue.push_back(message);
    }

    /// Removes the first message if it ends at or before `position`.
    pub(super) fn pop(&mut self, now: Instant, position: u64) -> Option<Waiting> {
        let message = *self.queue.front()?;
        if self.departed + message.bytes > position {
            return None;
        }
        self.queue.pop_front();
        self.departed += message.bytes;
        self.waiting.decrease(now, 1);
        Some(message)
    }

    /// The bytes before this position are acknowledged upstream and no longer at risk.
    pub(super) fn acknowledge(&mut self, now: Instant, acknowledged: u64) {
        if acknowledged > self.acknowledged {
            self.at_risk.decrease(now, acknowledged - self.acknowledged);
            self.acknowledged = acknowledged;
        }
    }
}
