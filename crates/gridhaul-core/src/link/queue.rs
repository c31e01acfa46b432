//! The queue before the wire: drop-tail.
//!
//! Under drop-tail a packet's outcome in the queue is known on its arrival, and so is the time at
//! which its transmission begins. The queue therefore holds no packets; it remembers when each
//! waiting one will begin, and forgets it then.

use gridhaul_scenario::units::{Instant, QueueLimit};

use super::ring_buffer::RingBuffer;

/// What waits for the wire, and how much may.
#[derive(Debug, Clone)]
pub(super) struct DropTail {
    /// In order of `begins`.
    waiting: RingBuffer<Waiting>,
    bytes: u64,
    limit: Limit,
}

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    packets: usize,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    begins: Instant,
    bytes: u32,
}

impl DropTail {
    /// An empty queue with this limit.
    pub(super) fn new(limit: QueueLimit) -> Self {
        Self { waiting: RingBuffer::new(), bytes: 0, limit: Limit::new(limit) }
    }

    /// Forgets the packets whose transmission has begun by `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(first) = self.waiting.front()
            && first.begins <= now
        {
            self.bytes -= u64::from(first.bytes);
            self.waiting.drop_front();
        }
    }

    /// Forgets all packets: a free wire has taken each of them.
    #[inline]
    pub(super) const fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }

    /// Lets a packet wait until its transmission begins; false where there is no room for it.
    /// What is on the wire does not count, as in ns-2: with a limit of 50 packets, 51 can be on
    /// the wire and in the queue together.
    #[inline]
    pub(super) fn wait(&mut self, begins: Instant, bytes: u32) -> bool {
        let total = self.bytes + u64::from(bytes);
        let room = self.limit.holds(self.waiting.len() + 1, total);
        if room {
            self.waiting.push_back(Waiting { begins, bytes });
            self.bytes = total;
        }
        room
    }

    /// Packets that wait, as of the last change.
    #[inline]
    pub(super) const fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// Bytes that wait, as of the last change.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Limit {
    pub(super) const fn new(limit: QueueLimit) -> Self {
        let (packets, bytes) = match limit {
            QueueLimit::Packets(packets) => (packets as usize, u64::MAX),
            QueueLimit::Bytes(bytes) => (usize::MAX, bytes.get()),
            QueueLimit::Unlimited => (usize::MAX, u64::MAX),
        };
        Self { packets, bytes }
    }

    /// Whether so much may wait.
    #[inline]
    pub(super) const fn holds(self, packets: usize, bytes: u64) -> bool {
        packets <= self.packets && bytes <= self.bytes
    }
}
