//! Accounting of the buffer of an aggregator.

use gridhaul_scenario::units::BufferLimit;

/// The bounded buffer of an aggregator, which complete and incomplete messages share.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    limit: BufferLimit,
    used: Space,
}

/// Buffer space that messages occupy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Space {
    pub messages: u64,
    pub bytes: u64,
}

impl Buffer {
    pub(super) const fn new(limit: BufferLimit) -> Self {
        Self { limit, used: Space { messages: 0, bytes: 0 } }
    }

    /// Whether `space` is free.
    pub(super) fn fits(&self, space: Space) -> bool {
        match self.limit {
            BufferLimit::Messages(limit) => self.used.messages + space.messages <= u64::from(limit),
            BufferLimit::Bytes(limit) => self.used.bytes + space.bytes <= limit.get(),
        }
    }

    pub(super) const fn reserve(&mut self, space: Space) {
        self.used.add(space);
    }

    pub(super) const fn release(&mut self, space: Space) {
        self.used.messages -= space.messages;
        self.used.bytes -= space.bytes;
    }

    pub(super) const fn used(&self) -> Space {
        self.used
    }
}

impl Space {
    /// This space plus one message.
    pub(super) const fn plus_message(self, bytes: u64) -> Self {
        Self { messages: self.messages + 1, bytes: self.bytes + bytes }
    }

    /// Subtracts one message.
    pub(super) const fn subtract_message(&mut self, bytes: u64) {
        self.messages -= 1;
        self.bytes -= bytes;
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}
