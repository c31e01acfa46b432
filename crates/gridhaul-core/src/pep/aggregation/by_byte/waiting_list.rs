//! Connections that wait for buffer space.

use std::collections::BTreeMap;

use super::ConnectionId;

/// Connections that wait for space of the whole buffer, first come, first served.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingList {
    by_ticket: BTreeMap<u64, ConnectionId>,
    next_ticket: u64,
}

/// The reason for which a connection waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wait {
    /// The connection does not wait.
    #[default]
    No,
    /// The limit of the connection is reached: it waits for the delivery of its own messages.
    Own,
    /// The buffer is full: it waits for space, with this ticket.
    Buffer(u64),
}

impl WaitingList {
    /// Appends a connection that is not in the list.
    pub(super) fn push(&mut self, id: ConnectionId) -> Wait {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.by_ticket.insert(ticket, id);
        Wait::Buffer(ticket)
    }

    pub(super) fn remove(&mut self, wait: Wait) {
        if let Wait::Buffer(ticket) = wait {
            self.by_ticket.remove(&ticket);
        }
    }

    pub(super) fn first(&self) -> Option<ConnectionId> {
        self.by_ticket.first_key_value().map(|(_, &id)| id)
    }
}
