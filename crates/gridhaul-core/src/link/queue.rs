//! The drop-tail queue of a transmitter.
//!
//! With drop-tail, the outcome of a packet and the start of its transmission are known on arrival.
//! The queue therefore stores no packets, only the transmission start of each queued packet, until
//! that time.

use gridhaul_scenario::units::{Instant, QueueLimit};

use super::ring_buffer::RingBuffer;

/// The queued packets and the queue limit.
#[derive(Debug, Clone)]
pub(super) struct DropTail {
    /// In order of transmission start.
    queued: RingBuffer<QueuedPacket>,
    bytes: u64,
    capacity: QueueCapacity,
}

/// Maximum queue length.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueCapacity {
    packets: usize,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct QueuedPacket {
    starts: Instant,
    bytes: u32,
}

impl DropTail {
    /// An empty queue with this limit.
    pub(super) fn new(limit: QueueLimit) -> Self {
        Self { queued: RingBuffer::new(), bytes: 0, capacity: QueueCapacity::new(limit) }
    }

    /// Removes the packets whose transmission has started by `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant) {
        while let Some(first) = self.queued.front()
            && first.starts <= now
        {
            self.bytes -= u64::from(first.bytes);
            self.queued.drop_front();
        }
        assert!(!self.queued.is_empty() || self.bytes == 0, "bytes are those of the packets");
    }

    /// Removes all packets: with an idle transmitter none is queued.
    #[inline]
    pub(super) const fn clear(&mut self) {
        self.queued.clear();
        self.bytes = 0;
    }

    /// Whether more than half of the limit is in use.
    pub(super) fn is_more_than_half_full(&self) -> bool {
        let QueueCapacity { packets, bytes } = self.capacity;
        self.queued.len() > packets / 2 || self.bytes > bytes / 2
    }

    /// Enqueues a packet until its transmission starts; false if the queue is full. The packet in
    /// transmission does not count, as in ns-2: with a limit of 50 packets, the link holds at most
    /// 51.
    #[inline]
    pub(super) fn enqueue(&mut self, starts: Instant, bytes: u32) -> bool {
        let total = self.bytes + u64::from(bytes);
        let fits = self.capacity.admits(self.queued.len() + 1, total);
        if fits {
            self.queued.push_back(QueuedPacket { starts, bytes });
            self.bytes = total;
        }
        fits
    }

    /// Queue length in packets, as of the last change.
    #[inline]
    pub(super) const fn packets(&self) -> u32 {
        self.queued.len() as u32
    }

    /// Queue length in bytes, as of the last change.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl QueueCapacity {
    pub(super) const fn new(limit: QueueLimit) -> Self {
        let (packets, bytes) = match limit {
            QueueLimit::Packets(packets) => (packets as usize, u64::MAX),
            QueueLimit::Bytes(bytes) => (usize::MAX, bytes.get()),
            QueueLimit::Unlimited => (usize::MAX, u64::MAX),
        };
        Self { packets, bytes }
    }

    /// Whether a queue of this length is within the limit.
    #[inline]
    pub(super) const fn admits(self, packets: usize, bytes: u64) -> bool {
        packets <= self.packets && bytes <= self.bytes
    }
}
