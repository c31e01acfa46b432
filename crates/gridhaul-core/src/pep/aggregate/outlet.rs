//! What goes on over one upstream connection.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use super::Level;

/// The messages for one upstream connection, in the order in which they became whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Outlet {
    queue: VecDeque<Waiting>,
    /// Bytes handed to the connection so far, and those of messages that have left the buffer.
    pub written: u64,
    gone: u64,
    acknowledged: u64,
    pub waiting: Level,
    pub only_copy: Level,
}

/// A whole message that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub member: u32,
    pub bytes: u64,
    pub since: Instant,
}

/// A message that has left the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed {
    /// Whose message it is.
    pub member: u32,
    /// Its size.
    pub bytes: u64,
    /// From being whole to the first sending of its last byte.
    pub waited: Duration,
}

impl Outlet {
    pub(super) fn push(&mut self, now: Instant, message: Waiting) {
        self.written += message.bytes;
        self.only_copy.rise(now, message.bytes);
        self.queue.push_back(message);
    }

    pub(super) fn pop(&mut self, now: Instant, sent: u64) -> Option<Departed> {
        let Waiting { member, bytes, since } = *self.queue.front()?;
        if self.gone + bytes > sent {
            return None;
        }
        self.queue.pop_front();
        self.gone += bytes;
        self.waiting.fall(now, 1);
        Some(Departed { member, bytes, waited: now.since(since) })
    }

    pub(super) fn acknowledge(&mut self, now: Instant, acknowledged: u64) {
        if acknowledged > self.acknowledged {
            self.only_copy.fall(now, acknowledged - self.acknowledged);
            self.acknowledged = acknowledged;
        }
    }
}
