//! The server: messages that it recognises by their message ID (RFC 7252, section 4.5).

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use crate::load::Arrival;

/// Messages of the last EXCHANGE_LIFETIME, in the order of their message IDs, which are
/// consecutive.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentMessages {
    first_id: u16,
    messages: VecDeque<RecentMessage>,
}

#[derive(Debug, Clone, Copy)]
struct RecentMessage {
    message: Arrival,
    began: Instant,
    is_received: bool,
}

/// A copy of a message at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copy {
    First(Arrival),
    Duplicate(Arrival),
    /// The message is older than EXCHANGE_LIFETIME.
    Unknown,
}

/// Messages that are stored at most: half of the message IDs, so that an ID has one meaning.
const MESSAGES_MAX: usize = 1 << 15;

impl RecentMessages {
    /// The device begins with a message.
    pub(super) fn add(&mut self, now: Instant, id: u16, message: Arrival, lifetime: Duration) {
        self.forget(now, lifetime);
        if self.messages.is_empty() {
            self.first_id = id;
        }
        self.messages.push_back(RecentMessage { message, began: now, is_received: false });
    }

    /// A copy of the message with this ID has arrived.
    pub(super) fn receive(&mut self, now: Instant, id: u16, lifetime: Duration) -> Copy {
        self.forget(now, lifetime);
        let index = usize::from(id.wrapping_sub(self.first_id));
        let Some(recent) = self.messages.get_mut(index) else { return Copy::Unknown };
        match std::mem::replace(&mut recent.is_received, true) {
            false => Copy::First(recent.message),
            true => Copy::Duplicate(recent.message),
        }
    }

    fn forget(&mut self, now: Instant, lifetime: Duration) {
        while self.messages.front().is_some_and(|oldest| now.since(oldest.began) > lifetime)
            || self.messages.len() >= MESSAGES_MAX
        {
            self.messages.pop_front();
            self.first_id = self.first_id.wrapping_add(1);
        }
    }
}
