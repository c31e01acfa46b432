//! A first-in, first-out queue.

use gridhaul_scenario::units::Instant;

use crate::link::LinkPayload;
use crate::link::ring_buffer::RingBuffer;

/// A stored packet.
#[derive(Debug, Clone, Copy)]
pub(in crate::link) struct StoredPacket<P> {
    pub(in crate::link) payload: P,
    pub(in crate::link) bytes: u32,
    /// When the packet was offered.
    pub(in crate::link) offered: Instant,
    /// When the packet entered the queue: later, if it has passed a shaper.
    pub(in crate::link) enqueued: Instant,
    /// Whether the queue has marked the packet.
    pub(in crate::link) is_marked: bool,
}

impl<P> StoredPacket<P> {
    /// A packet that enters the queue when it is offered.
    pub(in crate::link) const fn new(payload: P, bytes: u32, offered: Instant) -> Self {
        Self { payload, bytes, offered, enqueued: offered, is_marked: false }
    }
}

impl<P: LinkPayload> StoredPacket<P> {
    /// Nanoseconds that the packet has waited by `now`, in a shaper included.
    pub(in crate::link) fn waited_by(&self, now: Instant) -> u64 {
        now.since(self.offered).as_nanos()
    }

    /// Marks the packet instead of dropping it, if its ECN field permits that. Returns whether it
    /// does.
    pub(in crate::link) fn mark(&mut self) -> bool {
        let is_capable = self.payload.ecn().is_capable();
        if is_capable {
            self.payload.mark();
            self.is_marked = true;
        }
        is_capable
    }
}

/// A first-in, first-out queue with the statistics that CoDel needs.
#[derive(Debug, Clone)]
pub(super) struct Fifo<P> {
    packets: RingBuffer<StoredPacket<P>>,
    bytes: u64,
    largest: u32,
}

impl<P: LinkPayload> Fifo<P> {
    /// Sum of the waits of all packets by `now`, in nanoseconds.
    pub(super) fn waited_by(&self, now: Instant) -> u64 {
        self.packets.iter().map(|packet| packet.waited_by(now)).sum()
    }
}

impl<P: Copy> Fifo<P> {
    pub(super) const fn new() -> Self {
        Self { packets: RingBuffer::new(), bytes: 0, largest: 0 }
    }

    pub(super) fn push(&mut self, packet: StoredPacket<P>) {
        self.packets.push_back(packet);
        self.bytes += u64::from(packet.bytes);
        self.largest = self.largest.max(packet.bytes);
    }

    pub(super) fn pop(&mut self) -> Option<StoredPacket<P>> {
        let first = self.packets.front().copied()?;
        self.packets.drop_front();
        self.bytes -= u64::from(first.bytes);
        Some(first)
    }

    /// Size of the first packet.
    pub(super) fn first_bytes(&self) -> Option<u32> {
        self.packets.front().map(|first| first.bytes)
    }

    pub(super) const fn packets(&self) -> u32 {
        self.packets.len() as u32
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Size of the largest packet so far.
    pub(super) const fn largest(&self) -> u32 {
        self.largest
    }
}
