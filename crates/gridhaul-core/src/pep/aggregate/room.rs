//! The room of a collector.

use gridhaul_scenario::units::BufferLimit;

/// The bounded room of a collector, which whole and begun messages share.
#[derive(Debug, Clone)]
pub(super) struct Room {
    limit: BufferLimit,
    used: Need,
}

/// The room that messages take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Need {
    pub messages: u64,
    pub bytes: u64,
}

impl Room {
    pub(super) const fn new(limit: BufferLimit) -> Self {
        Self { limit, used: Need { messages: 0, bytes: 0 } }
    }

    /// Whether there is room for so much more.
    pub(super) fn fits(&self, need: Need) -> bool {
        match self.limit {
            BufferLimit::Messages(limit) => self.used.messages + need.messages <= u64::from(limit),
            BufferLimit::Bytes(limit) => self.used.bytes + need.bytes <= limit.get(),
        }
    }

    pub(super) const fn take(&mut self, need: Need) {
        self.used.merge(need);
    }

    pub(super) const fn give_back(&mut self, need: Need) {
        self.used.messages -= need.messages;
        self.used.bytes -= need.bytes;
    }

    pub(super) const fn used(&self) -> Need {
        self.used
    }
}

impl Need {
    /// With one more message.
    pub(super) const fn and(self, bytes: u64) -> Self {
        Self { messages: self.messages + 1, bytes: self.bytes + bytes }
    }

    /// One message less.
    pub(super) const fn subtract(&mut self, bytes: u64) {
        self.messages -= 1;
        self.bytes -= bytes;
    }

    pub(super) const fn merge(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}
