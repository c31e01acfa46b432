//! The queue of a class.

use gridhaul_scenario::scenario::{Aqm, Direction, SchedulerClass};
use gridhaul_scenario::units::Instant;

use super::deficit_round_robin::FirstPacket;
use super::token_bucket::TokenBucket;
use crate::link::aqm::{StoredPacket, StoredPackets};
use crate::link::queue::QueueCapacity;
use crate::link::{DropReason, LinkPayload, LinkRandomStreams};

/// The packets of a class, and their token bucket.
#[derive(Debug, Clone)]
pub(super) struct ClassQueue<P> {
    queue: StoredPackets<P>,
    /// The packet that is sent next, if active queue management has dequeued it already: the
    /// scheduler must know its size before the packet is sent (as `qdisc_peek_dequeued` of Linux).
    first: Option<StoredPacket<P>>,
    capacity: QueueCapacity,
    bucket: Option<TokenBucket>,
}

impl<P: LinkPayload> ClassQueue<P> {
    /// The empty queue of a class of this name.
    pub(super) fn new(
        name: &str,
        class: &SchedulerClass,
        direction: &Direction,
        random: LinkRandomStreams,
    ) -> Self {
        let limit = class.queue.unwrap_or(direction.queue);
        let queue = match &class.aqm {
            Some(Aqm::Codel(keys)) => StoredPackets::codel(keys, limit),
            Some(Aqm::FqCodel(keys)) => {
                let mut random = random.stream(&format!("flow queues of {name}"));
                StoredPackets::fq_codel(keys, limit, random.below(u64::MAX))
            }
            // The check of scenarios refuses the algorithms that decide on arrival.
            Some(Aqm::Red(_) | Aqm::Pie(_)) | None => StoredPackets::drop_tail(limit),
        };
        let bucket = class.rate.map(|rate| TokenBucket::new(rate, class.effective_burst()));
        Self { queue, first: None, capacity: QueueCapacity::new(limit), bucket }
    }

    pub(super) fn packets(&self) -> u32 {
        self.queue.packets() + u32::from(self.first.is_some())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.queue.bytes() + self.first.as_ref().map_or(0, |first| u64::from(first.bytes))
    }

    /// Sum of the waits of all packets by `now`, in nanoseconds.
    pub(super) fn waited_by(&self, now: Instant) -> u64 {
        self.queue.waited_by(now) + self.first.as_ref().map_or(0, |first| first.waited_by(now))
    }

    /// Enqueues a packet. The limit does not apply to a packet that need not wait: the transmitter
    /// is free, and there are tokens.
    ///
    /// # Errors
    /// The queue is full.
    pub(super) fn push(
        &mut self,
        packet: StoredPacket<P>,
        is_free: bool,
    ) -> Result<(), DropReason> {
        let has_tokens = self.bucket.as_ref().is_none_or(|bucket| {
            bucket.available_at(packet.offered, packet.bytes) <= packet.offered
        });
        let waits = !is_free || self.packets() > 0 || !has_tokens;
        let (packets, bytes) =
            (self.packets() as usize + 1, self.bytes() + u64::from(packet.bytes));
        if self.first.is_some() && !self.capacity.admits(packets, bytes) {
            return Err(DropReason::QueueFull);
        }
        self.queue.push(packet, waits)
    }

    /// The packet that is sent next, if it may be sent at `now`. If not, `waits` gets the time at
    /// which there will be tokens for it.
    pub(super) fn first_packet(&mut self, now: Instant, waits: &mut Instant) -> FirstPacket {
        let Some(bytes) = self.first_bytes(now) else { return FirstPacket::None };
        let available = self.bucket.as_ref().map_or(now, |bucket| bucket.available_at(now, bytes));
        if available > now {
            *waits = available.min(*waits);
            return FirstPacket::Waits;
        }
        FirstPacket::Ready(bytes)
    }

    fn first_bytes(&mut self, now: Instant) -> Option<u32> {
        if self.first.is_none() {
            if let Some(bytes) = self.queue.first_bytes() {
                return Some(bytes);
            }
            self.first = self.queue.take(now);
        }
        self.first.as_ref().map(|first| first.bytes)
    }

    /// Removes the packet that is sent at `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<StoredPacket<P>> {
        let packet = self.first.take().or_else(|| self.queue.take(now))?;
        if let Some(bucket) = &mut self.bucket {
            bucket.take(now, packet.bytes);
        }
        Some(packet)
    }

    /// A packet that [`push`](Self::push), [`first_packet`](Self::first_packet) or
    /// [`take`](Self::take) has dropped.
    pub(super) fn pop_dropped(&mut self) -> Option<StoredPacket<P>> {
        self.queue.pop_dropped()
    }
}
