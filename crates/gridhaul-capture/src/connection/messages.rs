//! Messages of the application, reconstructed from its pauses.

use gridhaul_scenario::units::Instant;

/// Data that the application had at the same time: consecutive new data in which the sender did not
/// wait for the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Time of the first segment.
    pub at: Instant,
    /// Bytes.
    pub bytes: u64,
}

/// Messages of a direction.
#[derive(Debug, Default)]
pub(super) struct Messages {
    rows: Vec<Message>,
}

/// Largest number of messages of a direction; the last one has all further data.
const MESSAGES_MAX: usize = 100_000;

impl Messages {
    /// Adds data. `begins`: the sender waited for the application before.
    pub(super) fn add(&mut self, at: Instant, bytes: u64, begins: bool) {
        let is_full = self.rows.len() == MESSAGES_MAX;
        match self.rows.last_mut() {
            Some(last) if !begins || is_full => last.bytes += bytes,
            _ => self.rows.push(Message { at, bytes }),
        }
    }

    pub(super) fn rows(&self) -> &[Message] {
        &self.rows
    }
}
