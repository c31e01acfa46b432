//! Connections whose handshake is not complete.

use std::collections::VecDeque;

use super::table::ConnectionId;

/// Connections in the order of their SYN. A bounded number of them: beyond it, the oldest is
/// removed, since that of a host that answers completes soon (RFC 4987, section 3.4: recycling the
/// oldest half-open connection).
#[derive(Debug, Default)]
pub(super) struct HalfOpen {
    queue: VecDeque<ConnectionId>,
    count: usize,
}

impl HalfOpen {
    pub(super) fn push(&mut self, id: ConnectionId) {
        self.queue.push_back(id);
        self.count += 1;
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// A handshake is complete, or its connection was removed.
    pub(super) fn remove_one(&mut self) {
        self.count -= 1;
    }

    /// The oldest connection for which `is_half_open` holds; it stays in the queue.
    pub(super) fn oldest(
        &mut self,
        is_half_open: impl Fn(ConnectionId) -> bool,
    ) -> Option<ConnectionId> {
        while let Some(first) = self.queue.front() {
            if is_half_open(*first) {
                return Some(*first);
            }
            self.queue.pop_front();
        }
        None
    }

    /// Forgets connections that are not half-open any more, once they are the larger part.
    pub(super) fn shrink(&mut self, is_half_open: impl Fn(ConnectionId) -> bool) {
        if self.queue.len() > 2 * self.count + 16 {
            self.queue.retain(|id| is_half_open(*id));
        }
    }
}
